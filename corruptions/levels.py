"""Lookup of a severity level in a published table, traced or not."""

import jax.numpy as jnp
import numpy as np


def lookup(table, severity):
    """Row of `table` at `severity`, linear between rows.

    Args:
      table: array-like [L, ...], the rows of severities 1..L.
      severity: scalar in [1, L], possibly traced; out-of-range traced values are clipped.

    Returns:
      float32 array [...]: exactly the row when severity is whole.
    """
    table = jnp.asarray(np.asarray(table, np.float32))
    position = jnp.clip(severity - 1.0, 0.0, table.shape[0] - 1.0)
    low = jnp.floor(position).astype(jnp.int32)
    high = jnp.minimum(low + 1, table.shape[0] - 1)
    fraction = position - low
    return table[low] * (1 - fraction) + table[high] * fraction
