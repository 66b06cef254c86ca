"""Lost resolution: thumbnail_resize and pixelate."""

import jax
import jax.numpy as jnp

from corruptions.contract import Corruption, Fraction, Parameter
from corruptions.noc import severity as severities
from corruptions.noc.resampling import triangle_matrix
from corruptions.primitives import filters
from corruptions.registry import register

_SOURCE = "ImageNet-NOC (2021), appendix A, and the released code"


def _sample_thumbnail_resize(key, shape, severity, *, range=None):
    """The ratio of sides; nothing else is random. Options: `range` of the ratio, by default
    1.1..3.25.
    """
    del key
    return {"ratio": severities.lookup("thumbnail_resize", shape, range, severity)}


def _down_and_up(size, ratio):
    """Matrix along one axis: down to floor(size / ratio) samples and back."""
    small = jnp.floor(size / ratio)
    down = triangle_matrix(small, size, size, size)
    up = triangle_matrix(size, small, size, size)
    return jnp.matmul(up, down, precision=jax.lax.Precision.HIGHEST)


def _apply_thumbnail_resize(image, params):
    """Down to (floor(H/r), floor(W/r)) and back up, with the antialiased triangle filter of PIL's
    BILINEAR (ImageNet-NOC, thumbnail_resize). The original keeps the thumbnail in 8 bits, we do
    not.
    """
    rows, columns = (_down_and_up(size, params["ratio"]) for size in image.shape[:2])
    return jnp.clip(filters.separable(image, rows, columns), 0.0, 1.0)


thumbnail_resize = register(
    Corruption(
        name="thumbnail_resize",
        benchmark="noc",
        family="blur",
        sampler=_sample_thumbnail_resize,
        applier=_apply_thumbnail_resize,
        scale=Fraction(),
        rounding="nearest",
        parameters=(Parameter("ratio", "ratio of sides", _SOURCE),),
        aliases=("low_res",),
    )
)


def _sample_pixelate(key, shape, severity, *, range=None):
    """The block size; nothing else is random. Options: `range` of the size in whole pixels, by
    default 2..4 at 224.
    """
    del key
    return {"size": severities.lookup("pixelate", shape, range, severity)}


def _block_mean_matrix(side, size):
    """Means over blocks of `size` samples, repeated over each block; the last block repeats the
    last sample.
    """
    index = jnp.arange(side)
    first = (index // size * size)[:, None]
    taken = (index >= first) & (index < first + size)
    beyond = jnp.maximum(first + size - side, 0)
    return (taken + beyond * (index == side - 1)) / size.astype(jnp.float32)


def _apply_pixelate(image, params):
    """Mean of every k x k block (ImageNet-NOC, pixelate).

    Blocks start at the upper left corner; a side that k does not divide is completed by repeating
    its last row or column (the original, for k = 3 at 224, shifts the blocks by one pixel with a
    mirrored rim instead).
    """
    rows, columns = (_block_mean_matrix(side, params["size"]) for side in image.shape[:2])
    return jnp.clip(filters.separable(image, rows, columns), 0.0, 1.0)


pixelate = register(
    Corruption(
        name="pixelate",
        benchmark="noc",
        family="blur",
        sampler=_sample_pixelate,
        applier=_apply_pixelate,
        scale=Fraction(),
        rounding="nearest",
        parameters=(Parameter("size", "pixels", _SOURCE),),
    )
)
