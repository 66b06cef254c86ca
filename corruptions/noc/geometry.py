"""Geometric corruptions: translation, shear, elastic and rotation. What comes from outside the
image is black.
"""

import jax
import jax.numpy as jnp

from corruptions.contract import Corruption, Fraction, Parameter
from corruptions.noc import severity as severities
from corruptions.noc.draws import sign
from corruptions.noc.resampling import triangle_matrix
from corruptions.primitives import filters
from corruptions.registry import register

_SOURCE = "ImageNet-NOC (2021), appendix A, and the released code"


def _nearest(image, rows, columns):
    """image[rows, columns], black where they lie outside; int32 [H, W]."""
    height, width, channels = image.shape
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    flat = jnp.where(inside, rows * width + columns, 0)
    return jnp.where(inside[..., None], image.reshape(-1, channels)[flat], 0.0)


def _sample_translation(key, shape, severity, *, range=None):
    """A shift. Draws: how the severity is shared between the axes; the two signs.

    Both |dx| and |dy| are independent and uniform over the range when the severity is drawn, as
    published. The severity is the quantile of their sum: 0 gives (mild, mild), 1 gives (severe,
    severe), and in between the shares are uniform among those with that sum.

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


def _apply_translation(image, params):
    """out(x, y) = in(x - dx, y - dy) with whole dx and dy (ImageNet-NOC, translation)."""
    height, width, _ = image.shape
    rows, columns = jnp.arange(height) - params["dy"], jnp.arange(width) - params["dx"]
    moved = jnp.where(((rows >= 0) & (rows < height))[:, None, None], image[jnp.clip(rows, 0, height - 1)], 0.0)
    inside = (columns >= 0) & (columns < width)
    return jnp.where(inside[:, None], moved[:, jnp.clip(columns, 0, width - 1)], 0.0)


translation = register(
    Corruption(
        name="translation",
        benchmark="noc",
        family="geometry",
        sampler=_sample_translation,
        applier=_apply_translation,
        scale=Fraction(),
        rounding="nearest",
        parameters=(Parameter("dx", "pixels", _SOURCE), Parameter("dy", "pixels", _SOURCE)),
    )
)


def _sample_shear(key, shape, severity, *, range=None):
    """An angle. Draws: its sign. Options: `range` of the angle in whole degrees, by default
    12..39.
    """
    return {"degrees": severities.lookup("shear", shape, range, severity) * sign(key)}


def _apply_shear(image, params):
    """out(x, y) = in(x + tan(a) (y - cy), y), nearest pixel (ImageNet-NOC, shear).

    As torchvision 0.6: the centre is H/2 + 1/2, half a pixel off, and pixel y lies at y + 1/2.
    """
    height, width, _ = image.shape
    rows, columns = jnp.arange(height)[:, None], jnp.arange(width)
    tangent = jnp.tan(jnp.deg2rad(params["degrees"]))
    source = jnp.floor(columns + 0.5 + tangent * (rows - height / 2)).astype(jnp.int32)
    return _nearest(image, jnp.broadcast_to(rows, source.shape), source)


shear = register(
    Corruption(
        name="shear",
        benchmark="noc",
        family="geometry",
        sampler=_sample_shear,
        applier=_apply_shear,
        scale=Fraction(),
        rounding="nearest",
        parameters=(Parameter("degrees", "degrees", _SOURCE),),
    )
)


def _sample_rotation(key, shape, severity, *, range=None):
    """An angle. Draws: its sign. Options: `range` of the angle in whole degrees, by default
    7..50.
    """
    return {"degrees": severities.lookup("rotation", shape, range, severity) * sign(key)}


def _apply_rotation(image, params):
    """Rotation about the centre, nearest pixel (ImageNet-NOC, rotation).

    out(x, y) = in(cos(a) u + sin(a) v + cx, -sin(a) u + cos(a) v + cy), (u, v) being the distance
    of the pixel's middle from the centre (W/2 + 1/2, H/2 + 1/2), half a pixel off as in torchvision
    0.6.
    """
    height, width, _ = image.shape
    angle = jnp.deg2rad(params["degrees"])
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    v, u = jnp.arange(height)[:, None] - height / 2, jnp.arange(width) - width / 2
    rows = jnp.floor(cosine * v - sine * u + height / 2 + 0.5).astype(jnp.int32)
    columns = jnp.floor(cosine * u + sine * v + width / 2 + 0.5).astype(jnp.int32)
    return _nearest(image, rows, columns)


rotation = register(
    Corruption(
        name="rotation",
        benchmark="noc",
        family="geometry",
        sampler=_sample_rotation,
        applier=_apply_rotation,
        scale=Fraction(),
        rounding="nearest",
        parameters=(Parameter("degrees", "degrees", _SOURCE),),
    )
)


def _sample_elastic(key, shape, severity, *, range=None):
    """A cut. Draws: the axis, either with probability 1/2.

    Options: `range` of the number of rows or columns cut, by default 44..110 at 224.
    """
    return {
        "cut": severities.lookup("elastic", shape, range, severity),
        "upright": jax.random.bernoulli(key),
    }


def _apply_elastic(image, params):
    """The top rows (or the left columns) are cut and the rest is stretched to the full size
    (ImageNet-NOC, elastic).

    Despite its name no deformation, and unrelated to ImageNet-C's elastic_transform. Linear
    interpolation as PIL's.
    """
    cuts = (
        jnp.where(params["upright"], params["cut"], 0),
        jnp.where(params["upright"], 0, params["cut"]),
    )
    rows, columns = (
        triangle_matrix(size, size - cut, size, size, first=cut)
        for size, cut in zip(image.shape[:2], cuts, strict=True)
    )
    return jnp.clip(filters.separable(image, rows, columns), 0.0, 1.0)


elastic = register(
    Corruption(
        name="elastic",
        benchmark="noc",
        family="geometry",
        sampler=_sample_elastic,
        applier=_apply_elastic,
        scale=Fraction(),
        rounding="nearest",
        parameters=(Parameter("cut", "pixels", _SOURCE), Parameter("upright", "bool", _SOURCE)),
    )
)
