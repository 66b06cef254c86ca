"""What the C-bar candidates have in common: how one is registered, and their grey levels."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import padded, registry
from corruptions.cbar.severities import STEPS, table_for
from corruptions.levels import Levels
from corruptions.primitives import color

candidate = registry.registrar("cbar", Levels(STEPS), "truncate", "Mintun, Kirillov & Xie (2021), released code")


def to_image(levels: jax.Array) -> jax.Array:
    """Scales grey levels to [0, 1]; those outside 0..255 are clipped."""
    return color.from_levels(jnp.clip(levels, 0, 255))


def add_grey(image: jax.Array, plane: jax.Array) -> jax.Array:
    """Adds a plane of grey levels, float32 [H, W], to every channel of an image in [0, 1]."""
    return to_image(color.to_levels(image) + plane[..., None])


def side(shape: tuple[int, ...]) -> Any:
    """Returns N = min(H, W), the side by which lengths are measured; of a `padded.Shape` its own, traced."""
    if isinstance(shape, padded.Shape):
        return jnp.minimum(*shape.own[:2]).astype(jnp.float32)
    return min(shape[:2])


def padding(mode: Literal["reflect", "edge"] = "reflect") -> padded.Padding:
    """Makes the `Padding` of a candidate: images of either table have a program of their own."""
    return padded.Padding(lambda shape, table, side: (table_for(shape, table), np.int32(0)), mode)
