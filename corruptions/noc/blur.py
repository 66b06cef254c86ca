"""Lost resolution: blur, thumbnail_resize and pixelate, each a matrix along rows and columns."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.noc import severities, stamps
from corruptions.noc.severities import Bounds, looked_up, padding, register
from corruptions.primitives import color, filters, padded
from corruptions.primitives.resizing import triangle_matrix

_PASSES = 5


def passes(shape: Sequence[int]) -> int:
    """Counts the 3x3 means: 5 at 224, elsewhere as many as give the same width relative to the image.

    n means have a variance of 2n/3 pixels^2, hence n = 5 s^2 with s = min(H, W) / 224, at least 1. One pass at 32 is
    already three times wider, relative to the image, than five at 224.
    """
    return max(1, round(_PASSES * stamps.scale(shape) ** 2))


def _taps(shape):
    """Computes the weights, after all means, of pixels at distances 0, 1, ...; zeros up to the longer side."""
    taps = np.ones(1)
    for _ in range(passes(shape)):
        taps = np.convolve(taps, np.full(3, 1 / 3))
    half = taps[taps.size // 2 :]
    return np.pad(half, (0, max(0, max(shape[:2]) - half.size)))


def _mean_matrix(size, own, taps):
    """Makes the matrix [size, size] of means in turn, with zeros beyond the first `own` samples.

    Zeros at -1 and at `own` stay zeros after each mean if the samples continue there with the sign turned: sample j
    has the mirror images -2 - j and 2 own - j.
    """
    out, sample = np.arange(size)[:, None], np.arange(size)[None, :]

    def weights(distance):
        return taps[abs(distance).clip(0, taps.size - 1)]

    matrix = weights(out - sample) - weights(out + sample + 2) - weights(2 * own - out - sample)
    return jnp.where(sample < own, jnp.asarray(matrix, jnp.float32), 0.0)


def _sample_blur(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None) -> Params:
    """Looks up `weight`; draws nothing. Options: `range` of the weight, by default 0.40..0.95."""
    weight = severities.lookup("blur", shape, range, severity)
    return {"weight": weight} | ({"taps": shape.tables["taps"]} if isinstance(shape, padded.Shape) else {})


@register(
    "blur",
    _sample_blur,
    {"weight": "1"},
    padding=padding(tables=lambda shape, table: {"taps": _taps(shape).astype(np.float32)}),
)
def blur(image: Image, params: Params) -> Image:
    """Mixes with a blurred image: (1 - w) x + w B(x).

    B is five 3x3 means in turn, each with zeros beyond the image. The zeros darken the rim, as published. See
    `passes` for sizes other than 224. The means are separable, so B is a pair of matrices, exactly. Source:
    ImageNet-NOC, blur.
    """
    own = padded.own_sides(image.shape, params)
    taps = params["taps"] if "taps" in params else _taps(image.shape)
    blurred = filters.separable(image, *(_mean_matrix(*sides, taps) for sides in zip(image.shape, own)))
    return color.clip((1 - params["weight"]) * image + params["weight"] * blurred)


def _down_and_up(size, own, ratio):
    """Makes the matrix [size, size] that reduces the first `own` samples of an axis to floor(own / ratio) and
    enlarges them back.
    """
    small = jnp.floor(jnp.float32(own) / ratio)
    down = triangle_matrix(small, own, size, size)
    up = triangle_matrix(own, small, size, size)
    return jnp.matmul(up, down, precision=jax.lax.Precision.HIGHEST)


@register("blur", looked_up("thumbnail_resize", "ratio"), {"ratio": "ratio of sides"}, aliases=("low_res",))
def thumbnail_resize(image: Image, params: Params) -> Image:
    """Reduces to floor(H/r) x floor(W/r) pixels and enlarges back, by PIL's antialiased BILINEAR.

    Source: ImageNet-NOC, thumbnail_resize, which keeps the thumbnail in 8 bits; this does not.
    """
    own = padded.own_sides(image.shape, params)
    rows, columns = (_down_and_up(size, side, params["ratio"]) for size, side in zip(image.shape[:2], own))
    return color.clip(filters.separable(image, rows, columns))


def _sample_pixelate(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None, mirrored_rim=True):
    """Looks up `size`; draws nothing.

    Options: `range` of the size in whole pixels, by default 2..4 at 224; `mirrored_rim`, whether a side that the size
    does not divide gets a mirrored rim, see above.
    """
    if mirrored_rim not in (True, False):
        raise ValueError(f"expected mirrored_rim=True or False, found {mirrored_rim!r}")
    return {"size": severities.lookup("pixelate", shape, range, severity), "mirrored_rim": jnp.asarray(mirrored_rim)}


def _block_mean_matrix(length, side, size, mirrored_rim):
    """Makes the matrix [length, length] that averages blocks of `size` of the first `side` samples of an axis and
    repeats each mean.
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


@register("blur", _sample_pixelate, {"size": "pixels", "mirrored_rim": "bool"}, padding=padding("pixelate"))
def pixelate(image: Image, params: Params) -> Image:
    """Averages every k x k block from the upper left corner on. Source: ImageNet-NOC, pixelate.

    Where k does not divide a side S, the released code (for k = 3 at 224, generalised here) takes the complete blocks
    only and adds a mirrored rim around them, the smaller half of S mod k before: this moves the image by a pixel, and
    the published ranges were measured so. With `mirrored_rim=False` nothing moves: the last row or column is repeated
    to complete the last block.
    """
    own = padded.own_sides(image.shape, params)
    rows, columns = (
        _block_mean_matrix(length, side, params["size"], params["mirrored_rim"])
        for length, side in zip(image.shape[:2], own)
    )
    return color.clip(filters.separable(image, rows, columns))
