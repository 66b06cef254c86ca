"""Figures: accuracy under each shift against clean accuracy with the line of the standard models, drop against drop, and the
predictions of benchmarks of each size.
"""

import math

import numpy as np
from matplotlib.figure import Figure

from analysis.figures import BLUE, COLOURS, ORANGE, panels, tidy
from analysis.frames import CLEAN, NATURAL
from projects.natural_shift.prediction import logit, pivot_of
from projects.natural_shift.sources import Table
from projects.natural_shift.study import Study, title

_SIZES = 3, (2.4, 2.3), 3.4, 0.6  # of `panels`
_TICKS = (1, 5, 20, 50, 80, 95, 99)  # percent, on logit axes


def accuracy_panels(table: Table, study: Study) -> Figure:
    """Draws accuracy under each shift against clean accuracy of the same classes, on logit axes."""
    figure, drawn = panels(len(study.shifts), *_SIZES)
    for axes, shift in zip(drawn, study.shifts):
        accuracy, clean = table.shift(shift)
        x, y = logit(clean), logit(accuracy)
        for chosen, colour, label in ((table.shown, ORANGE, "others"), (table.standard, BLUE, "standard")):
            axes.scatter(x[chosen], y[chosen], s=6, c=colour, alpha=0.6, linewidths=0, label=label)
        of_fit = x[table.standard & ~np.isnan(x)]
        for line in study.lines[study.lines["shift"] == shift].itertuples():
            if math.isnan(line.slope) or not len(of_fit):
                continue
            ends = [of_fit.min(), of_fit.max()]
            if line.part:
                ends[line.part == "below"] = float(logit(pivot_of(accuracy, clean, table.standard)))
            axes.plot(ends, [line.slope * end + line.intercept for end in ends], color="black", linewidth=0.8)
        for values, set_ticks in ((x, axes.set_xticks), (y, axes.set_yticks)):
            known = values[~np.isnan(values)]
            ticks = [tick for tick in _TICKS if len(known) and known.min() <= logit(tick) <= known.max()]
            set_ticks([float(logit(tick)) for tick in ticks], [f"{tick}" for tick in ticks])
        axes.set_title(title(shift), fontsize=8)
    figure.supxlabel("accuracy on clean images of the same classes (%)", fontsize=8)
    figure.supylabel("accuracy under the shift (%)", fontsize=8)
    handles = {handle.get_label(): handle for axes in drawn for handle in axes.collections}
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=2, fontsize=7, frameon=False)
    return figure


def drop_panels(table: Table, study: Study) -> Figure:
    """Draws the accuracy that models lose to each shift against the accuracy that they lose to the benchmark."""
    figure, drawn = panels(len(study.shifts), *_SIZES)
    lost = table[CLEAN] - table.mean(study.members)
    drops = study.predictions[study.predictions.measure == "drop"].set_index(["benchmark", "shift"]).value
    for axes, shift in zip(drawn, study.shifts):
        axes.scatter(lost, table[CLEAN] - table[NATURAL + shift], s=6, c=BLUE, alpha=0.6, linewidths=0)
        axes.set_title(f"{title(shift)}   $r$ = {drops['mean', shift]:.2f}", fontsize=8)
    figure.supxlabel(f"mean accuracy lost to {len(study.members)} corruptions (points)", fontsize=8)
    figure.supylabel("accuracy lost to the shift (points)", fontsize=8)
    return figure


def benchmark_panel(study: Study) -> Figure:
    """Draws the mean r of benchmarks against their number of corruptions: a colour for each number of categories, filled
    where balanced, with 95 % intervals.
    """
    figure = Figure(figsize=(5.0, 3.6), layout="constrained")
    axes = figure.subplots()
    for row in study.bins[study.bins["shift"] == "mean"].to_dict("records"):
        colour = COLOURS[(row["categories"] - 1) % len(COLOURS)]
        x = row["size"] + 0.12 * (row["categories"] - 2) + 0.06 * row["spread"]
        axes.plot([x] * 2, [row["low"], row["high"]], color=colour, linewidth=0.5, alpha=0.5)
        face = colour if row["spread"] == 0 else "none"
        label = f"{row['categories']} {'category' if row['categories'] == 1 else 'categories'}"
        axes.plot(x, row["value"], "o", color=colour, markerfacecolor=face, markersize=4, label=label)
    axes.set_xlabel("corruptions in the benchmark", fontsize=8)
    axes.set_ylabel("r with natural drop, mean over shifts", fontsize=8)
    balanced = [handle for handle in axes.get_lines() if handle.get_markerfacecolor() != "none"]
    handles = {handle.get_label(): handle for handle in balanced if not handle.get_label().startswith("_")}
    note = "filled: the same number from every category; open: unbalanced"
    style = {"loc": "outside lower center", "ncols": 4, "fontsize": 6, "frameon": False, "title_fontsize": 6}
    figure.legend(handles.values(), handles, title=note, **style)
    tidy(axes)
    return figure
