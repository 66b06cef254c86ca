"""Look-ups in small tables."""

import jax
import jax.numpy as jnp


def look_up(table: jax.Array, index: jax.Array) -> jax.Array:
    """Takes an entry for each index.

    As one axis: where indices have two, as pixels have, a TPU's compiler takes three times as long.

    Args:
      table: [n].
      index: int32 [...] in 0..n-1.

    Returns:
      Entries of the table, [...].
    """
    return jnp.take(table, index.ravel(), mode="clip").reshape(index.shape)
