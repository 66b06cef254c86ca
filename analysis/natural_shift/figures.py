"""Figures: accuracy under each shift against clean accuracy with the line of the standard models,
drop against drop, and what benchmarks of each size predict.
"""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from analysis.figures import BLUE, GREY, ORANGE
from analysis.natural_shift.effective import logit
from analysis.natural_shift.study import Study
from analysis.natural_shift.table import Table
from analysis.natural_shift.text import title

_COLUMNS = 3
_TICKS = (1, 5, 20, 50, 80, 95, 99)  # percent, on logit axes
_COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "black")


def accuracy_panels(table: Table, study: Study) -> Figure:
    """Draws accuracy under each shift against clean accuracy of the same classes, on logit axes."""
    figure, panels = _panels(len(study.shifts))
    for axes, shift in zip(panels, study.shifts):
        natural = table.natural[shift]
        x, y = logit(natural.clean), logit(natural.accuracy)
        for chosen, colour, label in ((table.shown, ORANGE, "others"), (table.standard, BLUE, "standard")):
            axes.scatter(x[chosen], y[chosen], s=6, c=colour, alpha=0.6, linewidths=0, label=label)
        for line in study.lines[shift]:
            of_part = x[table.standard & ~np.isnan(x)]
            if math.isnan(line.slope) or not len(of_part):
                continue
            pivot = _pivot(study.lines[shift], natural, table)
            ends = [of_part.min(), of_part.max()] if pivot is None else _ends(line.part, of_part, pivot)
            axes.plot(ends, [line.slope * end + line.intercept for end in ends], color="black", linewidth=0.8)
        _percent_ticks(axes, x, y)
        axes.set_title(title(shift), fontsize=8)
    figure.supxlabel("accuracy on clean images of the same classes (%)", fontsize=8)
    figure.supylabel("accuracy under the shift (%)", fontsize=8)
    handles = {handle.get_label(): handle for axes in panels for handle in axes.collections}
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=2, fontsize=7, frameon=False)
    return figure


def drop_panels(table: Table, study: Study) -> Figure:
    """Draws the accuracy that models lose to each shift against what they lose to the benchmark."""
    figure, panels = _panels(len(study.shifts))
    lost = table.clean - table.mean(study.members)
    for axes, row in zip(panels, study.benchmark):
        drop = table.clean - table.natural[row.shift].accuracy
        axes.scatter(lost, drop, s=6, c=BLUE, alpha=0.6, linewidths=0)
        axes.set_title(f"{title(row.shift)}   $r$ = {row.drop.value:.2f}", fontsize=8)
    figure.supxlabel(f"mean accuracy lost to {len(study.members)} corruptions (points)", fontsize=8)
    figure.supylabel("accuracy lost to the shift (points)", fontsize=8)
    return figure


def benchmark_panel(study: Study) -> Figure:
    """Draws the mean r of benchmarks against their number of corruptions: a colour for each number
    of categories, filled where balanced, with 95 % intervals.
    """
    figure = Figure(figsize=(5.0, 3.6), layout="constrained")
    axes = figure.subplots()
    for row in study.bins:
        colour = _COLOURS[(row.categories - 1) % len(_COLOURS)]
        x = row.size + 0.12 * (row.categories - 2) + 0.06 * row.spread
        axes.plot([x] * 2, [row.mean.low, row.mean.high], color=colour, linewidth=0.5, alpha=0.5)
        face = colour if row.spread == 0 else "none"
        label = f"{row.categories} {'category' if row.categories == 1 else 'categories'}"
        axes.plot(x, row.mean.value, "o", color=colour, markerfacecolor=face, markersize=4, label=label)
    axes.set_xlabel("corruptions in the benchmark", fontsize=8)
    axes.set_ylabel("r with natural drop, mean over shifts", fontsize=8)
    balanced = [handle for handle in axes.get_lines() if handle.get_markerfacecolor() != "none"]
    handles = {handle.get_label(): handle for handle in balanced if not handle.get_label().startswith("_")}
    figure.legend(
        handles.values(),
        handles,
        loc="outside lower center",
        ncols=4,
        fontsize=6,
        frameon=False,
        title_fontsize=6,
        title="filled: the same number from every category; open: unbalanced",
    )
    _tidy(axes)
    return figure


def _panels(number):
    columns = min(_COLUMNS, number)
    rows = math.ceil(number / columns)
    figure = Figure(figsize=(max(3.4, 2.4 * columns), 2.3 * rows + 0.6), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flat
    panels = list(panels)
    for axes in panels[number:]:
        axes.set_axis_off()
    for axes in panels[:number]:
        _tidy(axes)
    return figure, panels[:number]


def _tidy(axes):
    axes.tick_params(labelsize=6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(color=GREY, linewidth=0.3, alpha=0.5)


def _percent_ticks(axes, x, y):
    for values, set_ticks in ((x, axes.set_xticks), (y, axes.set_yticks)):
        known = values[~np.isnan(values)]
        inside = [tick for tick in _TICKS if len(known) and known.min() <= logit(tick) <= known.max()]
        set_ticks([float(logit(tick)) for tick in inside], [f"{tick}" for tick in inside])


def _pivot(lines: Sequence, natural, table):
    if len(lines) < 2:
        return None
    zero = table.standard & (natural.accuracy == 0)
    return float(logit(natural.clean[zero].max()))


def _ends(part, x, pivot):
    return [x.min(), pivot] if part == "below" else [pivot, x.max()]
