"""Histogram equalisation of integer levels."""

import functools

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
    up_to = jax.lax.platform_dependent(
        levels.astype(jnp.uint8),
        cpu=functools.partial(counts_by_slices, bins=bins),
        default=functools.partial(counts_by_columns, bins=bins),
    )
    lowest = jnp.min(levels)
    below = jnp.min(jnp.where(up_to > 0, up_to, total))
    scale = jnp.float32(255) / jnp.maximum(total - below, 1).astype(jnp.float32)
    table = jnp.round((up_to - below).astype(jnp.float32) * scale).astype(jnp.int32)
    return jnp.where(below == total, lowest, tables.look_up(table, levels))


# Both compare and sum level by level (no scatter), in short words and over long rows, for vector units.
def counts_by_columns(levels: jax.Array, bins: int) -> jax.Array:
    """Counts the levels, uint8 [H, W], up to 0, 1, ..., bins - 1: int32 [bins]."""
    bound = jnp.arange(bins, dtype=jnp.uint8)[:, None, None]
    columns = jnp.sum(levels[None] <= bound, 1, jnp.uint16)
    return jnp.sum(columns, axis=1, dtype=jnp.int32)


def counts_by_slices(levels: jax.Array, bins: int) -> jax.Array:
    """Does what `counts_by_columns` does. A CPU would write all comparisons to memory before it sums."""
    number = max(n for n in range(1, 17) if levels.size % n == 0)
    bound, slices = jnp.arange(bins, dtype=jnp.uint8)[:, None], levels.reshape(number, -1)
    few = sum((slices[k][None] <= bound).astype(jnp.uint8) for k in range(number))
    return jnp.sum(few, axis=1, dtype=jnp.int32)
