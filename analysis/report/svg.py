"""Small charts of a report as inline SVG: bars with error bars, two values on one axis, steps, and
a dendrogram.

Bars, pairs and the dendrogram are stretched to the room they get; lines keep their width (the style
sets `vector-effect`). Colours are those of `analysis.figures`.
"""

import math

from scipy.cluster import hierarchy

from analysis.report.html import tag

_STEPS = {"width": 420, "height": 118, "left": 44, "right": 8, "top": 12, "bottom": 24}


def bar(value, se, low, high, kind=None):
    """A horizontal bar from 0 to `value` on the axis low..high, with a line over value +- se."""
    if not math.isfinite(value):
        return tag("svg", viewBox="0 0 100 10", preserveAspectRatio="none", class_="bar", aria_hidden="true")
    at = _scale(low, high)
    left, right = sorted((at(0), at(value)))
    parts = [tag("rect", x=_text(left), y=1, width=_text(right - left), height=8, class_=kind)]
    if low < 0:
        parts.append(tag("line", x1=_text(at(0)), x2=_text(at(0)), y1=0, y2=10, class_="axis"))
    if math.isfinite(se) and se > 0:
        ends = [_text(at(min(max(value + k * se, low), high))) for k in (-1, 1)]
        parts.append(tag("line", x1=ends[0], x2=ends[1], y1=5, y2=5, class_="error"))
    return tag("svg", *parts, viewBox="0 0 100 10", preserveAspectRatio="none", class_="bar", aria_hidden="true")


def bar_range(values, ses):
    """(low, high) of an axis for bars: holds 0, every value, and error bars up to twice the largest
    value.
    """
    known = [(v, s if math.isfinite(s) else 0.0) for v, s in zip(values, ses) if math.isfinite(v)]
    room = 2 * max((abs(v) for v, _ in known), default=0.0) or 1.0
    low = min((v - min(s, room) for v, s in known), default=0.0) if any(v < 0 for v, _ in known) else 0.0
    return low, max([v + min(s, room) for v, s in known if v > 0] or [room])


def pair(before, after, low, high):
    """Two values on one axis, joined: a hollow point for the first, a full one for the second."""
    at = _scale(low, high)
    x, y = _text(2 + 1.16 * at(before)), _text(2 + 1.16 * at(after))
    return tag(
        "svg",
        tag("line", x1=2, x2=118, y1=7, y2=7, class_="rail"),
        tag("line", x1=x, x2=y, y1=7, y2=7, class_="gain"),
        tag("circle", cx=x, cy=7, r=3, class_="before"),
        tag("circle", cx=y, cy=7, r=3.5, class_="after"),
        viewBox="-2 0 124 14",
        class_="pair",
        aria_hidden="true",
    )


def dendrogram(tree, n):
    """The tree of SciPy's linkage beside a matrix of n rows: leaves at the left, distance 0..1 to
    the right.
    """
    drawn = hierarchy.dendrogram(tree, no_plot=True)
    links = []
    for y, x in zip(drawn["icoord"], drawn["dcoord"]):
        a, b, c = (_text(100 * x[k]) for k in (0, 1, 3))
        title = tag("title", f"joined at a mean overlap of {1 - x[1]:.2f}")
        links.append(tag("path", title, d=f"M{a} {_text(y[0])}H{b}V{_text(y[3])}H{c}"))
    label = "Dendrogram of the clustering, from overlap 1 at the left to overlap 0 at the right"
    return tag(
        "svg",
        *links,
        viewBox=f"0 0 100 {10 * n}",
        preserveAspectRatio="none",
        class_="tree",
        role="img",
        aria_label=label,
    )


def steps(x, values, label, colour, mark=None, places=0):
    """A step line over x in [0, 1], each value holding up to the next x.

    Args:
      x, values: of the same length, x ascending.
      label: written above the axis.
      colour: class of the line.
      mark: x of a dashed vertical line, or None.
      places: decimals of the axis' numbers.
    """
    box = _STEPS
    inner = box["width"] - box["left"] - box["right"]
    bottom = box["height"] - box["bottom"]
    top = _round_up(max(values))

    def across(t):
        return _text(box["left"] + inner * t)

    def up(v):
        return _text(bottom - (bottom - box["top"] - 8) * v / top)

    parts = [tag("text", label, x=0, y=9, class_="name")]
    for v in (0, top / 2, top):
        if places or float(v).is_integer():
            parts += [
                tag("line", x1=box["left"], x2=box["width"] - box["right"], y1=up(v), y2=up(v), class_="rail"),
                tag("text", f"{v:.{places}f}", x=box["left"] - 6, y=up(v), dy="0.35em", class_="right"),
            ]
    for t in (0, 0.2, 0.4, 0.6, 0.8, 1):
        parts.append(tag("text", f"{t:g}", x=across(t), y=box["height"] - 8, class_="middle"))
    if mark is not None:
        parts.append(tag("line", x1=across(mark), x2=across(mark), y1=box["top"] + 4, y2=bottom, class_="mark"))
    path = f"M{across(x[0])} {up(values[0])}" + "".join(f"H{across(t)}V{up(v)}" for t, v in zip(x[1:], values[1:]))
    parts.append(tag("path", d=path, class_=colour))
    for t, v in zip(x, values):
        title = tag("title", f"threshold {t:g}: {v:.{places}f}")
        parts.append(tag("circle", title, cx=across(t), cy=up(v), r=2.6, class_=colour))
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {box['width']} {box['height']}",
        class_="steps",
        role="img",
        aria_label=f"{label} by threshold",
    )


def _scale(low, high):
    return lambda value: 100 * (value - low) / (high - low)


def _round_up(value):
    """The next of 1, 1.2, 1.6, 2 ... 10 times a power of ten, all with simple halves; 1 for
    nothing.
    """
    if value <= 0:
        return 1.0
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.2, 1.6, 2, 3, 4, 6, 8, 10) if step * power >= value * (1 - 1e-9))


def _text(number):
    return f"{number:.2f}".rstrip("0").rstrip(".")
