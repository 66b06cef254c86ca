"""Cheap random arrays: a counter-based generator of 32-bit words, keyed by JAX's own keys.

An image takes 150 000 numbers, and `jax.random` spends twenty rounds on each pair of them, more
than most corruptions spend on the image. Here a key is first mixed by JAX's generator (64 bits),
then every array position is hashed together with those 64 bits in three multiply-and-shift rounds
(constants of the `triple32` hash, C. Wellons, public domain). Word i depends on the key and on i
alone, so the numbers are the same under `vmap`, `jit` and any batch, and everything fuses with its
use. For noise in images, not for cryptography.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import padded


def bits(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draws random words, uint32 of `shape`, of independent bits."""
    seed = jax.random.bits(key, (2,), jnp.uint32)
    x = padded.positions(shape) + seed[0]
    x = (x ^ (x >> 17)) * np.uint32(0xED5AD4BB)
    # The second half of the key enters between the rounds: streams of two keys are never shifts of
    # one another.
    x = (x ^ (x >> 11) ^ seed[1]) * np.uint32(0xAC4C1B51)
    x = (x ^ (x >> 15)) * np.uint32(0x31848BAB)
    return x ^ (x >> 14)


def uniform(
    key: jax.Array, shape: tuple[int, ...], low: jax.Array | float = 0.0, high: jax.Array | float = 1.0
) -> jax.Array:
    """Draws from U[low, high), float32 of `shape`: multiples of 2**-24 of the range; `low` and
    `high` may be traced.
    """
    return low + (high - low) * _unit(bits(key, shape))


def bernoulli(key: jax.Array, probability: jax.Array | float, shape: tuple[int, ...]) -> jax.Array:
    """Draws True with `probability` (scalar or broadcastable, may be traced; resolution 2**-24),
    bool of `shape`.
    """
    return _unit(bits(key, shape)) < probability


def integers(key: jax.Array, shape: tuple[int, ...], low: jax.Array | int, high: jax.Array | int) -> jax.Array:
    """Draws integers low, ..., high - 1 with equal probability, int32 of `shape`.

    `low` and `high` may be traced; at most 256 values, so that the bias (high - low) / 2**24 stays
    below 2e-5.
    """
    count = jnp.asarray(high - low, jnp.uint32)
    return low + (((bits(key, shape) >> 8) * count) >> 24).astype(jnp.int32)


def normal(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draws from N(0, 1), float32 of `shape`, by the inverse CDF of one word each; the largest
    magnitude is 6.3.
    """
    word = bits(key, shape)
    # The top bit is the sign, the others the tail probability: full relative precision in both
    # tails.
    tail = ((word << 1) >> 1).astype(jnp.float32) * 2.0**-31 + 2.0**-32
    magnitude = math.sqrt(2) * _erfc_inverse(tail)
    return jnp.where(word >> 31 == 0, magnitude, -magnitude)


def normal_quantile(probability: jax.Array) -> jax.Array:
    """Computes the inverse CDF of N(0, 1) for float32 probabilities in (0, 1); absolute error below
    1e-5.
    """
    tail = 2 * jnp.minimum(probability, 1 - probability)
    magnitude = math.sqrt(2) * _erfc_inverse(tail)
    return jnp.where(probability > 0.5, magnitude, -magnitude)


def _unit(word):
    return (word >> 8).astype(jnp.float32) * 2.0**-24


# Coefficients, highest power first, of M. Giles, "Approximating the erfinv function", GPU Computing
# Gems, 2011.
_CENTRE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 2.1858087e-04, -1.25372503e-03, -4.17768164e-03,
    2.46640727e-01, 1.50140941,
)  # fmt: skip
_TAIL = (
    -2.00214257e-04, 1.00950558e-04, 1.34934322e-03, -3.67342844e-03, 5.73950773e-03, -7.62246130e-03, 9.43887047e-03,
    1.00167406, 2.83297682,
)  # fmt: skip


def _erfc_inverse(tail):
    """x >= 0 with erfc(x) = tail, for tail in (0, 1]."""
    w = -jnp.log(tail * (2 - tail))
    root = jnp.sqrt(jnp.maximum(w, 5.0))
    return (1 - tail) * jnp.where(w < 5, _polynomial(_CENTRE, w - 2.5), _polynomial(_TAIL, root - 3))


def _polynomial(coefficients, x):
    value = jnp.float32(coefficients[0])
    for c in coefficients[1:]:
        value = value * x + jnp.float32(c)
    return value
