"""Small random draws shared by the NOC corruptions."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp


def integer(key: jax.Array, low: jax.Array | int, high: jax.Array | int, shape: Sequence[int] = ()) -> jax.Array:
    """Draws whole numbers uniform in low..high, both included, int32; the ends may be traced."""
    return jax.random.randint(key, shape, low, high + 1)


def sign(key: jax.Array) -> jax.Array:
    """Draws -1 or +1 with probability 1/2 each, float32."""
    return jnp.where(jax.random.bernoulli(key), 1.0, -1.0)


def grey_value(key: jax.Array, given: float | None) -> jax.Array:
    """Draws a grey uniform in [0, 1), or returns `given` where it is not None.

    Raises:
      ValueError: `given` is no number in [0, 1].
    """
    if given is None:
        return jax.random.uniform(key)
    if not isinstance(given, (int, float)) or not math.isfinite(given) or not 0 <= given <= 1:
        raise ValueError(f"expected grey=None (random) or a number in [0, 1], found {given!r}")
    return jnp.float32(given)
