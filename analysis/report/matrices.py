"""Values of the sections with matrices: overlap with the tree of its clusters, and directed transfer.

A matrix is an HTML table with coloured cells. The script of the page reorders rows and columns
(`data-clusters` and `data-alphabetical` are the places of a heading) and shows the title of a cell
under the pointer or the focus. Without the script the table is complete, in the order of clusters.
"""

import matplotlib
import numpy as np
from matplotlib.colors import to_hex
from scipy.cluster import hierarchy

from analysis import heatmaps
from analysis.overlap.balance import mean_transfer
from analysis.report import study_figures
from analysis.report.inputs import Study
from analysis.rounding import compact, with_error

_CELLS = {"errors": (2.75, 2.75), "values": (1.6, 2.1), "colours": (0.7, 1.05)}  # rem, smallest and largest
_WIDTH = 47  # rem, width into which the cells of a row should fit
_MARKS = {"weak": " *", "invalid": " !"}
_MINUS = "\N{MINUS SIGN}"


def values(study: Study) -> dict:
    """Makes the values of overlap.html and transfer.html."""
    overlap, errors = study.overlap, study.errors
    outgoing, incoming = mean_transfer(overlap.transfer)
    weak = [flag == "weak" for flag in overlap.flags]
    incoming = np.where(weak, np.nan, incoming)
    axis = study_figures.bar_range([*outgoing, *incoming], [*errors.outgoing, *errors.incoming])
    means = [
        {
            "name": study.names[k],
            "label": study.labels[k],
            "outgoing": with_error(outgoing[k], errors.outgoing[k], sign=True),
            "incoming": "weak" if weak[k] else with_error(incoming[k], errors.incoming[k], sign=True),
            "first": study_figures.bar(outgoing[k], errors.outgoing[k], *axis),
            "second": study_figures.bar(incoming[k], errors.incoming[k], *axis),
        }
        for k in np.argsort(-np.nan_to_num(outgoing, nan=-np.inf), kind="stable")
    ]
    drawn = (
        "resamples of the test images" if errors.resampled else "draws of every accuracy from its binomial distribution"
    )
    return {
        "overlap": _matrix(study, overlap.overlap, errors.overlap, heatmaps.OVERLAP, _pair_text, "Overlap matrix")
        | {"ends": ("0", "overlap", "1")},
        "tree": _tree(overlap.overlap),
        "undefined_pairs": bool(np.isnan(overlap.overlap).any()),
        "pairs": _clear_pairs(study),
        "transfer": _matrix(
            study,
            overlap.transfer,
            errors.transfer,
            heatmaps.TRANSFER,
            _transfer_text,
            "Directed transfer",
            margins=((outgoing, errors.outgoing), (incoming, errors.incoming)),
            directed=True,
        )
        | {"ends": (f"{_MINUS}1 or less", "transfer", "1 or more")},
        "means": means,
        "central": f"± is half the width of the central 68\N{NO-BREAK SPACE}% of 1,000 {drawn}.",
    }


def _matrix(study, values, ses, scale, describe, label, margins=None, directed=False):
    """Makes the values of the macro `framed`.

    A pair with a weak gain says `weak` in place of its numbers (`heatmaps.weak_pairs`).

    Args:
      study: `analysis.report.inputs.Study`.
      values, ses: [n, n], rows trained and columns tested where that matters.
      scale: `heatmaps.Scale`.
      describe: (study, i, j) -> the title of a cell.
      label: name of the table for screen readers.
      margins: ((values, errors) of a last column, the same of a last row), or None.
      directed: whether the cells are transfers from the row to the column.
    """
    n, flags = len(study.names), study.overlap.flags
    order, alphabetical = heatmaps.cluster_order(study.overlap.overlap), np.argsort(np.argsort(study.labels))
    palette, weak = matplotlib.colormaps[scale.colours], heatmaps.weak_pairs(flags, directed)
    detail = "errors" if n <= study_figures.ERRORS else "values" if n <= study_figures.VALUES else "colours"

    def cell(i, j, tabindex):
        value, se = values[i, j], ses[i, j]
        if i == j:
            text = "1" if np.isfinite(value) else "\N{EN DASH}"
            return _cell(n, (text, ""), "self", "", f"{study.names[i]} with itself", tabindex) | {"hide_text": False}
        if np.isnan(value):
            kind, style = "none", ""
        else:
            kind = "unsure" if weak[i, j] or se > heatmaps.UNCERTAIN else ""
            style = _style(palette((np.clip(value, scale.low, scale.high) - scale.low) / (scale.high - scale.low)))
        text = ("weak", "") if weak[i, j] and not np.isnan(value) else compact(value, se)
        return _cell(n, text, kind, style, describe(study, i, j), tabindex)

    def margin(value, se, direction, k, is_weak=False):
        title = f"mean {direction} transfer of {study.names[k]} {'weak' if is_weak else with_error(value, se)}"
        return _cell(n, ("weak", "") if is_weak else compact(value, se), "mean", "", title, None)

    rows = []
    for rank, i in enumerate(order):
        heading = {
            "name": study.names[i],
            "label": study.labels[i] + _MARKS.get(flags[i], ""),
            "clusters": rank,
            "alphabetical": alphabetical[i],
        }
        cells = [cell(i, j, 0 if i == j == order[0] else -1) for j in order]
        if margins:
            cells.append(margin(margins[0][0][i], margins[0][1][i], "outgoing", i))
        rows.append({"heading": heading, "cells": cells})
    foot = margins and [margin(margins[1][0][j], margins[1][1][j], "incoming", j, flags[j] == "weak") for j in order]
    return {
        "label": label,
        "detail": detail,
        "size": _size(study, detail),
        "rows": rows,
        "foot": foot,
        "ramp": ", ".join(to_hex(palette(k / 10)) for k in range(11)),
        "uncertain": heatmaps.UNCERTAIN,
    }


def _cell(n, printed, kind, style, title, tabindex):
    return {
        "text": printed[0],
        "error": printed[1],
        "hide_text": n > study_figures.VALUES,
        "hide_error": n > study_figures.ERRORS,
        "kind": kind,
        "style": style,
        "title": title,
        "tabindex": tabindex,
    }


def _style(colour):
    return f"background-color:{to_hex(colour)};color:{'#000' if heatmaps.luminance(colour) > 0.179 else '#fff'}"


def _size(study, detail):
    n, longest = len(study.names), max(map(len, study.labels)) + 2
    smallest, largest = _CELLS[detail]
    cell = min(largest, max(smallest, _WIDTH / n))
    gap = 0 if detail == "colours" else 1
    return f"--cell:{cell:.2f}rem;--gap:{gap}px;--head:{0.45 * longest + 0.6:.1f}rem;--n:{n}"


def _tree(matrix):
    """Lists the branches of the dendrogram: leaves at the left, 10 units apart; distance 1 at x = 100."""
    drawn = hierarchy.dendrogram(heatmaps.cluster_tree(matrix), no_plot=True)
    branches = []
    for y, x in zip(drawn["icoord"], drawn["dcoord"]):
        path = f"M{100 * x[0]:.2f} {y[0]:.2f}H{100 * x[1]:.2f}V{y[3]:.2f}H{100 * x[3]:.2f}"
        branches.append({"path": path, "overlap": f"{1 - x[1]:.2f}"})
    return branches


def _pair_text(study, i, j):
    """Titles a cell: overlap, unclipped overlap, standard error, both transfers; or why there is no number."""
    overlap, errors = study.overlap, study.errors
    first, second, se = study.names[i], study.names[j], errors.overlap[i, j]
    if np.isnan(overlap.overlap[i, j]):
        return f"{first} and {second}: undefined, training on one of them did not help with itself"
    if weak := _weak(study, i, j):
        return f"{first} and {second}: not to be told, {weak}"
    return (
        f"{first} and {second}: O = {with_error(overlap.overlap[i, j], se)}, unclipped {with_error(overlap.unclipped[i, j], se)}; "
        f"{_one_way(study, i, j)}; {_one_way(study, j, i)}"
    )


def _transfer_text(study, i, j):
    if weak := _weak(study, j):
        return f"T from {study.names[i]} → {study.names[j]}: not to be told, {weak}"
    return f"T from {_one_way(study, i, j)[2:]}"


def _one_way(study, i, j):
    value = with_error(study.overlap.transfer[i, j], study.errors.transfer[i, j])
    return f"T {study.names[i]} → {study.names[j]} = {value}"


def _weak(study, *which):
    names = [study.names[k] for k in which if study.overlap.flags[k] == "weak"]
    return f"weak gain of {' and '.join(names)}" if names else ""


def _clear_pairs(study):
    """Lists (first, second, overlap) of the five largest overlaps that are known well: no flag on either corruption,
    more than two standard errors above 0.
    """
    overlap, se = study.overlap, study.errors.overlap
    good = [k for k, flag in enumerate(overlap.flags) if not flag]
    pairs = [(i, j) for a, i in enumerate(good) for j in good[a + 1 :] if overlap.unclipped[i, j] > 2 * se[i, j]]
    pairs = sorted(pairs, key=lambda pair: -overlap.overlap[pair])[:5]
    return [(study.labels[i], study.labels[j], with_error(overlap.overlap[i, j], se[i, j])) for i, j in pairs]
