"""Small random draws shared by the NOC corruptions."""

import math

import jax
import jax.numpy as jnp


def integer(key, low, high, shape=()):
    """Uniform whole numbers low..high, both included; the ends may be traced. int32."""
    return jax.random.randint(key, shape, low, high + 1)


def sign(key):
    """-1 or +1 with probability 1/2 each, float32."""
    return jnp.where(jax.random.bernoulli(key), 1.0, -1.0)


def grey_value(key, given):
    """A grey uniform in [0, 1), or `given`.

    Raises:
      ValueError: `given` is no number in [0, 1].
    """
    if given is None:
        return jax.random.uniform(key)
    if not isinstance(given, (int, float)) or not math.isfinite(given) or not 0 <= given <= 1:
        raise ValueError(f"expected grey=None (random) or a number in [0, 1], found {given!r}")
    return jnp.float32(given)
