"""Figures of distances and schemes: error against distance, mixtures, spread over resamplings, errors of schemes."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.distances.experiments import KINDS, Spread
from analysis.figures import BLUE, COLOURS, GREY, ORANGE, panels
from analysis.frames import CLEAN

_COLUMNS = 5
_SHAPES = "osD^v"  # schemes of one colour differ by shape
_LABELLED = len(COLOURS) * len(_SHAPES)


def scatter_panels(distance, errors, correlations, *, distance_name="MSD", title="", provenance=""):
    """Draws error (percent) against distance, a panel for each corruption; returns the figure.

    `distance` and `errors` are {(scheme, corruption): number}, `correlations` {corruption: Spearman's rho}: a panel
    for each, in this order, with rho in its title. `distance_name` labels the horizontal axes, under the lowest
    panels; `title` and `provenance` are lines above all panels.
    """
    if not correlations:
        raise ValueError("expected at least one corruption, found none")
    points = {name: [key for key in distance if key[1] == name and key in errors] for name in correlations}
    schemes = list(dict.fromkeys(scheme for keys in points.values() for scheme, _ in keys))
    figure, drawn = panels(len(points), _COLUMNS, (2.1, 2.0), 4.0, 1.2)
    # Among hundreds of subsets (`augmix=...`), only whole schemes get separate colours.
    told = schemes if len(schemes) <= _LABELLED else [s for s in schemes if "=" not in s]
    told = told if len(told) <= _LABELLED else []
    styles = {s: (COLOURS[k % len(COLOURS)], _SHAPES[k // len(COLOURS)]) for k, s in enumerate(told)}
    for number, (axes, (name, keys)) in enumerate(zip(drawn, points.items(), strict=True)):
        rest = [key for key in keys if key[0] not in styles]
        if rest:
            axes.scatter([distance[k] for k in rest], [errors[k] for k in rest], s=6, c=GREY, linewidths=0, alpha=0.6)
        for key in keys:
            if key[0] in styles:
                colour, shape = styles[key[0]]
                axes.scatter(distance[key], errors[key], s=18, c=colour, marker=shape, label=key[0])
        rho = correlations[name]
        value = "undefined" if np.isnan(rho) else f"{rho:.2f}"
        axes.set_title(f"{name.rpartition('/')[2]}   $\\rho$ = {value}", fontsize=7)
        if number + min(_COLUMNS, len(points)) >= len(points):  # the lowest of its column
            axes.set_xlabel(distance_name, fontsize=7)
    figure.supylabel("error (%)", fontsize=8)
    if title or provenance:
        figure.suptitle("\n".join(filter(None, (title, provenance))), fontsize=8)
    handles = {h.get_label(): h for axes in drawn for h in axes.collections if h.get_label() in styles}
    if handles:
        figure.legend(
            handles.values(), handles, loc="outside lower center", ncols=min(4, len(handles)), fontsize=6, frameon=False
        )
    return figure


def mixture_panel(rows: Sequence[tuple[float, str, float, float]], *, title: str = "") -> Figure:
    """Draws MSD and MMD of mixtures of two corruptions against the fraction of the first, spaced evenly.

    `rows` are (fraction, corruption, msd, mmd), fractions in ascending order.
    """
    figure, axes = _panel(title)
    for name, colour in zip(dict.fromkeys(row[1] for row in rows), (BLUE, ORANGE), strict=True):
        to_corruption = [row for row in rows if row[1] == name]
        for column, (measure, line) in enumerate((("MSD", "o-"), ("MMD", "s--")), 2):
            axes.plot(
                [row[column] for row in to_corruption], line, color=colour, markersize=4, label=f"{measure} to {name}"
            )
        axes.set_xticks(range(len(to_corruption)), [f"{row[0]:g}" for row in to_corruption])
    axes.set_xlabel("fraction of the first", fontsize=8)
    axes.set_ylabel("distance", fontsize=8)
    axes.set_ylim(0)
    figure.legend(loc="outside lower center", ncols=2, fontsize=7, frameon=False)
    return figure


def spread_panel(rows: Sequence[Spread], *, title: str = "") -> Figure:
    """Draws spread by images, a line for each number of draws, with standard errors over the pairs."""
    figure, axes = _panel(title)
    look = {"fmt": "o-", "markersize": 4, "linewidth": 1, "capsize": 2}
    for draws, line in pd.DataFrame(rows).groupby("draws", sort=False):
        axes.errorbar(line.images, line.spread, line.spread_error, label=f"{draws} draws", **look)
    axes.set_xscale("log")
    numbers = list(dict.fromkeys(row.images for row in rows))
    axes.set_xticks(numbers, map(str, numbers))
    axes.minorticks_off()
    axes.set_xlabel("images", fontsize=8)
    axes.set_ylabel("standard deviation (% of the distance)", fontsize=8)
    axes.set_ylim(0)
    figure.legend(loc="outside lower center", ncols=4, fontsize=7, frameon=False)
    return figure


def _panel(title):
    figure = Figure(figsize=(5.0, 3.6), layout="constrained")
    figure.suptitle(title, fontsize=8)
    axes = figure.subplots()
    axes.tick_params(labelsize=7)
    return figure, axes


def scheme_panels(found: pd.DataFrame, *, title: str = "", provenance: str = "") -> Figure:
    """Draws the errors of each scheme, a panel for clean images and each benchmark.

    Schemes stand from the largest mean error of the last benchmark up, schemes without it on top. Bars are standard
    errors of the mean over seeds, with one seed over test images.

    Args:
      found: the result of `analysis.schemes.errors`.
      title, provenance: lines above the panels.
    """
    drawn = found[~found.column.str.startswith("gap_")]
    names = list(drawn.column.unique())
    order = drawn[drawn.column == names[-1]].sort_values("error", ascending=False, kind="stable").scheme
    order = list(dict.fromkeys([*order, *drawn.scheme]))
    figure = Figure(figsize=(2.4 * len(names) + 1.6, 0.17 * len(order) + 1.4), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), sharey=True, squeeze=False)[0], names, strict=True):
        cells = drawn[drawn.column == name].set_index("scheme").reindex(order)
        axes.errorbar(cells.error, range(len(order)), xerr=_bars(cells), fmt="o", color=BLUE, markersize=3, capsize=2)
        axes.set_yticks(range(len(order)), order)
        axes.set_xlabel(f"error, {name} (%)", fontsize=7)
        axes.tick_params(labelsize=6)
        axes.grid(axis="x", color=GREY, linewidth=0.3, alpha=0.5)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("\n".join(filter(None, (title, provenance))), fontsize=7)
    return figure


def _bars(found):
    return (found.error_std / np.sqrt(found.seeds)).fillna(found.error_se)


def transform_panels(stored: pd.DataFrame, found: pd.DataFrame, *, title: str = "", provenance: str = "") -> Figure:
    """Draws error against the number of transforms, a panel for each benchmark, a line for each kind.

    Bars are as in `scheme_panels`; the errors of whole schemes are levels. `stored` is of `analysis.schemes.transforms`,
    not empty; `found`, of `analysis.schemes.errors`, has the schemes that are not stored; `title` and `provenance` are
    lines above the panels.
    """
    names = [name for name in found.column.unique() if name in set(stored.column) and name != CLEAN] or [CLEAN]
    figure = Figure(figsize=(3.6 * len(names), 3.4), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for kind, colour in zip(KINDS, (BLUE, ORANGE, GREY), strict=True):
            line = stored[(stored.kind == kind) & (stored.column == name)]
            if len(line):
                look = {"markersize": 3, "linewidth": 1, "label": kind}
                axes.errorbar(line.transforms, line.error, _bars(line), fmt="o-", color=colour, **look)
        whole = found[(found.column == name) & ~found.scheme.str.contains("=")]
        for number, row in enumerate(whole.itertuples()):
            style = ("--", ":", "-.")[number % 3]
            axes.axhline(row.error, color="black", linewidth=0.8, linestyle=style, label=row.scheme)
        axes.set_xscale("log")
        axes.set_xlabel("transforms", fontsize=8)
        axes.set_ylabel(f"error on {name} (%)", fontsize=8)
        axes.tick_params(which="both", labelsize=7)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=7, frameon=False)
    figure.suptitle("\n".join(filter(None, (title, provenance))), fontsize=8)
    return figure
