"""Turning the hue of an image, saturation and value kept."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike


def turn_hue(image: jax.Array, turns: ArrayLike) -> jax.Array:
    """Turns the HSV hue h to h + d (mod 1), saturation and value kept.

    With V = max, C = max - min and k = (n + 6 (h + d)) mod 6, a channel is
    V - C clip(min(k, 4 - k), 0, 1) where n = 5, 3, 1 for red, green, blue. It is computed as
    V - clip(2 C - w, 0, C), w = C |k - 2| taken around the circle of 6 C: without a division, so
    that whole levels turned by a simple fraction stay whole, whatever compilers fuse.

    Args:
      image: float32 [H, W, 3], any unit of at most 255 for white.
      turns: d, scalar or [H, W], in [-1/2, 1/2], may be traced.

    Returns:
      float32 [H, W, 3] in the image's unit.
    """
    red, green, blue = image[..., 0], image[..., 1], image[..., 2]
    value = jnp.maximum(jnp.maximum(red, green), blue)
    chroma = value - jnp.minimum(jnp.minimum(red, green), blue)
    is_red, is_green = value == red, value == green
    sector = jnp.where(is_red, 0.0, jnp.where(is_green, 2.0, 4.0))
    offset = jnp.where(is_red, green - blue, jnp.where(is_green, blue - red, red - green))

    # All three along the last axis: a CPU takes a single image five times as long over planes put side by side there.
    value, chroma, sector, offset = (plane[..., None] for plane in (value, chroma, sector, offset))
    turns = jnp.asarray(turns)[..., None] if jnp.ndim(turns) else turns
    number = np.array([-3, 1, -1], np.float32)[None, None]
    # |C (k - 2)| is at most 9 C for these numbers. The clip changes nothing, but keeps product and sum two
    # roundings: in one, the result would depend on what the compiler fuses.
    whole = jnp.clip(chroma * (sector + number + 6 * turns), -4096, 4096)
    distance = jnp.abs(whole + offset)
    around = jnp.minimum(distance, jnp.abs(6 * chroma - distance))
    return value - jnp.clip(2 * chroma - around, 0.0, chroma)
