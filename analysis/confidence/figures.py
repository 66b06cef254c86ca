"""Accuracy and confidence against severity, reliability diagrams, risk against coverage."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.answers import PLAIN
from analysis.confidence import metrics
from analysis.confidence.cells import ALL, BASE, Key, Mean, Severity
from analysis.confidence.metrics import ranked
from analysis.errors.scores import Benchmark
from analysis.figures import COLOURS, GREY
from analysis.frames import CLEAN
from corruptions.scoring.confidence import Confidence

_COLOURS = (*COLOURS, GREY)  # so many models fit in a figure
COVERAGES = np.arange(1, 101) / 100
Condition = tuple[str, Severity]


class Curves:
    """Gathers the bins and the risk curves of cells for the figures; a `cells.Visit`."""

    def __init__(self, bins: int = metrics.BINS):
        self._bins = bins
        self.sums: dict[tuple[Key, Condition], np.ndarray] = {}
        """{cell: [3, B], in each bin the number of answers, their confidences and the right ones}."""
        self.risks: dict[tuple[Key, Condition], np.ndarray] = {}
        """{cell: risk at `COVERAGES`}."""

    def __call__(self, condition: Condition, by_key: Mapping[Key, Confidence]) -> None:
        for key, found in by_key.items():
            places = np.searchsorted(metrics.edges(found.top, self._bins, False), found.top)
            weights = (None, found.top, found.correct)
            self.sums[key, condition] = np.stack([np.bincount(places, of, self._bins) for of in weights])
            risk = metrics.risk(ranked(-found.rest, found.correct))
            self.risks[key, condition] = risk[np.ceil(np.round(COVERAGES * len(risk), 9)).astype(int) - 1]


def accuracy(found: Sequence[Mean], benchmark: Benchmark) -> Figure | None:
    """Draws accuracy (lines) and mean confidence (dashes) against severity; None of a single severity."""
    own = [one for one in found if one.benchmark == benchmark.name and one.severities == benchmark.severities]
    places = sorted({int(one.severity) for one in own if one.severity != ALL})
    if not places:
        return None
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    for label, colour, ones in _by_model(found, lambda one: (one.model, one.set)):
        base = [one for one in ones if one.benchmark == CLEAN]
        rows = [[one for one in ones if one in own and one.severity == str(place)] for place in places]
        x = [0, *places] if base else places
        lines = [("accuracy", "-o"), ("confidence", "--")][ones[0].set != PLAIN :]  # scaling changes no prediction
        for number, (name, style) in enumerate(lines):
            y = [np.mean([one.values[name] for one in row]) for row in ([base, *rows] if base else rows)]
            about = {"color": colour, "label": None if number else label}
            axes.plot(x, 100 * np.array(y), style, markersize=4, **about)
    axes.set(xlabel="severity (0: clean images)", ylabel="percent", ylim=(0, 100), xticks=[0, *places])
    axes.set_title(f"{benchmark.name}: accuracy (lines), mean confidence (dashes)", fontsize=10)
    axes.legend(fontsize=8, frameon=False)
    return figure


def reliability(curves: Curves, benchmark: Benchmark) -> Figure:
    """Draws accuracy against confidence in bins, of clean images and of all cells of the benchmark pooled."""
    return _panels(curves.sums, benchmark, _reliability, "confidence", "accuracy")


def _reliability(axes: Axes, cells: Sequence[np.ndarray], **line) -> None:
    number, confident, right = np.sum(cells, axis=0)
    there = number > 0
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8)
    axes.plot(confident[there] / number[there], right[there] / number[there], "-o", markersize=3, **line)


def risk(curves: Curves, benchmark: Benchmark) -> Figure:
    """Draws the risk of the most confident answers against their share, the mean of the cells' curves."""
    return _panels(curves.risks, benchmark, _risk, "coverage", "risk")


def _risk(axes: Axes, cells: Sequence[np.ndarray], **line) -> None:
    axes.plot(COVERAGES, np.mean(cells, axis=0), **line)


def _panels(values, benchmark, draw, x, y):
    members = {(name, at) for name, row in benchmark.members.items() for at in row}
    panels = [
        (title, of) for title, of in ((CLEAN, {BASE}), (benchmark.name, members)) if any(c in of for _, c in values)
    ]
    figure = Figure(figsize=(3.6 * len(panels), 3.6), layout="constrained")
    for axes, (title, of) in zip(figure.subplots(1, len(panels), squeeze=False, sharey=True)[0], panels, strict=True):
        for label, colour, keys in _by_model(values, lambda cell: (cell[0][0], cell[0][2])):
            if cells := [values[cell] for cell in keys if cell[1] in of]:
                draw(axes, cells, color=colour, label=label)
        axes.set(xlabel=x, xlim=(0, 1), title=title)
    figure.axes[0].set(ylabel=y, ylim=(0, None if draw is _risk else 1))
    figure.axes[-1].legend(fontsize=7, frameon=False)
    return figure


def _by_model(found, of: Callable) -> Iterator[tuple[str, str, list]]:
    """(label, colour, items) of each (model, set), as many as there are colours."""
    groups: dict[tuple[str, str], list] = {}
    for item in found:
        groups.setdefault(of(item), []).append(item)
    for ((model, name), items), colour in zip(groups.items(), _COLOURS, strict=False):
        yield model if name == PLAIN else f"{model}, {name}", colour, items
