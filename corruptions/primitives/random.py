"""Cheap random arrays: a counter-based generator of 32-bit words, keyed by JAX's own keys.

An image takes 150 000 numbers, and `jax.random` spends twenty rounds on each pair of them, more than most corruptions
spend on the image. Here a key is first mixed by JAX's generator (64 bits), then every array position is hashed
together with those 64 bits in three multiply-and-shift rounds (constants of the `triple32` hash, C. Wellons, public
domain). Word i depends only on the key and on i, so the numbers are the same under `vmap`, `jit` and any batch, and
everything fuses with its use. For noise in images, not for cryptography.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import padded, special


def threefry(key: jax.Array) -> jax.Array:
    """Makes the threefry key of the first two words of any key: under `jax.vmap` the draws of JAX's other generators depend on
    the batch.
    """
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        if jax.random.key_impl(key) == "threefry2x32":
            return key
        key = jax.random.key_data(key)
    return jax.random.wrap_key_data(key[:2], impl="threefry2x32")


def bits(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draws random words, uint32 of `shape`, of independent bits."""
    seed = jax.random.bits(key, (2,), jnp.uint32)
    x = positions(shape) + seed[0]
    x = (x ^ (x >> 17)) * np.uint32(0xED5AD4BB)
    # The second half of the key enters between the rounds, so that streams of two keys are never shifted copies.
    x = (x ^ (x >> 11) ^ seed[1]) * np.uint32(0xAC4C1B51)
    x = (x ^ (x >> 15)) * np.uint32(0x31848BAB)
    return x ^ (x >> 14)


def positions(shape: tuple[int, ...]) -> jax.Array:
    """Numbers the elements of an array row by row, uint32 of `shape`.

    A `padded.Shape` numbers them as an array of its own sides does; elements outside repeat numbers.
    """
    if not isinstance(shape, padded.Shape):
        return jax.lax.iota(jnp.uint32, int(np.prod(shape))).reshape(shape)
    number = jnp.zeros(shape, jnp.uint32)
    for axis, side in enumerate(shape.own):
        number = number * jnp.asarray(side, jnp.uint32) + jax.lax.broadcasted_iota(jnp.uint32, tuple(shape), axis)
    return number


def uniform(
    key: jax.Array, shape: tuple[int, ...], low: jax.Array | float = 0.0, high: jax.Array | float = 1.0
) -> jax.Array:
    """Draws from U[low, high), float32 of `shape`: multiples of 2**-24 of the range; bounds may be traced."""
    return low + (high - low) * _unit(bits(key, shape))


def bernoulli(key: jax.Array, probability: jax.Array | float, shape: tuple[int, ...]) -> jax.Array:
    """Draws bool of `shape`, True with `probability` (broadcastable, may be traced; resolution 2**-24)."""
    return _unit(bits(key, shape)) < probability


def integers(key: jax.Array, shape: tuple[int, ...], low: jax.Array | int, high: jax.Array | int) -> jax.Array:
    """Draws integers low, ..., high - 1 with equal probability, int32 of `shape`; bounds may be traced.

    At most 256 values, so that the bias (high - low) / 2**24 stays below 2e-5.
    """
    count = jnp.asarray(high - low, jnp.uint32)
    return low + (((bits(key, shape) >> 8) * count) >> 24).astype(jnp.int32)


def normal(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draws from N(0, 1), float32 of `shape`, by the inverse CDF of one word each; the largest magnitude is 6.3."""
    word = bits(key, shape)
    # The top bit is the sign, the other bits are the tail probability: full relative precision in both tails.
    tail = ((word << 1) >> 1).astype(jnp.float32) * 2.0**-31 + 2.0**-32
    magnitude = math.sqrt(2) * special.erfc_inverse(tail)
    return jnp.where(word >> 31 == 0, magnitude, -magnitude)


def _unit(word):
    return (word >> 8).astype(jnp.float32) * 2.0**-24
