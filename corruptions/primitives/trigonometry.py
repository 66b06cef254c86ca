"""Sine and cosine together, cheaply: XLA's own take several times as long on a CPU, one element after the other."""

import math

import jax.numpy as jnp
import numpy as np

# A quarter turn in three parts; products of the first two with a whole number below 2**14 are exact in float32.
_HIGH = round(math.pi / 2 * 2**7) / 2**7
_MIDDLE = round((math.pi / 2 - _HIGH) * 2**21) / 2**21
_LOW = math.pi / 2 - _HIGH - _MIDDLE


def sine_cosine(x):
    """(sin x, cos x) for float32 |x| < 20 000 radians, with an absolute error below 2e-7.

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
