"""Published tables of severities: the table for an image size, the row of a severity level."""

import math
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike


def nearest_table(sides: Mapping[str, int], shape: Sequence[int], table: str | None = None) -> str:
    """Picks the severity table of a benchmark that fits the image size.

    Args:
      sides: table name -> side in pixels of the images it was made for.
      shape: (H, W, ...) of the image.
      table: a name to use instead.

    Returns:
      `table` where given, else the name whose side is nearest in ratio to min(H, W): the borders
      between tables are the geometric means of neighbouring sides.

    Raises:
      ValueError: `table` is not in `sides`.
    """
    if table is not None:
        if table not in sides:
            raise ValueError(f"expected a severity table among {', '.join(sides)}, found {table!r}")
        return table
    side = min(shape[:2])
    return min(sides, key=lambda name: abs(math.log(side / sides[name])))


def lookup(table: ArrayLike | Sequence, severity: ArrayLike) -> jax.Array:
    """Reads the row of `table` at `severity`, linear between rows.

    Args:
      table: array-like [L, ...], the rows of severities 1..L.
      severity: scalar in [1, L], possibly traced; out-of-range traced values are clipped.

    Returns:
      float32 array [...]: exactly the row when severity is whole.
    """
    rows = jnp.asarray(table if isinstance(table, jax.Array) else np.asarray(table, np.float32))
    position = jnp.clip(severity - 1.0, 0.0, rows.shape[0] - 1.0)
    low = jnp.floor(position).astype(jnp.int32)
    high = jnp.minimum(low + 1, rows.shape[0] - 1)
    fraction = position - low.astype(jnp.float32)
    return rows[low] * (1 - fraction) + rows[high] * fraction
