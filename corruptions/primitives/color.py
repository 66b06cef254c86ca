"""Colour arithmetic: luma, HSV value and chroma, hue turns, and 8-bit levels."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions.primitives import padded, staging
from corruptions.primitives.padded import Params

# Why not dm_pix: with its rgb_to_hsv and hsv_to_rgb, hue turns are one 8-bit level off in 6 to 14 % of the values,
# ImageNet-C's brightness and saturate in 1 %, in .7 to 1.6 times the time. Its adjust_contrast loses a level of
# constant images for 31 of 52 levels. The weights of its rgb_to_grayscale, 0.2989, 0.587, 0.114, do not sum to one.
LUMA = np.array([0.299, 0.587, 0.114], np.float32)

# 1/255 in two parts, the first of 16 bits, so that its product with a whole level is exact.
_RECIPROCAL = np.float32(round(2**23 / 255) / 2**23)
_RECIPROCAL_REST = np.float32(1 / 255 - float(_RECIPROCAL))


def luma(image: jax.Array) -> jax.Array:
    """Computes the BT.601 luma 0.299 R + 0.587 G + 0.114 B: [..., 3] to [...]."""
    return LUMA[0] * image[..., 0] + LUMA[1] * image[..., 1] + LUMA[2] * image[..., 2]


def luma_levels(red: jax.Array, green: jax.Array, blue: jax.Array) -> jax.Array:
    """Computes the luma of levels as Pillow does, in 16-bit fixed point, rounded: int32 of integers 0..255."""
    return (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16


def value_and_chroma(image: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Computes HSV value (largest channel) and chroma (largest minus smallest), [..., 1] each, in the image's unit.

    HSV saturation is chroma / value (0 where value is 0).
    """
    red, green, blue = (image[..., channel : channel + 1] for channel in range(3))
    value = jnp.maximum(jnp.maximum(red, green), blue)
    return value, value - jnp.minimum(jnp.minimum(red, green), blue)


# How far beyond a bound rounding may take a value, as a share of the range: .001 level of 8 bits.
_ROUNDING = 1e-3 / 255


def clip(x: jax.Array, low: ArrayLike = 0.0, high: ArrayLike = 1.0) -> jax.Array:
    """Clips `x` to [low, high]. The slope is 1 in all of it, both ends included, and 0 outside.

    That of `jnp.clip` is 1/2 at the ends, so wrong at black and white pixels, which many clips leave as they are. A value
    that rounding took beyond an end, by up to .001 level of 8 bits, counts as the end.
    """
    return _clip(x, jnp.asarray(low, x.dtype), jnp.asarray(high, x.dtype))


@jax.custom_jvp
def _clip(x, low, high):
    return jnp.clip(x, low, high)


@_clip.defjvp
def _slope_of_clip(primals, tangents):
    (x, low, high), (of_x, of_low, of_high) = primals, tangents
    near = _ROUNDING * (high - low)
    return _clip(x, low, high), jnp.where(x < low - near, of_low, jnp.where(x > high + near, of_high, of_x))


def to_levels(image: jax.Array) -> jax.Array:
    """Scales [0, 1] to 8-bit levels, unrounded; exact for k/255."""
    # Without the clip a compiler fuses the product with a later sum into one rounding, and k/255 * 255 is not k.
    return clip(image * 255, 0, 255)


def from_levels(levels: jax.Array) -> jax.Array:
    """Scales levels to [0, 1]: the float32 nearest to k/255 for whole k, else within 1.5 units in the last place.

    Truncating 255 times the result therefore gives whole levels back. A plain division does not: XLA multiplies by
    the rounded reciprocal of a scalar divisor, one unit off for half of the whole levels.
    """
    return levels * _RECIPROCAL + levels * _RECIPROCAL_REST


def channel_means(levels: jax.Array, params: Params) -> jax.Array:
    """Averages each channel over an image of levels, float32 [H, W, C] in [0, 255]: float32 [1, 1, C].

    Sums of whole levels have no rounding errors: those of a column are below 2^24, up to 65,793 rows, and columns are added
    as integers; the rest is 0 for 8-bit images. Of a padded image only its own part counts (see `padded.own_sides`).
    """
    height, width = padded.own_sides(levels.shape, params)
    levels = padded.blackened(levels, params)
    rows = levels.reshape(levels.shape[0], -1)
    part = len(rows) // 8  # parts are added first: a CPU is slow to sum down long columns
    parts = staging.stage_on_cpu(sum((rows[k * part : (k + 1) * part] for k in range(1, 8)), start=rows[:part]))
    columns = (parts.sum(0) + rows[8 * part :].sum(0)).reshape(-1, levels.shape[2])
    whole = jnp.round(columns)
    high, low = jnp.divmod(whole.astype(jnp.int32), 256)  # a sum of 12 million white pixels has more than 31 bits
    high, low, rest = (jnp.sum(part, 0).astype(jnp.float32)[None, None] for part in (high, low, columns - whole))
    return (high * 256 + low + rest) / jnp.float32(height * width)


def turn_hue(image: jax.Array, turns: ArrayLike) -> jax.Array:
    """Turns the HSV hue h of an image [H, W, 3], in any unit of at most 255 for white, to h + d (mod 1).

    Saturation and value stay. d, the `turns`, is a scalar or [H, W] in [-1/2, 1/2], and may be traced. With V = max,
    C = max - min and k = (n + 6 (h + d)) mod 6, a channel is V - C clip(min(k, 4 - k), 0, 1) where n = 5, 3, 1 for red,
    green, blue. It is computed as V - clip(2 C - w, 0, C), w = C |k - 2| taken around the circle of 6 C: without a
    division, so that whole levels turned by a simple fraction stay whole, whatever compilers fuse.
    """
    red, green, blue = image[..., 0], image[..., 1], image[..., 2]
    value = jnp.maximum(jnp.maximum(red, green), blue)
    chroma = value - jnp.minimum(jnp.minimum(red, green), blue)
    is_red, is_green = value == red, value == green
    sector = jnp.where(is_red, 0.0, jnp.where(is_green, 2.0, 4.0))
    offset = jnp.where(is_red, green - blue, jnp.where(is_green, blue - red, red - green))

    # Three channels along the last axis: stacking three planes takes a CPU five times as long for a single image.
    value, chroma, sector, offset = (plane[..., None] for plane in (value, chroma, sector, offset))
    turns = jnp.asarray(turns)[..., None] if jnp.ndim(turns) else turns
    number = np.array([-3, 1, -1], np.float32)[None, None]
    # |C (k - 2)| is at most 9 C here. The clip changes no value but keeps product and sum two roundings: otherwise
    # the result would depend on the compiler's fusions.
    whole = jnp.clip(chroma * (sector + number + 6 * turns), -4096, 4096)
    distance = jnp.abs(whole + offset)
    around = jnp.minimum(distance, jnp.abs(6 * chroma - distance))
    return value - clip(2 * chroma - around, 0.0, chroma)


def truncated(levels: jax.Array) -> jax.Array:
    """Cuts levels in [0, 255] to whole ones, uint8. Up to 2^-15 (2 ulp at 255) below a whole level count as that level.

    Filtered surfaces of one colour are whole levels up to rounding. Without the tolerance they come out as either of two
    levels, depending on the compiler's fusion of multiplications and additions: .5 % of defocus_blur's values differ
    between two programs. With twice the tolerance more than .1 % of gaussian_blur's values differ from the original.
    """
    return (levels + 2.0**-15).astype(jnp.uint8)
