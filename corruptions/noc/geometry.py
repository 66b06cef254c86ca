"""Geometric corruptions: translation, shear, rotation, elastic; black outside the image."""

import jax
import jax.numpy as jnp

from corruptions.core.corruption import Image, Key, Params, Positions, Severity, Shape
from corruptions.noc import severities
from corruptions.noc.severities import Bounds, looked_up, padding, register, sign
from corruptions.primitives import color, filters, padded
from corruptions.primitives.resizing import triangle_matrix


def _nearest(image, rows, columns, params):
    """Reads image[rows, columns], int32 [H, W] each, black where they lie outside."""
    height, width = padded.own_sides(image.shape, params)
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    flat = jnp.where(inside, rows * image.shape[1] + columns, 0)
    return jnp.where(inside[..., None], image.reshape(-1, image.shape[2])[flat], 0.0)


def _sample_translation(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None) -> Params:
    """Draws how the severity is shared between the axes, and the signs of `dx` and `dy`.

    |dx| and |dy| are independent and uniform over the range when the severity is drawn, as published. The severity is
    the quantile of their sum: 0 gives (mild, mild), 1 gives (severe, severe), and in between the shares are uniform
    among those with that sum.

    Options: `range` of both shifts in pixels, by default 15..62 at 224.
    """
    share_key, x_key, y_key = jax.random.split(key, 3)
    bounds = severities.resolve("translation", shape, range)
    # Inverse distribution function of the sum of two independent uniform fractions.
    total = jnp.where(severity < 0.5, jnp.sqrt(2 * severity), 2 - jnp.sqrt(jnp.maximum(0.0, 2 - 2 * severity)))
    least, greatest = jnp.maximum(total - 1, 0.0), jnp.minimum(total, 1.0)
    along_x = least + (greatest - least) * jax.random.uniform(share_key)
    shifts = [severities.value("translation", bounds, f) for f in (along_x, total - along_x)]
    signs = [sign(k).astype(jnp.int32) for k in (x_key, y_key)]
    return {"dx": shifts[0] * signs[0], "dy": shifts[1] * signs[1]}


def _map_translation(shape: Shape, params: Params) -> Positions:
    return jnp.arange(shape[0])[:, None] - params["dy"], jnp.arange(shape[1])[None, :] - params["dx"]


@register(
    "geometry",
    _sample_translation,
    {"dx": "pixels", "dy": "pixels"},
    moves="moves the image by whole pixels",
    mapper=_map_translation,
    padding=padding("translation"),
)
def translation(image: Image, params: Params) -> Image:
    """Moves by whole pixels: out(x, y) = in(x - dx, y - dy). Source: ImageNet-NOC, translation."""
    height, width = padded.own_sides(image.shape, params)
    rows, columns = (place.ravel() for place in _map_translation(image.shape, params))
    moved = jnp.where(((rows >= 0) & (rows < height))[:, None, None], image[jnp.clip(rows, 0, height - 1)], 0.0)
    inside = (columns >= 0) & (columns < width)
    return jnp.where(inside[:, None], moved[:, jnp.clip(columns, 0, width - 1)], 0.0)


def _map_shear(shape: Shape, params: Params) -> Positions:
    height, _ = padded.own_sides(shape, params)
    rows, columns = (jnp.arange(n, dtype=jnp.float32) for n in shape[:2])
    rows, columns = rows[:, None], columns[None, :]
    tangent = jnp.tan(jnp.deg2rad(params["degrees"]))
    source = jnp.floor(columns + 0.5 + tangent * (rows - height / 2)).astype(jnp.int32)
    return jnp.broadcast_to(rows.astype(jnp.int32), source.shape), source


@register(
    "geometry",
    looked_up("shear", "degrees", signed=True),
    {"degrees": "degrees"},
    moves="shears the image",
    mapper=_map_shear,
)
def shear(image: Image, params: Params) -> Image:
    """Shears along x to the nearest pixel: out(x, y) = in(x + tan(a) (y - cy), y).

    As torchvision 0.6: the centre is cy = H/2 + 1/2, half a pixel off, and pixel y lies at y + 1/2. Source:
    ImageNet-NOC, shear.
    """
    return _nearest(image, *_map_shear(image.shape, params), params)


def _map_rotation(shape: Shape, params: Params) -> Positions:
    height, width = padded.own_sides(shape, params)
    angle = jnp.deg2rad(params["degrees"])
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    v = jnp.arange(shape[0], dtype=jnp.float32)[:, None] - height / 2
    u = jnp.arange(shape[1], dtype=jnp.float32)[None, :] - width / 2
    rows = jnp.floor(cosine * v - sine * u + height / 2 + 0.5).astype(jnp.int32)
    return rows, jnp.floor(cosine * u + sine * v + width / 2 + 0.5).astype(jnp.int32)


@register(
    "geometry",
    looked_up("rotation", "degrees", signed=True),
    {"degrees": "degrees"},
    moves="turns the image",
    mapper=_map_rotation,
)
def rotation(image: Image, params: Params) -> Image:
    """Rotates about the centre, to the nearest pixel.

    out(x, y) = in(cos(a) u + sin(a) v + cx, -sin(a) u + cos(a) v + cy), (u, v) being the distance of the pixel's
    middle from the centre (cx, cy) = (W/2 + 1/2, H/2 + 1/2), half a pixel off as in torchvision 0.6. Source:
    ImageNet-NOC, rotation.
    """
    return _nearest(image, *_map_rotation(image.shape, params), params)


def _sample_elastic(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None) -> Params:
    """Draws `upright`, whether rows rather than columns are cut, with probability 1/2.

    Options: `range` of the number of rows or columns cut, by default 44..110 at 224.
    """
    return {"cut": severities.lookup("elastic", shape, range, severity), "upright": jax.random.bernoulli(key)}


def _stretched(shape, params):
    """Makes the matrices that cut and stretch rows [H, H] and columns [W, W]."""
    cuts = (jnp.where(params["upright"], params["cut"], 0), jnp.where(params["upright"], 0, params["cut"]))
    own = padded.own_sides(shape, params)
    return [
        triangle_matrix(side, side - cut, size, size, first=cut)
        for size, side, cut in zip(shape[:2], own, cuts, strict=True)
    ]


@register(
    "geometry",
    _sample_elastic,
    {"cut": "pixels", "upright": "bool"},
    moves="cuts rows or columns and stretches the rest",
    mapper=lambda shape, params: filters.positions(*_stretched(shape, params)),
    padding=padding("elastic"),
)
def elastic(image: Image, params: Params) -> Image:
    """Cuts the top rows (or the left columns) and stretches the rest to the full size.

    Interpolates linearly as PIL does. Despite its name this deforms nothing, and is unrelated to ImageNet-C's
    elastic_transform. Source: ImageNet-NOC, elastic.
    """
    return color.clip(filters.separable(image, *_stretched(image.shape, params)))
