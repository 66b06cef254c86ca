"""Pieces of colour arithmetic: luma, HSV value and chroma, and 8-bit levels."""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import padded

# Not dm_pix's rgb_to_hsv and hsv_to_rgb: with them hue turns are one 8-bit level off in 6 to 14 %
# of the values, those of ImageNet-C's brightness and saturate in 1 %, in .7 to 1.6 times the time.
# Not its adjust_contrast: one level is lost from constant images of 31 in 52 levels. Not its
# rgb_to_grayscale, whose weights 0.2989, 0.587, 0.114 do not sum to one.
LUMA = np.array([0.299, 0.587, 0.114], np.float32)

# 1/255 in two parts, the first of 16 bits, so that its product with a whole level is exact.
_RECIPROCAL = np.float32(round(2**23 / 255) / 2**23)
_RECIPROCAL_REST = np.float32(1 / 255 - float(_RECIPROCAL))


def luma(image: jax.Array) -> jax.Array:
    """Computes the BT.601 luma 0.299 R + 0.587 G + 0.114 B: [..., 3] to [...]."""
    return LUMA[0] * image[..., 0] + LUMA[1] * image[..., 1] + LUMA[2] * image[..., 2]


def value_and_chroma(image: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Computes HSV value (largest channel) and chroma (largest minus smallest), [..., 1] each, in
    the image's unit.

    HSV saturation is chroma / value (0 where value is 0).
    """
    red, green, blue = (image[..., channel : channel + 1] for channel in range(3))
    value = jnp.maximum(jnp.maximum(red, green), blue)
    return value, value - jnp.minimum(jnp.minimum(red, green), blue)


def to_levels(image: jax.Array) -> jax.Array:
    """Scales [0, 1] to 8-bit levels, unrounded; exact for k/255."""
    # The clip keeps the product from being fused with a later sum into one rounding, in which k/255
    # * 255 is not k.
    return jnp.clip(image * 255, 0, 255)


def channel_means(levels: jax.Array, size: jax.Array | None = None) -> jax.Array:
    """Averages each channel over an image of levels: float32 [1, 1, C].

    The mean of whole levels comes from an integer sum, without rounding errors; what remains is 0
    for 8-bit images.

    Args:
      levels: float32 [H, W, C] in [0, 255].
      size: int32 [2], height and width of the part at the upper left to average; None for all.
    """
    number: jax.Array | np.float32 = np.float32(levels.shape[0] * levels.shape[1])
    if size is not None:
        levels = padded.blackened(levels, size)
        number = jnp.prod(size.astype(jnp.float32))
    whole = jnp.round(levels)
    total = jnp.sum(whole.astype(jnp.int32), (0, 1), keepdims=True).astype(jnp.float32)
    total += jnp.sum(levels - whole, (0, 1), keepdims=True)
    return total / number


def from_levels(levels: jax.Array) -> jax.Array:
    """Scales levels to [0, 1]: the float32 nearest to k/255 for whole levels k, within 1.5 units in
    the last place for others.

    Hence truncating 255 times the result gives whole levels back. A plain division would not do:
    XLA multiplies by the rounded reciprocal of any scalar divisor, which is one unit off for half
    of the whole levels.
    """
    return levels * _RECIPROCAL + levels * _RECIPROCAL_REST
