"""What the C-bar candidates have in common: how one is registered, and their grey levels."""

import jax.numpy as jnp

from corruptions import registry
from corruptions.cbar.severity import STEPS
from corruptions.contract import Levels
from corruptions.primitives import color

candidate = registry.registrar("cbar", Levels(STEPS), "truncate", "Mintun, Kirillov & Xie (2021), released code")


def to_image(levels):
    """Grey levels to [0, 1], those outside 0..255 clipped."""
    return color.from_levels(jnp.clip(levels, 0, 255))


def add_grey(image, plane):
    """The image with a plane of grey levels, float32 [H, W], added to every channel."""
    return to_image(color.to_levels(image) + plane[..., None])


def side(shape):
    """N, the side all lengths are measured by: min(H, W)."""
    return min(shape[:2])
