"""Bars, a threshold sweep, and the files of all figures.

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
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from runtime.files import write_atomically

FORMATS = ("png", "pdf")
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
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


def save(figure: Figure, stem: str | pathlib.Path, formats: Sequence[str] = FORMATS, dpi: int = 200) -> list:
    """Writes `<stem>.<format>` for every format, atomically; returns the paths."""
    paths = [pathlib.Path(f"{stem}.{name}") for name in formats]
    for name, path in zip(formats, paths, strict=True):
        write_atomically(path, _drawn(figure, name, dpi=dpi, bbox_inches="tight"))
    return paths


def svg(figure: Figure, parts: Iterable[Part] = ()) -> str:
    """Draws a figure as SVG text; equal figures give equal text.

    Args:
      figure: to be drawn.
      parts: become transparent rectangles, in the group `parts`, whose titles a browser shows; the first one can be
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
    return buffer.getvalue()


class Panel(NamedTuple):
    """Values of n corruptions, drawn as bars.

    Attributes:
      label: of the axis.
      values: [n]; NaN has no bar.
      texts: n texts beside the bars, or ().
      se: standard errors [n], or None.
      limit: end of the axis, or None.
    """

    label: str
    values: ArrayLike
    texts: Sequence[str] = ()
    se: ArrayLike | None = None
    limit: float | None = None


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

    Args:
      names: n labels.
      panels: values.
      members: names whose bars have another colour.
      title, provenance, notes: see `set_titles`.

    Returns:
      (figure, order of the rows [n]).

    Raises:
      ValueError: a panel of another length.
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

    Args:
      selections: of `analysis.selection.algorithm.sweep`.
      mark: threshold of a dashed line, or None.
      means: mean overlaps in the place of the selections' own; NaN is not drawn.
      title, provenance: see `set_titles`.
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
    axes.set_title(title, fontsize=9, loc="left", pad=6 + 9 * len(small))
    for k, line in enumerate(reversed(small)):
        place = {"xytext": (0, 4 + 9 * k), "xycoords": "axes fraction", "textcoords": "offset points"}
        axes.annotate(line, (0, 1), fontsize=6, color="#555555", **place)
