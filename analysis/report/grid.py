"""Matrices of a report as HTML tables: coloured cells, one order for rows and columns, read by
pointer or arrow keys.

The script of the page reorders them (`data-clusters` and `data-alphabetical` are the places of a
heading) and shows the title of the cell that is pointed at. Without it the table is complete, in
the order of the clusters.
"""

import matplotlib
import numpy as np
from matplotlib.colors import to_hex

from analysis import heatmaps
from analysis.report import study_figures
from analysis.report.html import join, tag
from analysis.rounding import compact, with_error

_CELLS = {"errors": (2.75, 2.75), "values": (1.6, 2.1), "colours": (0.7, 1.05)}  # rem, smallest and largest
_WIDTH = 47  # rem, what the cells of a row should fit into


def matrix(study, values, ses, colours, limits, describe, label, margins=None, directed=False):
    """The table. A pair with a weak gain says `weak` in place of its numbers
    (`heatmaps.weak_pairs`).

    Args:
      study: `analysis.report.inputs.Study`.
      values, ses: [n, n], rows trained and columns tested where that matters.
      colours: name of a Matplotlib colormap; limits: values at its two ends.
      describe: (study, i, j) -> the title of a cell.
      label: name of the table for screen readers.
      margins: ((values, errors) of a last column, the same of a last row), or None.
      directed: whether the cells are transfers from the row to the column.
    """
    order, n = heatmaps.cluster_order(study.overlap.overlap), len(study.names)
    alphabetical = np.argsort(np.argsort(study.labels))
    ranks = {k: {"data_clusters": rank, "data_alphabetical": alphabetical[k]} for rank, k in enumerate(order)}
    palette, weak = matplotlib.colormaps[colours], heatmaps.weak_pairs(study.overlap.flags, directed)

    def heading(k, scope):
        text = tag("span", study.labels[k], _mark(study.overlap.flags[k]))
        return tag("th", text, scope=scope, title=study.names[k], **ranks[k])

    def cell(i, j, first):
        if i == j:
            text = "1" if np.isfinite(values[i, i]) else "\N{EN DASH}"
            return tag("td", text, class_="self", title=f"{study.names[i]} with itself", tabindex=0 if first else -1)
        value, se = values[i, j], ses[i, j]
        kinds = ["none"] if np.isnan(value) else ["unsure"] if weak[i, j] or se > heatmaps.UNCERTAIN else []
        style = None if np.isnan(value) else _colours(palette, value, limits)
        text = ("weak", "") if weak[i, j] and not np.isnan(value) else compact(value, se)
        return _cell(text, n, kinds, style, describe(study, i, j), 0 if first else -1)

    def margin(value, se, what, is_weak=False):
        text = ("weak", "") if is_weak else compact(value, se)
        return _cell(text, n, ["mean"], None, f"{what} {'weak' if is_weak else with_error(value, se)}", None)

    extra = [] if margins is None else [tag("th", tag("span", "mean outgoing"), scope="col", class_="mean")]
    head = tag("tr", tag("td", class_="corner"), *(heading(k, "col") for k in order), *extra)
    rows = []
    for i in order:
        cells = [cell(i, j, i == j == order[0]) for j in order]
        if margins is not None:
            cells.append(margin(margins[0][0][i], margins[0][1][i], f"mean outgoing transfer of {study.names[i]}"))
        rows.append(tag("tr", heading(i, "row"), *cells))
    foot = None
    if margins is not None:
        means = (
            margin(
                margins[1][0][j],
                margins[1][1][j],
                f"mean incoming transfer of {study.names[j]}",
                directed and study.overlap.flags[j] == "weak",
            )
            for j in order
        )
        foot = tag("tfoot", tag("tr", tag("th", tag("span", "mean incoming"), scope="row"), *means, tag("td")))
    return tag(
        "table",
        tag("thead", head),
        tag("tbody", *rows),
        foot,
        class_="matrix",
        role="grid",
        aria_label=label,
        data_count=n,
        data_detail=_detail(n),
    )


def _cell(printed, n, kinds, style, title, tabindex):
    text, error = printed
    inside = [text if n <= study_figures.VALUES else tag("span", text, class_="hidden")]
    if error:
        inside.append(tag("small", error, class_=None if n <= study_figures.ERRORS else "hidden"))
    return tag("td", *inside, class_=" ".join(kinds) or None, style=style, title=title, tabindex=tabindex)


def _colours(palette, value, limits):
    low, high = limits
    colour = palette(np.clip((value - low) / (high - low), 0, 1))
    return f"background-color:{to_hex(colour)};color:{'#000' if heatmaps.luminance(colour) > 0.179 else '#fff'}"


def _mark(flag):
    return {"weak": " *", "invalid": " !"}.get(flag)


def _detail(n):
    return "errors" if n <= study_figures.ERRORS else "values" if n <= study_figures.VALUES else "colours"


def _size(study):
    n, longest = len(study.names), max(map(len, study.labels)) + 2
    smallest, largest = _CELLS[_detail(n)]
    cell = min(largest, max(smallest, _WIDTH / n))
    gap = 0 if _detail(n) == "colours" else 1
    return f"--cell:{cell:.2f}rem;--gap:{gap}px;--head:{0.45 * longest + 0.6:.1f}rem;--n:{n}"


def framed(study, grid, beside, legend):
    """A matrix with its order buttons above, `beside` (or None) at its right, legend and readout
    below.
    """
    box = tag("div", tag("div", grid, beside, class_="aligned"), class_="scroll matrix-box", style=_size(study))
    return join((_order_control(), box, legend, _readout()))


def _order_control():
    buttons = [
        tag("button", text, type="button", value=value, aria_pressed="true" if value == "clusters" else "false")
        for value, text in (("clusters", "by clusters"), ("alphabetical", "alphabetical"))
    ]
    return tag("p", "Order: ", *buttons, " ", tag("output", class_="order-state"), class_="control", role="group")


def _readout():
    return tag("p", "Point at a cell to read it.", class_="readout")


def legend(study, colours, low, what, high):
    """The colours with their meaning, and the marks that occur."""
    palette = matplotlib.colormaps[colours]
    stops = ", ".join(to_hex(palette(k / 10)) for k in range(11))
    ramp = tag("span", class_="ramp", style=f"background:linear-gradient(to right, {stops})")
    parts = [tag("span", what, class_="what"), tag("span", low), ramp, tag("span", high)]
    parts.append(
        tag("span", tag("i", class_="swatch unsure"), f" weak gain, or standard error above {heatmaps.UNCERTAIN}")
    )
    if "weak" in study.overlap.flags:
        parts.append(tag("span", "* weak gain: not to be trusted"))
    if "invalid" in study.overlap.flags:
        parts.append(tag("span", tag("i", class_="swatch none"), " ! no gain: undefined"))
    return tag("p", *parts, class_="legend")
