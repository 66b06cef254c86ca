"""Occlusions: obstruction, border, dashed marks, and painted shapes."""

import jax
import jax.numpy as jnp

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.noc import severities, stamps
from corruptions.noc.severities import Bounds, grey_value, integer, padding, register
from corruptions.primitives import color, padded, painting


def _sample_obstruction(
    key: Key, shape: Shape, severity: Severity, *, range: Bounds = None, grey: float | None = None
) -> Params:
    """Draws `top` and `left`, uniform where the square fits, and `grey`, uniform in [0, 1).

    Options: `range` of the side in pixels, by default 47..125 at 224 (50..120 in arXiv 2105.12357); `grey`, a fixed
    grey.
    """
    place_key, grey_key = jax.random.split(key)
    side = severities.lookup("obstruction", shape, range, severity)
    row_key, column_key = jax.random.split(place_key)
    height, width = padded.own(shape)[:2]
    return {
        "side": side,
        "top": integer(row_key, 0, height - side),
        "left": integer(column_key, 0, width - side),
        "grey": grey_value(grey_key, grey),
    }


@register(
    "occlusion",
    _sample_obstruction,
    {"side": "pixels", "top": "pixels", "left": "pixels", "grey": "intensity"},
    padding=padding("obstruction"),
)
def obstruction(image: Image, params: Params) -> Image:
    """Paints one grey square of `side` pixels: mild + floor(f (severe - mild + 1)), at most severe, at severity f.

    At 224x224 from 47 pixels (f = 0) to 125 (f = 1); at other sizes both ends are max(1, round(end min(H, W) / 224)).
    Source: ImageNet-NOC, obstruction.
    """
    rows, columns = jnp.arange(image.shape[0])[:, None], jnp.arange(image.shape[1])[None, :]
    inside = (rows >= params["top"]) & (rows < params["top"] + params["side"])
    inside &= (columns >= params["left"]) & (columns < params["left"] + params["side"])
    return jnp.where(inside[..., None], params["grey"], image)


def _sample_border(
    key: Key, shape: Shape, severity: Severity, *, range: Bounds = None, grey: float | None = None
) -> Params:
    """Draws `grey`, uniform in [0, 1).

    Options: `range` of the thickness in pixels, by default 9..46 at 224 (10..45 in arXiv 2105.12357); `grey`, a fixed
    grey (0.5 in the first released code).
    """
    return {"thickness": severities.lookup("border", shape, range, severity), "grey": grey_value(key, grey)}


@register("occlusion", _sample_border, {"thickness": "pixels", "grey": "intensity"}, padding=padding("border"))
def border(image: Image, params: Params) -> Image:
    """Paints a grey frame of `thickness` pixels: mild + floor(f (severe - mild + 1)), at most severe, at severity f.

    At 224x224 from 9 pixels (mild, f = 0) to 46 (severe, f = 1), 28 at f = .5; at other sizes both ends are
    max(1, round(end min(H, W) / 224)). Source: ImageNet-NOC, border.
    """
    height, width = padded.own_sides(image.shape, params)
    rows, columns = jnp.arange(image.shape[0])[:, None], jnp.arange(image.shape[1])[None, :]
    distance = jnp.minimum(jnp.minimum(rows, height - 1 - rows), jnp.minimum(columns, width - 1 - columns))
    return jnp.where((distance < params["thickness"])[..., None], params["grey"], image)


_MARKS = {"number": "marks", "lines": "pixels", "centres": "pixels", "tailed": "bool", "grey": "intensity"}


def _sample_marks(key, name, shape, bounds, severity):
    """Draws marks on the lines (axis 0) of `shape`, as many as the range allows."""
    greatest = (max(1, *bounds),)
    mark = stamps.mark(shape)
    line_key, centre_key, tail_key, grey_key = jax.random.split(key, 4)
    last_line, last_centre = shape[0] - 1 - mark.half_height, shape[1] - 1 - mark.half_length
    return {
        "number": severities.value(name, bounds, severity),
        "lines": integer(line_key, mark.half_height, last_line, greatest),
        "centres": integer(centre_key, mark.half_length, last_centre, greatest),
        "tailed": jax.random.bernoulli(tail_key, stamps.TAIL_PROBABILITY, greatest),
        "grey": jax.random.uniform(grey_key),
    }


def _covered(params, shape):
    """Finds the pixels of the marks, bool [H, W], on an image whose lines are axis 0."""
    mark = stamps.mark(shape)
    lines, centres, tailed = (params[k][:, None] for k in ("lines", "centres", "tailed"))
    painted = (jnp.arange(lines.shape[0]) < params["number"])[:, None]
    rows = painted & (jnp.abs(jnp.arange(shape[0])[None, :] - lines) <= mark.half_height)
    offset = jnp.arange(shape[1])[None, :] - centres
    columns = jnp.abs(offset) <= mark.half_length
    for tail in filter(None, (mark.left, mark.right)):
        # A tail that does not fit into the image is not painted at all.
        fits = (centres + tail[0] >= 0) & (centres + tail[-1] < shape[1])
        dots = (offset >= tail[0]) & (offset <= tail[-1]) & ((offset - tail[0]) % 2 == 0)
        columns |= dots & fits & tailed
    return painting.covered_by_products(rows, columns)


def _sample_artifacts(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None) -> Params:
    """Draws the places of the marks, which have tails, and one `grey` for all, uniform in [0, 1).

    At 224 `lines` are uniform in 1..H-2 and `centres` in 2..W-3, so that no dash leaves the image; a mark is `tailed`
    with probability 6/7.

    Options: `range` of their number, by default 14..170 at 224.
    """
    bounds = severities.resolve("artifacts", shape, range)
    return _sample_marks(key, "artifacts", shape, bounds, severity)


@register("occlusion", _sample_artifacts, _MARKS, padding=None)
def artifacts(image: Image, params: Params) -> Image:
    """Paints n marks of one grey: a dash of 5 pixels with dotted tails of 10, three lines high.

    These are the sizes at 224, see `stamps.mark`. Source: ImageNet-NOC, artifacts.
    """
    return jnp.where(_covered(params, image.shape)[..., None], params["grey"], image)


def _sample_vertical_artifacts(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None) -> Params:
    """Draws as `artifacts`, with the axes swapped; the published code does so for squares only.

    Options: `range` of their number, by default 14..180 at 224.
    """
    bounds = severities.resolve("vertical_artifacts", shape, range)
    return _sample_marks(key, "vertical_artifacts", (shape[1], shape[0]), bounds, severity)


@register("occlusion", _sample_vertical_artifacts, _MARKS, padding=None)
def vertical_artifacts(image: Image, params: Params) -> Image:
    """Paints `artifacts` with the axes swapped. Source: ImageNet-NOC, vertical_artifacts."""
    covered = _covered(params, (image.shape[1], image.shape[0])).T
    return jnp.where(covered[..., None], params["grey"], image)


_SHAPES = {"number": "shapes", "rows": "pixels", "columns": "pixels"}


def _number_and_centres(key, name, shape, custom, fraction, runs):
    """Looks up how many shapes, and draws the centres of as many as the range allows.

    Rows and columns are uniform where the shape stays inside the image (7..H-7 and 7..W-7 at 224).
    """
    bounds = severities.resolve(name, shape, custom)
    greatest = (max(1, *bounds),)
    row_key, column_key = jax.random.split(key)
    margin = stamps.margin(runs)
    return {
        "number": severities.value(name, bounds, fraction),
        "rows": integer(row_key, margin, shape[0] - margin, greatest),
        "columns": integer(column_key, margin, shape[1] - margin, greatest),
    }


def _paint(image, params, runs):
    """Paints shapes of one grey each, later ones over earlier ones."""
    return painting.paint(image, params["rows"], params["columns"], params["number"], params["greys"], runs)


def _sample_rhombus(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None) -> Params:
    """Draws the centres, `rows` and `columns`, and `greys`, uniform in [0, 1).

    Options: `range` of the number of lozenges, by default 9..76 at 224.
    """
    centre_key, grey_key = jax.random.split(key)
    runs = stamps.lozenge(shape)
    params = _number_and_centres(centre_key, "rhombus", shape, range, severity, runs)
    return params | {"greys": jax.random.uniform(grey_key, params["rows"].shape)}


@register("occlusion", _sample_rhombus, _SHAPES | {"greys": "intensity"}, padding=None)
def rhombus(image: Image, params: Params) -> Image:
    """Paints n lozenges of one grey each, later over earlier; 13 x 14 pixels at 224, as released.

    Source: ImageNet-NOC, rhombus.
    """
    return _paint(image, params, stamps.lozenge(image.shape))


def _sample_circle(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None) -> Params:
    """Draws the centres, `rows` and `columns`, and `greys`, uniform in [0, 1).

    Options: `range` of the number of discs, by default 7..50 at 224.
    """
    centre_key, grey_key = jax.random.split(key)
    params = _number_and_centres(centre_key, "circle", shape, range, severity, stamps.disc(shape))
    return params | {"greys": jax.random.uniform(grey_key, params["rows"].shape)}


@register("occlusion", _sample_circle, _SHAPES | {"greys": "intensity"}, padding=None)
def circle(image: Image, params: Params) -> Image:
    """Paints n discs of one grey each, later over earlier; 13 x 13 pixels at 224, as released.

    Source: ImageNet-NOC, circle.
    """
    return _paint(image, params, stamps.disc(image.shape))


def _sample_rain(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None) -> Params:
    """Draws the centres, `rows` and `columns`.

    Options: `range` of the number of discs, by default 12..120 at 224.
    """
    return _number_and_centres(key, "rain", shape, range, severity, stamps.disc(shape))


@register("weather", _sample_rain, _SHAPES, padding=None)
def rain(image: Image, params: Params) -> Image:
    """Paints n translucent discs: each takes x to (1 + x) / 2, hence m of them to 1 - (1 - x) 2^-m.

    Source: ImageNet-NOC, rain.
    """
    covering = painting.covering(
        params["rows"], params["columns"], params["number"], stamps.disc(image.shape), image.shape
    )
    # This form does not change a pixel that no disc covers.
    return color.clip(image + (1 - image) * (1 - jnp.exp2(-covering))[..., None])


def _sample_arlequin(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None) -> Params:
    """Draws the centres, `rows` and `columns`, and `colour`, uniform in [0, 1)^3.

    Options: `range` of the number of lozenges, by default 3..36 at 224.
    """
    centre_key, colour_key = jax.random.split(key)
    runs = stamps.lozenge(shape)
    params = _number_and_centres(centre_key, "arlequin", shape, range, severity, runs)
    return params | {"colour": jax.random.uniform(colour_key, (3,))}


@register(
    "occlusion",
    _sample_arlequin,
    _SHAPES | {"colour": "intensity"},
    mixes="paints shapes of red, green and blue",
    padding=None,
)
def arlequin(image: Image, params: Params) -> Image:
    """Paints n lozenges, all of one colour.

    Source: arlequin of the first released code; the authors left it out of their 23 candidates.
    """
    runs = stamps.lozenge(image.shape)
    covering = painting.covering(params["rows"], params["columns"], params["number"], runs, image.shape)
    return jnp.where((covering > 0)[..., None], params["colour"], image)
