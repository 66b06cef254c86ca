"""Pieces of colour arithmetic: luma, HSV value and chroma, and 8-bit levels."""

import jax
import jax.numpy as jnp
import numpy as np

LUMA = np.array([0.299, 0.587, 0.114], np.float32)


def luma(image):
    """BT.601 luma 0.299 R + 0.587 G + 0.114 B: [..., 3] to [...]."""
    return LUMA[0] * image[..., 0] + LUMA[1] * image[..., 1] + LUMA[2] * image[..., 2]


def value_and_chroma(image):
    """HSV value (largest channel) and chroma (largest minus smallest), [..., 1] each, in the image's unit.

    HSV saturation is chroma / value (0 where value is 0).
    """
    value = jnp.max(image, axis=-1, keepdims=True)
    return value, value - jnp.min(image, axis=-1, keepdims=True)


def to_levels(image):
    """[0, 1] to the scale of 8-bit levels, unrounded; exact for k/255."""
    return image * 255


def from_levels(levels):
    """Levels (0..255, rounded or not) to [0, 1], so that truncating 255 times the result gives whole levels back."""
    # Behind the barrier 255 is no constant: XLA would multiply by its rounded reciprocal, one unit in the last place
    # off for half of the levels, and truncation would make that a whole level.
    return levels / jax.lax.optimization_barrier(jnp.float32(255))
