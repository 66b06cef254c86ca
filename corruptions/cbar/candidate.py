"""What the C-bar candidates have in common: how one is registered, and their grey levels."""

import jax
import jax.numpy as jnp

from corruptions import registry
from corruptions.cbar.severities import STEPS
from corruptions.primitives import color
from corruptions.scales import Levels

candidate = registry.registrar("cbar", Levels(STEPS), "truncate", "Mintun, Kirillov & Xie (2021), released code")


def to_image(levels: jax.Array) -> jax.Array:
    """Scales grey levels to [0, 1]; those outside 0..255 are clipped."""
    return color.from_levels(jnp.clip(levels, 0, 255))


def add_grey(image: jax.Array, plane: jax.Array) -> jax.Array:
    """Adds a plane of grey levels, float32 [H, W], to every channel of an image in [0, 1]."""
    return to_image(color.to_levels(image) + plane[..., None])


def side(shape: tuple[int, ...]) -> int:
    """Returns N = min(H, W), the side by which lengths are measured."""
    return min(shape[:2])
