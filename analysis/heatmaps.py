"""Heatmaps of overlap and transfer: one hue from white to dark for overlaps, readable in grey."""

from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from analysis.figures import GREY, set_titles
from analysis.rounding import compact

_MARKS = {"weak": " *", "invalid": " !"}
_LEGEND = {"weak": "* weak gain: unreliable", "invalid": "! no gain: undefined"}
UNCERTAIN = 0.25  # cells with a larger standard error are hatched


def cluster_tree(matrix):
    """Hierarchical clustering of n >= 2 corruptions: SciPy's linkage [n - 1, 4], average linkage on
    the distance 1 - O (O clipped to [0, 1], NaN as 0), with optimal leaf ordering."""
    distance = 1 - np.clip(np.nan_to_num(np.asarray(matrix, float)), 0, 1)
    np.fill_diagonal(distance, 0)
    return hierarchy.linkage(squareform(distance, checks=False), method="average", optimal_ordering=True)


def cluster_order(matrix: ArrayLike) -> np.ndarray:
    """Orders overlapping corruptions next to each other, [n]: the leaves of `cluster_tree`."""
    return np.arange(len(matrix)) if len(matrix) < 3 else hierarchy.leaves_list(cluster_tree(matrix))


class Scale(NamedTuple):
    """How values become colours: a Matplotlib colormap, the values at its ends, and what they
    are.
    """

    colours: str
    low: float
    high: float
    label: str


OVERLAP = Scale("Blues", 0, 1, "overlap")
TRANSFER = Scale("RdBu", -1, 1, "transfer")


def heatmap(
    matrix,
    names,
    *,
    flags=None,
    se=None,
    title="Corruption overlap",
    provenance="",
    cluster=False,
    scale=OVERLAP,
    order=None,
    values=True,
    directed=False,
):
    """Heatmap of an overlap matrix, or of directed transfers.

    Args:
      matrix: O or T [n, n]; NaN entries are hatched, the diagonal is grey.
      names: n labels.
      flags: n of "", "weak", "invalid", marked on the labels; None for none.
      se: standard errors [n, n], printed small under the values; None leaves them out. A pair with
        a weak gain prints `weak` in place of a number that nobody should read (`weak_pairs`).
      title: above the matrix. provenance: a second, small line (revision, versions, seeds).
      cluster: order by `cluster_order` instead of as given.
      scale: colours and their meaning.
      order: any other order of rows and columns, [n].
      values: whether values are printed; without them cells are smaller.
      directed: whether the cells are transfers from the row to the column.

    Returns:
      A Matplotlib figure for `analysis.figures.save`.
    """
    matrix, names = np.asarray(matrix, float), tuple(names)
    n = len(names)
    if matrix.shape != (n, n):
        raise ValueError(f"expected a matrix of {n} names, found shape {matrix.shape}")
    flags = tuple(flags) if flags is not None else ("",) * n
    if len(flags) != n or set(flags) - {"", *_MARKS}:
        raise ValueError(f"expected {n} flags of '', 'weak', 'invalid', found {flags}")
    if order is None:
        order = cluster_order(matrix) if cluster else np.arange(n)
    matrix = matrix[np.ix_(order, order)]
    se = None if se is None else np.asarray(se, float)[np.ix_(order, order)]
    weak = weak_pairs(flags, directed)[np.ix_(order, order)] & ~np.isnan(matrix)
    labels = [names[i] + _MARKS.get(flags[i], "") for i in order]

    side = max(3.5, (0.42 if values else 0.15) * n + 1.5)
    figure = Figure(figsize=(side + 0.8, side), layout="constrained")
    axes = figure.add_subplot()
    image = draw_cells(axes, matrix, scale, linewidth=0.5)
    image.set_rasterized(False)
    for i, j in np.argwhere(np.isnan(matrix) & ~np.eye(n, dtype=bool)):
        patch = matplotlib.patches.Rectangle((j, i), 1, 1, facecolor="white", edgecolor=GREY, hatch="////", linewidth=0)
        axes.add_patch(patch)
    notes = [text for flag, text in _LEGEND.items() if flag in flags]
    if weak.any() or (se is not None and np.any(se > UNCERTAIN)):
        notes.append(f"hatched colour: weak gain, or standard error above {UNCERTAIN}")
        _hatch(axes, weak if se is None else weak | ((se > UNCERTAIN) & ~np.isnan(matrix)))
    if values:
        _print_values(axes, matrix, se, weak, image)
    axes.set_xticks(np.arange(n) + 0.5, labels, rotation=60, ha="right", fontsize=7)
    axes.set_yticks(np.arange(n) + 0.5, labels, fontsize=7)
    set_titles(axes, title, provenance, notes)
    bar = figure.colorbar(image, ax=axes, shrink=0.7, pad=0.02, extend="max" if scale.low == 0 else "both")
    bar.set_label(scale.label, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def draw_cells(axes: Axes, matrix: np.ndarray, scale: Scale, linewidth: float) -> QuadMesh:
    """Draws the cells of a matrix [n, n], row 0 on top; the diagonal and what is undefined are
    grey.
    """
    n = len(matrix)
    shown = np.ma.masked_invalid(matrix)
    shown[np.eye(n, dtype=bool)] = np.ma.masked
    axes.set_facecolor("#dddddd")
    axes.tick_params(length=0)
    axes.set(xlim=(0, n), ylim=(n, 0), aspect="equal")
    colours = {"cmap": scale.colours, "vmin": scale.low, "vmax": scale.high}
    return axes.pcolormesh(shown, **colours, edgecolors="white", linewidth=linewidth)


def weak_pairs(flags, directed=False):
    """Marks the pairs whose number rests on a weak gain, bool [n, n], never the diagonal.

    An overlap divides by the gains of both corruptions, a transfer (`directed`) from i to j by that
    of j alone. Divided by a gain that may be 0, value and standard error mean nothing.
    """
    tested = np.tile([flag == "weak" for flag in flags], (len(flags), 1))
    return (tested if directed else tested | tested.T) & ~np.eye(len(flags), dtype=bool)


def _hatch(axes, unsure):
    """Draws white lines over what is hardly known, so that a dark colour does not pass for a
    finding.
    """
    for i, j in np.argwhere(unsure):
        if i != j:
            lines = {"facecolor": "none", "edgecolor": (1, 1, 1, 0.45), "hatch": "//////", "linewidth": 0}
            axes.add_patch(matplotlib.patches.Rectangle((j, i), 1, 1, **lines))


def _print_values(axes, matrix, se, weak, image):
    for i, j in np.argwhere(~np.isnan(matrix)):
        bright = i == j or luminance(image.cmap(image.norm(matrix[i, j]))) > 0.179  # both contrast equally there
        text, error = compact(matrix[i, j], None if se is None or i == j else se[i, j])
        if weak[i, j]:
            text, error = "weak", ""
        axes.text(
            j + 0.5,
            i + 0.5,
            f"{text}\n{error}" if error else text,
            ha="center",
            va="center",
            linespacing=0.9,
            color="black" if bright else "white",
            fontsize=5 if se is not None else 6.5,
        )


def luminance(rgba: ArrayLike) -> np.ndarray:
    """Computes the relative luminance of an sRGB colour in [0, 1] (WCAG 2)."""
    rgb = np.asarray(rgba)[:3]
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def side_by_side(matrices: dict[str, np.ndarray], names) -> Figure:
    """Draws the overlap matrices [n, n] of several studies side by side, in one order and on one scale of colours.

    The diagonal and undefined cells are grey.
    """
    n, side = len(names), 1.2 + 0.17 * len(names)
    figure = Figure(figsize=(side * len(matrices) + 1.5, side + 1), layout="constrained")
    panels = figure.subplots(1, len(matrices), sharey=True, squeeze=False)[0]
    for axes, (label, matrix) in zip(panels, matrices.items(), strict=True):
        image = draw_cells(axes, matrix, OVERLAP, linewidth=0.3)
        axes.set_xticks(np.arange(n) + 0.5, names, rotation=90, fontsize=6)
        axes.set_yticks(np.arange(n) + 0.5, names, fontsize=6)
        axes.set_title(label, fontsize=9)
    bar = figure.colorbar(image, ax=panels, shrink=0.7, pad=0.02, extend="max")
    bar.set_label(OVERLAP.label, fontsize=8)
    return figure
