"""Lost resolution: thumbnail_resize and pixelate."""

import jax
import jax.numpy as jnp

from corruptions import padded
from corruptions.noc import severities
from corruptions.noc.candidate import candidate, padding
from corruptions.noc.resampling import triangle_matrix
from corruptions.primitives import filters


def _sample_thumbnail_resize(key, shape, severity, *, range=None):
    """Looks up `ratio`; draws nothing. Options: `range` of the ratio, by default 1.1..3.25."""
    del key
    return {"ratio": severities.lookup("thumbnail_resize", shape, range, severity), **padded.own_size(shape)}


def _down_and_up(size, own, ratio):
    """Makes the matrix [size, size] that reduces the first `own` samples of an axis to
    floor(own / ratio) and enlarges them back.
    """
    small = jnp.floor(jnp.float32(own) / ratio)
    down = triangle_matrix(small, own, size, size)
    up = triangle_matrix(own, small, size, size)
    return jnp.matmul(up, down, precision=jax.lax.Precision.HIGHEST)


def _apply_thumbnail_resize(image, params):
    """Reduces to floor(H/r) x floor(W/r) pixels and enlarges back, by PIL's antialiased BILINEAR.

    Source: ImageNet-NOC, thumbnail_resize, which keeps the thumbnail in 8 bits; this does not.
    """
    own = padded.height_and_width(image.shape, params)
    rows, columns = (_down_and_up(size, side, params["ratio"]) for size, side in zip(image.shape[:2], own))
    return jnp.clip(filters.separable_for_tpus(image, rows, columns), 0.0, 1.0)


thumbnail_resize = candidate(
    "thumbnail_resize",
    "blur",
    _sample_thumbnail_resize,
    _apply_thumbnail_resize,
    (("ratio", "ratio of sides"),),
    aliases=("low_res",),
    padding=padding(),
)


def _sample_pixelate(key, shape, severity, *, range=None, mirrored_rim=True):
    """Looks up `size`; draws nothing.

    Options: `range` of the size in whole pixels, by default 2..4 at 224; `mirrored_rim`, what
    happens to a side that the size does not divide, see above.
    """
    del key
    if mirrored_rim not in (True, False):
        raise ValueError(f"expected mirrored_rim=True or False, found {mirrored_rim!r}")
    return {
        "size": severities.lookup("pixelate", shape, range, severity),
        "mirrored_rim": jnp.asarray(mirrored_rim),
        **padded.own_size(shape, "own"),
    }


def _block_mean_matrix(length, side, size, mirrored_rim):
    """Makes the matrix [length, length] that averages blocks of `size` of the first `side` samples of
    an axis and repeats each mean.
    """
    index = jnp.arange(length)[None, :]
    whole = side // size * size  # samples in complete blocks
    moved = jnp.abs(index - (side - whole) // 2)
    moved = jnp.where(moved < whole, moved, 2 * (whole - 1) - moved)
    first = (jnp.where(mirrored_rim, moved, index) // size * size).T
    taken = ((index >= first) & (index < jnp.minimum(first + size, side))).astype(jnp.int32)
    beyond = jnp.maximum(first + size - side, 0)  # the last sample, repeated
    taken += beyond * (index == side - 1).astype(jnp.int32)
    return taken.astype(jnp.float32) / size.astype(jnp.float32)


def _apply_pixelate(image, params):
    """Averages every k x k block from the upper left corner on. Source: ImageNet-NOC, pixelate.

    Where k does not divide a side S, the released code (for k = 3 at 224, generalised here) takes
    the complete blocks only and adds a mirrored rim around them, the smaller half of S mod k
    before: this moves the image by a pixel, and the published ranges were measured so. With
    `mirrored_rim=False` nothing moves: the last row or column is repeated to complete the last
    block.
    """
    own = padded.height_and_width(image.shape, params, "own")
    rows, columns = (
        _block_mean_matrix(length, side, params["size"], params["mirrored_rim"])
        for length, side in zip(image.shape[:2], own)
    )
    return jnp.clip(filters.separable(image, rows, columns), 0.0, 1.0)


pixelate = candidate(
    "pixelate",
    "blur",
    _sample_pixelate,
    _apply_pixelate,
    (("size", "pixels"), ("mirrored_rim", "bool")),
    padding=padding("pixelate"),
)
