"""Figures of overlaps: heatmaps with the tree of clusters, bars, a threshold sweep; and the files of all figures.

Figures are drawn with Matplotlib's object interface (no global state, no display) in Okabe and Ito's colours, readable
with colour-blindness and in grey. One figure serves the page of a report, the docs and print: `svg` gives it parts that
tell their values under the pointer and the keyboard focus.
"""

import io
import pathlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from analysis.cells import OVERLAP, TRANSFER, VALUES, Scale, draw_cells, hatch
from analysis.frames import compact
from runtime import files
from runtime.files import write_atomically

FORMATS = ("png", "pdf")
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "black")
_SVG = "http://www.w3.org/2000/svg"
_WITHOUT_DATES = {  # equal figures are equal files
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
    "svg": dict.fromkeys(("Creator", "Date", "Format", "Type")),
}


class Part(NamedTuple):
    """A rectangle of a figure with a title, in data coordinates of the figure's first axes."""

    x: float
    y: float
    width: float
    height: float
    title: str


def remove(folder: pathlib.Path, stems: Iterable[str], formats: Sequence[str] = FORMATS) -> None:
    """Deletes the files `<stem>.<format>` of a folder that an earlier run left."""
    for stem in stems:
        for name in formats:
            files.remove(folder / f"{stem}.{name}")


def save(figure: Figure, stem: str | pathlib.Path, formats: Sequence[str] = FORMATS, dpi: int = 200) -> list:
    """Writes `<stem>.<format>` for every format, atomically; returns the paths."""
    paths = [pathlib.Path(f"{stem}.{name}") for name in formats]
    if figure.get_layout_engine():
        figure.draw_without_rendering()
        figure.set_layout_engine(None)
    # Measured once: Matplotlib's "tight" draws the figure once more for each format.
    box = figure.get_tightbbox().padded(matplotlib.rcParams["savefig.pad_inches"])
    for name, path in zip(formats, paths, strict=True):
        write_atomically(path, _drawn(figure, name, dpi=dpi, bbox_inches=box))
    return paths


def svg(figure: Figure, parts: Iterable[Part] = ()) -> str:
    """Draws a figure as SVG text; equal figures give equal text.

    `parts` become transparent rectangles, in the group `parts`, whose titles a browser shows; the first one can be
    reached by the keyboard.
    """
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(_drawn(figure, "svg"))
    width, height = (float(number) for number in root.attrib["viewBox"].split()[2:])
    group = ElementTree.SubElement(root, "g", {"class": "parts", "fill": "transparent"})
    place = figure.axes[0].transData + figure.transFigure.inverted()  # as fractions, of any resolution
    for k, part in enumerate(parts):
        corners = place.transform([(part.x, part.y), (part.x + part.width, part.y + part.height)])
        (left, low), (right, high) = np.sort(corners, axis=0) * (width, height)
        box = {"x": left, "y": height - high, "width": right - left, "height": high - low}
        at = {name: f"{value:.2f}" for name, value in box.items()}
        rectangle = ElementTree.SubElement(group, "rect", {**at, "role": "img", "tabindex": str(-(k > 0))})
        ElementTree.SubElement(rectangle, "title").text = part.title
    return ElementTree.tostring(root, encoding="unicode")


def _drawn(figure, name, **options):
    buffer = io.BytesIO()
    with matplotlib.rc_context({"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "overlap"}):  # text is text
        figure.savefig(buffer, format=name, metadata=_WITHOUT_DATES[name], **options)
    figure.set_layout_engine(
        None
    )  # the layout stays as it was first drawn; "none" would draw the figure twice each time
    return buffer.getvalue()


def panels(
    number: int, columns: int, side: tuple[float, float], least: float, above: float
) -> tuple[Figure, list[Axes]]:
    """Makes a figure of `number` tidy panels in rows of at most `columns`.

    Sizes in inches: `side`, width and height of a panel; `least`, width of the figure; `above`, its height beside the panels.
    """
    columns = min(columns, number)
    rows = -(-number // columns)
    figure = Figure(figsize=(max(least, side[0] * columns), side[1] * rows + above), layout="constrained")
    made = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in made[number:]:
        axes.set_axis_off()
    for axes in made[:number]:
        tidy(axes)
    return figure, made[:number]


def tidy(axes: Axes) -> None:
    """Makes labels small, shows a faint grid, and leaves the upper and the right line out."""
    axes.tick_params(labelsize=6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=GREY, linewidth=0.3, alpha=0.5)


class Panel(NamedTuple):
    """Values of n corruptions, drawn as bars."""

    label: str  # of the axis
    values: ArrayLike  # [n]; NaN has no bar
    texts: Sequence[str] = ()  # n texts beside the bars, or ()
    se: ArrayLike | None = None  # standard errors [n], or None
    limit: float | None = None  # end of the axis, or None


def bars(
    names: Sequence[str],
    panels: Sequence[Panel],
    *,
    members: Iterable[str] = (),
    title: str = "",
    provenance: str = "",
    notes: Sequence[str] = (),
) -> tuple[Figure, np.ndarray]:
    """Draws a bar for each corruption in one panel or more, largest value of the first panel on top.

    `names` are n labels, `members` those whose bars have another colour; for `title`, `provenance` and `notes` see
    `set_titles`. Returns (figure, order of the rows [n]); raises ValueError for a panel of another length.
    """
    names, n = tuple(names), len(names)
    for panel in panels:
        if np.shape(panel.values) != (n,) or not n:
            raise ValueError(f"expected one value for each of {n} names, found {np.shape(panel.values)}")
    order = np.argsort(-np.nan_to_num(np.asarray(panels[0].values, float), nan=-np.inf), kind="stable")
    width = 3.1 * len(panels) + 0.3 + 0.06 * max(map(len, names))
    height = max(1.3, 0.19 * n + 0.8) + 0.13 * (len(notes) + bool(provenance))
    figure = Figure(figsize=(width, height), layout="constrained")
    drawn = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    colours = [ORANGE if names[k] in members else BLUE for k in order]
    for axes, panel in zip(drawn, panels, strict=True):
        values = np.asarray(panel.values, float)[order]
        axes.barh(np.arange(n), values, color=colours, height=0.72)
        if panel.se is not None:
            ends = np.asarray(panel.se, float)[order]
            axes.errorbar(values, np.arange(n), xerr=ends, fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
        axes.set(ylim=(n - 0.4, -0.6), xlim=(min(0, axes.get_xlim()[0]), panel.limit))
        axes.axvline(0, color=GREY, linewidth=0.8)
        for row, k in enumerate(order if panel.texts else ()):
            axes.text(1.01, row, panel.texts[k], transform=axes.get_yaxis_transform(), fontsize=6.5, va="center")
        axes.set_yticks(np.arange(n), [names[k] for k in order], fontsize=7)
        axes.set_xlabel(panel.label, fontsize=7)
        axes.tick_params(axis="x", labelsize=6.5)
        axes.tick_params(axis="y", length=0)
        _without_labels(axes.yaxis)
        axes.spines[["top", "right", "left"]].set_visible(False)
    set_titles(drawn[0], title, provenance, notes)
    return figure, order


def threshold_sweep(
    selections: Sequence,
    *,
    mark: float | None = None,
    means: ArrayLike | None = None,
    title: str = "Selected benchmark by threshold",
    provenance: str = "",
) -> Figure:
    """Draws size and mean overlap of the winner at every threshold.

    `selections` are of `analysis.selection.algorithm.sweep`; `mark` is the threshold of a dashed line; `means` are mean
    overlaps in the place of the selections' own, NaN is not drawn. The other lines are those of `set_titles`.
    """
    if not selections:
        raise ValueError("expected at least one selection, found none")
    thresholds = [s.threshold for s in selections]
    means = [s.mean_overlap for s in selections] if means is None else means
    figure = Figure(figsize=(4.5, 3.6), layout="constrained")
    upper, lower = figure.subplots(2, sharex=True, height_ratios=(3, 2))
    upper.step(thresholds, [s.size for s in selections], where="post", color=BLUE, marker="o", ms=3)
    upper.set_ylabel("members", fontsize=8)
    upper.yaxis.get_major_locator().set_params(integer=True)
    lower.step(thresholds, means, where="post", color=ORANGE, marker="s", ms=3)
    if np.isnan(means).all():
        lower.text(0.5, 0.5, "weak", transform=lower.transAxes, color=GREY, fontsize=8, ha="center", va="center")
    lower.set_ylabel("their mean overlap", fontsize=8)
    lower.set_xlabel("largest overlap allowed", fontsize=8)
    for axes in (upper, lower):
        axes.set_ylim(bottom=0)
        if mark is not None:
            axes.axvline(mark, color="black", linestyle="--", linewidth=0.8)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#eaeef2", linewidth=0.6)
        axes.set_axisbelow(True)
    set_titles(upper, title, provenance)
    return figure


def set_titles(axes, title: str, provenance: str = "", notes: Sequence[str] = ()) -> None:
    """Writes a title above the axes and, small below it, notes and where the numbers come from."""
    small = [*notes, provenance] if provenance else list(notes)
    axes.set_title(title, fontsize=9, loc="left", pad=6 + 9 * len(small), y=1)  # else each drawing measures all labels
    for k, line in enumerate(reversed(small)):
        place = {"xytext": (0, 4 + 9 * k), "xycoords": "axes fraction", "textcoords": "offset points"}
        axes.annotate(line, (0, 1), fontsize=6, color="#555555", **place)


MARKS = {"": "", "weak": " *", "invalid": " !"}
"""Flag of a corruption -> mark behind its name."""
UNCERTAIN = 0.25
"""Cells with a larger standard error are hatched."""
ERRORS = 16
"""Most corruptions for which cells show standard errors."""
_LEGEND = {"weak": "* weak gain: unreliable", "invalid": "! no gain: undefined"}


def weak_pairs(flags: Sequence[str], directed: bool = False) -> np.ndarray:
    """Marks the pairs whose number rests on a weak gain, bool [n, n], never the diagonal.

    An overlap divides by the gains of both corruptions, a transfer (`directed`) from i to j by the gain of j alone. Where
    the gain may be 0, value and standard error mean nothing.
    """
    tested = np.tile([flag == "weak" for flag in flags], (len(flags), 1))
    return (tested if directed else tested | tested.T) & ~np.eye(len(flags), dtype=bool)


def cluster_tree(matrix: ArrayLike, flags: Sequence[str] = ()) -> np.ndarray:
    """Clusters n >= 2 corruptions: SciPy's linkage [n - 1, 4], average linkage on the distance 1 - O with optimal leaf
    ordering. O is clipped to [0, 1]; an undefined overlap and one that rests on a weak gain count as 0.
    """
    distance = 1 - np.clip(np.nan_to_num(np.asarray(matrix, float)), 0, 1)
    if len(flags):
        distance[weak_pairs(flags)] = 1
    np.fill_diagonal(distance, 0)
    return hierarchy.linkage(squareform(distance, checks=False), method="average", optimal_ordering=True)


def cluster_order(matrix: ArrayLike, flags: Sequence[str] = ()) -> np.ndarray:
    """Orders overlapping corruptions next to each other, [n]: the leaves of `cluster_tree`."""
    return np.arange(len(matrix)) if len(matrix) < 3 else hierarchy.leaves_list(cluster_tree(matrix, flags))


def heatmap(
    matrix: ArrayLike,
    names: Sequence[str],
    *,
    flags: Sequence[str] | None = None,
    se: ArrayLike | None = None,
    order: ArrayLike | None = None,
    tree: bool = False,
    scale: Scale = OVERLAP,
    title: str = "Corruption overlap",
    provenance: str = "",
    notes: Sequence[str] = (),
) -> Figure:
    """Draws overlaps, or directed transfers from the row to the column.

    Cells show values for at most `VALUES` corruptions, errors for at most `ERRORS`. A pair with a weak gain shows `weak`
    on grey in the place of a number that nobody should read. Undefined cells are hatched, the diagonal is grey.

    Args:
      matrix: O or T [n, n]; NaN is undefined.
      names: n labels.
      flags: n of "", "weak", "invalid", marked on the labels; None for none.
      se: standard errors [n, n], or None.
      order: order of rows and columns, [n]; None keeps that of `names`.
      tree: order by `cluster_order` and draw the tree at the right: two branches join at the mean overlap of their
        members.
      scale: `OVERLAP` or `TRANSFER`.
      title, provenance, notes: see `set_titles`.

    Raises ValueError for shapes that do not fit, or an unknown flag.
    """
    matrix, names = np.asarray(matrix, float), tuple(names)
    n, directed = len(names), scale is TRANSFER
    if matrix.shape != (n, n):
        raise ValueError(f"expected a matrix of {n} names, found shape {matrix.shape}")
    flags = tuple(flags) if flags is not None else ("",) * n
    if len(flags) != n or set(flags) - set(MARKS):
        raise ValueError(f"expected {n} flags of '', 'weak', 'invalid', found {flags}")
    order = cluster_order(matrix, flags) if tree else np.arange(n) if order is None else np.asarray(order)
    weak = (weak_pairs(flags, directed) & ~np.isnan(matrix))[np.ix_(order, order)]
    values = np.where(weak, np.nan, matrix[np.ix_(order, order)])
    errors = None if se is None or n > ERRORS else np.asarray(se, float)[np.ix_(order, order)]
    unsure = np.zeros((n, n), bool) if se is None else np.asarray(se)[np.ix_(order, order)] > UNCERTAIN

    side = (0.42 if n <= VALUES else 0.15) * n + 0.6 + 0.06 * max(map(len, names))
    beside = 1.1 + (0.16 * (side - 1) if tree else 0)  # inches for the colour scale and the tree
    figure = Figure(figsize=(max(3.5, side) + beside, max(3.4, side)), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.15)  # inches, without which the title of a high figure is cut
    axes = figure.add_subplot()
    image = draw_cells(axes, values, scale, linewidth=0.5)
    off = ~np.eye(n, dtype=bool)
    hatch(axes, np.isnan(values) & ~weak & off, facecolor="white", edgecolor=GREY, hatch="////")
    hatch(axes, unsure & ~np.isnan(values) & off, facecolor="none", edgecolor=(1, 1, 1, 0.45), hatch="//////")
    if n <= VALUES:
        _print_values(axes, values, errors, weak, image)
    labels = [names[k] + MARKS[flags[k]] for k in order]
    axes.set_xticks(np.arange(n) + 0.5, labels, rotation=60, ha="right", rotation_mode="anchor", fontsize=7)
    axes.set_yticks(np.arange(n) + 0.5, labels, fontsize=7)
    if directed:
        axes.set_ylabel("trained with", fontsize=8)
        axes.set_xlabel("tested on", fontsize=8)
    else:
        _without_labels(axes.xaxis, axes.yaxis)
    notes = [*notes, *(text for flag, text in _LEGEND.items() if flag in flags)]
    notes += [f"hatched colour: standard error above {UNCERTAIN}"] if (unsure & ~np.isnan(values) & off).any() else []
    set_titles(axes, title, provenance, notes)
    if tree and n > 2:
        _draw_tree(axes, matrix, flags)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02, extend="both" if directed else "max")
    bar.set_label(scale.label, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def _without_labels(*axis):
    """Places labels that do not exist: else each drawing measures every tick to place them."""
    for of in axis:
        of.set_label_coords(0, 0)


def _print_values(axes, matrix, se, weak, image):
    for i, j in np.argwhere(~np.isnan(matrix) | weak):
        text, error = compact(matrix[i, j], None if se is None or i == j else se[i, j])
        if weak[i, j]:
            text, error = "weak", ""
        bright = i == j or weak[i, j] or luminance(image.cmap(image.norm(matrix[i, j]))) > 0.179  # equal contrast there
        colour = "#777777" if weak[i, j] else "black" if bright else "white"
        look = {"ha": "center", "va": "center", "linespacing": 0.9, "color": colour}
        cell = f"{text}\n{error}" if error else text
        axes.text(j + 0.5, i + 0.5, cell, fontsize=5 if se is not None else 6.5, **look)


def _draw_tree(axes, matrix, flags):
    """Draws the dendrogram at the right of the matrix, from overlap 1 at its left end to 0."""
    n, beside = len(matrix), axes.inset_axes((1.01, 0, 0.16, 1))
    drawn = hierarchy.dendrogram(cluster_tree(matrix, flags), no_plot=True)
    for y, x in zip(drawn["icoord"], drawn["dcoord"]):
        beside.plot(1 - np.array(x), np.array(y) / 10, color="black", linewidth=0.7)
    beside.set(xlim=(1, 0), ylim=(n, 0))
    beside.set_yticks([])
    beside.set_xticks([1, 0], ["1", "0"], fontsize=6)
    beside.set_xlabel("mean overlap", fontsize=6, labelpad=1)
    beside.tick_params(length=2, pad=1)
    beside.patch.set_alpha(0)
    beside.spines[["top", "left", "right"]].set_visible(False)


def luminance(rgba: ArrayLike) -> np.ndarray:
    """Computes the relative luminance of an sRGB colour in [0, 1] (WCAG 2)."""
    rgb = np.asarray(rgba)[:3]
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
