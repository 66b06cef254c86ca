"""Sine and cosine together, and angles, cheaply: XLA's own take several times as long on a CPU."""

import math

import jax
import jax.numpy as jnp
import numpy as np

# A quarter turn in three parts; products of the first two with a whole number below 2**14 are exact
# in float32.
_HIGH = round(math.pi / 2 * 2**7) / 2**7
_MIDDLE = round((math.pi / 2 - _HIGH) * 2**21) / 2**21
_LOW = math.pi / 2 - _HIGH - _MIDDLE

# atan(sqrt(u)) / sqrt(u) on [0, 1] as a polynomial in u, highest power first; its error is below
# 1e-8.
_NODES = np.polynomial.chebyshev.chebpts1(64) / 2 + 0.5
_FIT = np.polynomial.Chebyshev.fit(_NODES, np.arctan(np.sqrt(_NODES)) / np.sqrt(_NODES), 10, domain=[0, 1])
_ARCTANGENT = _FIT.convert(kind=np.polynomial.Polynomial).coef[::-1].astype(np.float32)


def sine_cosine(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Computes (sin x, cos x) for float32 |x| < 20 000 radians, with an absolute error below 2e-7.

    The quarter turns are taken off, and Taylor's series summed for what is left, at most pi / 4.
    """
    quarters = jnp.round(x * np.float32(2 / math.pi))
    rest = ((x - quarters * np.float32(_HIGH)) - quarters * np.float32(_MIDDLE)) - quarters * np.float32(_LOW)
    square = rest * rest
    sine, cosine = jnp.float32(1 / math.factorial(9)), jnp.float32(1 / math.factorial(8))
    for n in (7, 5, 3, 1):
        sine = sine * square + np.float32((-1) ** (n // 2) / math.factorial(n))
        cosine = cosine * square + np.float32((-1) ** (n // 2) / math.factorial(n - 1))
    sine = sine * rest
    quarters = quarters.astype(jnp.int32)
    odd = quarters & 1 == 1
    sign = (1 - (quarters & 2)).astype(jnp.float32)
    return sign * jnp.where(odd, cosine, sine), sign * jnp.where(odd, -sine, cosine)


def arctangent2(y: jax.Array, x: jax.Array) -> jax.Array:
    """Computes the angle of (x, y) in [-pi, pi], float32, as `jnp.arctan2` with an absolute error
    below 5e-7; 0 at (0, 0).

    The angle of the smaller side over the larger, at most pi / 4, is a polynomial; the others
    mirror it.
    """
    long, short = jnp.maximum(jnp.abs(x), jnp.abs(y)), jnp.minimum(jnp.abs(x), jnp.abs(y))
    ratio = short / jnp.where(long > 0, long, 1.0)
    angle = ratio * jnp.polyval(_ARCTANGENT, ratio * ratio, unroll=len(_ARCTANGENT))
    angle = jnp.where(jnp.abs(y) > jnp.abs(x), np.float32(math.pi / 2) - angle, angle)
    return jnp.copysign(jnp.where(x < 0, np.float32(math.pi) - angle, angle), y)
