"""Histogram equalisation of integer levels."""

import jax
import jax.numpy as jnp

from corruptions.primitives import tables


def equalize(levels: jax.Array, bins: int) -> jax.Array:
    """Spreads the levels so that their cumulative histogram becomes straight, as `cv2.equalizeHist`
    does.

    The lowest level present goes to 0, any other level i to rint(n_i * 255 / (n - n_0)), with n_0
    the number of pixels at the lowest level, n_i the number above it and at most at i, n all
    pixels. A constant image is unchanged.

    Args:
      levels: int32 [H, W] in 0..bins-1; H below 2^16.
      bins: number of levels there may be, at most 256; cost is proportional to it.

    Returns:
      int32 [H, W] in 0..255.
    """
    total = levels.size
    # Compared and summed level by level (no scatter), in short words and down the columns first,
    # for vector units.
    bound = jnp.arange(bins, dtype=jnp.uint8)[:, None, None]
    columns = jnp.sum(levels.astype(jnp.uint8)[None] <= bound, 1, jnp.uint16)
    up_to = jnp.sum(columns, axis=1, dtype=jnp.int32)
    lowest = jnp.min(levels)
    below = jnp.min(jnp.where(up_to > 0, up_to, total))
    scale = jnp.float32(255) / jnp.maximum(total - below, 1).astype(jnp.float32)
    table = jnp.round((up_to - below).astype(jnp.float32) * scale).astype(jnp.int32)
    return jnp.where(below == total, lowest, tables.look_up(table, levels))
