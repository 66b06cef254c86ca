"""The figures of a study, each drawn once for its report, the docs and print."""

import math
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from analysis import figures
from analysis.figures import Panel, Part
from analysis.frames import percent, with_error
from analysis.overlap.score import balance, mean_overlap, mean_transfer
from analysis.report.inputs import Study
from analysis.selection import algorithm
from analysis.selection.algorithm import Selection
from runtime.artifacts import short
from runtime.log import bar

_DPI = 300
_ALPHABETICAL = "_alphabetical"


class Chart(NamedTuple):
    """A figure, and its SVG text, whose parts show their values."""

    figure: Figure
    svg: str

    @classmethod
    def of(cls, figure: Figure, parts: Sequence[Part] = ()) -> "Chart":
        """Draws a figure once; a second drawing would refine its layout."""
        return cls(figure, figures.svg(figure, parts))


def draw(study: Study, selections: Sequence[Selection], only: Iterable[str] | None = None) -> dict[str, Chart]:
    """Draws the figures that the study has results for, or those of them that `only` names: {name: Chart}.

    `selections` are the result of `sweep`.
    """
    drawn = {name: _FIGURES[name](study, selections) for name in (_FIGURES if only is None else only)}
    return {name: chart for name, chart in drawn.items() if chart}


def write(charts: Mapping[str, Chart], folder: pathlib.Path) -> None:
    """Writes each figure as PNG, PDF and SVG."""
    drawn = {name: chart for name, chart in charts.items() if not name.endswith(_ALPHABETICAL)}
    for name, chart in bar("figure", drawn.items(), leave=False):
        figures.save(chart.figure, folder / name, dpi=_DPI)
        figures.write_atomically(folder / f"{name}.svg", chart.svg)


def sweep(study: Study) -> tuple[Selection, ...]:
    """Selects benchmarks at thresholds 0, .05, ... 1 and at the study's; () where no overlap is defined."""
    if study.selection is None:
        return ()
    thresholds = sorted({*algorithm.THRESHOLDS, study.threshold})
    overlap = study.overlap
    return algorithm.sweep(overlap.overlap, study.names, thresholds, study.selection.strict, overlap.unclipped)


def _provenance(study: Study) -> str:
    revision = short(str(study.provenance.get("git_revision", "unknown")))
    return f"{study.setting('dataset', 'name')}, {study.setting('model', 'name')}, revision {revision}"


def _overlap(study: Study, _: Sequence[Selection], order: np.ndarray | None = None) -> Chart:
    return _matrix(study, order, study.overlap.overlap, study.errors.overlap, figures.OVERLAP, "Overlap", _pair_text)


def _transfer(study: Study, _: Sequence[Selection], order: np.ndarray | None = None) -> Chart:
    title, scale = "Directed transfer", figures.TRANSFER
    return _matrix(study, order, study.overlap.transfer, study.errors.transfer, scale, title, _transfer_text)


def _matrix(study, order, values, se, scale, title, text):
    """Draws a matrix in an order, or in the order of the overlaps' clusters; the tree stands beside overlaps."""
    flags, n, tree = study.overlap.flags, len(study.names), order is None
    order = figures.cluster_order(study.overlap.overlap, flags) if tree else order
    about = {"title": title, "provenance": _provenance(study), "tree": tree and scale is figures.OVERLAP}
    figure = figures.heatmap(values, study.labels, flags=flags, se=se, order=order, scale=scale, **about)
    return Chart.of(figure, [Part(x, y, 1, 1, text(study, order[y], order[x])) for y in range(n) for x in range(n)])


def _means(study: Study, _: Sequence[Selection]) -> Chart | None:
    if study.clear is None:
        return None
    both = zip(("outgoing", "incoming"), mean_transfer(study.clear.overlap.transfer))
    panels = [_panel(study, f"mean {name} transfer", values, name, sign=True) for name, values in both]
    return _bars(study, panels, "Mean transfer over the others")


def _balance(study: Study, _: Sequence[Selection]) -> Chart | None:
    if study.clear is None:
        return None
    values = mean_overlap(study.clear.overlap.overlap)
    notes = [_spread("mean", values)]
    members = study.selection.members if study.selection else ()
    if len(members) > 1 and not study.weak(members):
        index = [study.names.index(name) for name in members]
        inside = mean_overlap(study.overlap.overlap[np.ix_(index, index)])
        notes.append(_spread("within the selected benchmark: mean", inside))
    return _bars(study, [_panel(study, "mean overlap", values, "mean_overlap")], "Mean overlap with the others", notes)


def _sweep(study: Study, selections: Sequence[Selection]) -> Chart | None:
    if not selections:
        return None
    means = [math.nan if study.is_weak(s) else s.mean_overlap for s in selections]
    about = {"mark": study.threshold, "means": means, "provenance": _provenance(study)}
    return Chart.of(figures.threshold_sweep(selections, **about))


def _stability(study: Study, _: Sequence[Selection]) -> Chart | None:
    if study.stability is None:
        return None
    shares = np.array([study.stability.members[name] for name in study.names])
    panel = Panel("selected in % of resamples", 100 * shares, tuple(map(percent, shares)), limit=100)
    return _bars(study, [panel], "Stability of the selection")


def _bars(study, panels, title, notes=()):
    labels = [label + figures.MARKS[flag] for label, flag in zip(study.labels, study.overlap.flags)]
    chosen = study.selection.members if study.selection else ()
    members = [label for label, name in zip(labels, study.names) if name in chosen]
    notes = [*notes, "orange: members of the selected benchmark"] if members else notes
    about = {"title": title, "provenance": _provenance(study), "notes": notes}
    figure, order = figures.bars(labels, panels, members=members, **about)
    low, high = figure.axes[0].get_xlim()
    texts = [", ".join(f"{panel.label} {panel.texts[k]}" for panel in panels) for k in range(len(labels))]
    parts = [Part(low, y - 0.5, high - low, 1, f"{study.names[k]}: {texts[k]}") for y, k in enumerate(order)]
    return Chart.of(figure, parts)


def _panel(study: Study, label: str, values: np.ndarray, error: str, sign: bool = False) -> Panel:
    """Makes a panel of values of the corruptions without a flag; the others have no bar."""
    index = [study.names.index(name) for name in study.clear.overlap.names]
    whole, se = np.full((2, len(study.names)), np.nan)
    whole[index], se[index] = values, getattr(study.clear.errors, error)
    flags = study.overlap.flags
    texts = ["weak" if flag == "weak" else with_error(*of, sign) for flag, *of in zip(flags, whole, se)]
    return Panel(label, whole, texts, se)


def _spread(name: str, values: np.ndarray) -> str:
    spread = balance(values)
    return f"{name} {spread.mean:.2f}, population standard deviation {spread.std:.2f}, range {spread.range:.2f}"


def _pair_text(study: Study, i: int, j: int) -> str:
    """Titles a cell: overlap, unclipped overlap, standard error, both transfers; or the reason for no number."""
    overlap, errors = study.overlap, study.errors
    first, second, se = study.names[i], study.names[j], errors.overlap[i, j]
    if i == j:
        return f"{first} with itself"
    if np.isnan(overlap.overlap[i, j]):
        return f"{first} and {second}: undefined, because training with one of them gave no gain on itself"
    if weak := study.weak((first, second)):
        return f"{first} and {second}: weak gain of {' and '.join(weak)}"
    return (
        f"{first} and {second}: O = {with_error(overlap.overlap[i, j], se)}, unclipped {with_error(overlap.unclipped[i, j], se)}; "
        f"{_one_way(study, i, j)}; {_one_way(study, j, i)}"
    )


def _transfer_text(study: Study, i: int, j: int) -> str:
    first, second = study.names[i], study.names[j]
    if i == j:
        return f"{first} with itself"
    if study.weak((second,)):
        return f"T {first} → {second}: weak gain of {second}"
    return _one_way(study, i, j)


def _one_way(study: Study, i: int, j: int) -> str:
    value = with_error(study.overlap.transfer[i, j], study.errors.transfer[i, j])
    return f"T {study.names[i]} → {study.names[j]} = {value}"


_FIGURES = {"overlap": _overlap, "transfer": _transfer, "means": _means}
_FIGURES |= {"balance": _balance, "sweep": _sweep, "stability": _stability}
_FIGURES |= {
    f"{name}{_ALPHABETICAL}": lambda study, _, draw=_FIGURES[name]: draw(study, _, np.argsort(study.labels))
    for name in ("overlap", "transfer")
}
