"""Caustics: the light pattern on the ground of a pool, from an iterated pair of sines."""

import math

import jax
import jax.numpy as jnp

from corruptions.primitives.trigonometry import sine_cosine

_ROUNDS = 5
_OFFSET = 250.0
# The offset, less whole turns: trigonometric functions of small arguments keep the precision of
# float32.
_REDUCED_OFFSET = 80 * math.pi - _OFFSET


def caustic(shape: tuple[int, ...], time: jax.Array, scale: jax.Array) -> jax.Array:
    """Computes the brightness of a caustic, a pattern of period `scale`.

    With (a, b) = 2 pi frac((y, x) / z) - 250 and (i, j) = (a, b) at first, five rounds n = 0..4
    with u = t (1 - 3.5 / (n + 1)) do, both at once,
        i <- a + cos(u - i) + sin(u + j),   j <- b + sin(u - j) + cos(u + i),
        c <- c + 1 / |(0.005 a / sin(i + u), 0.005 b / cos(j + u))|, from c = 1.
    The brightness is clip(|1.17 - (c / 5)^1.4|^8, 0, 1).

    Args:
      shape: (H, W) or (H, W, 3).
      time: t, scalar, radians.
      scale: z, the period, scalar, pixels.

    Returns:
      float32 [H, W] in [0, 1]; the error of float32 arithmetic is below 1e-4.
    """
    turns = [jnp.arange(n, dtype=jnp.float32) / scale for n in shape[:2]]
    row, column = (2 * jnp.pi * (t - jnp.floor(t)) for t in turns)
    row, column = row[:, None], column[None, :]
    i, j = row + _REDUCED_OFFSET, column + _REDUCED_OFFSET
    (sin_i, cos_i), (sin_j, cos_j) = sine_cosine(i), sine_cosine(j)
    total = jnp.float32(1)
    for n in range(_ROUNDS):
        u = time * (1 - 3.5 / (n + 1))
        sin_u, cos_u = jnp.sin(u), jnp.cos(u)
        # Sines of sums from sines already at hand: four functions a round instead of six.
        even, odd = cos_u * cos_i, sin_u * sin_i
        other_even, other_odd = sin_u * cos_j, cos_u * sin_j
        i = row + _REDUCED_OFFSET + (even + odd) + (other_even + other_odd)
        j = column + _REDUCED_OFFSET + (other_even - other_odd) + (even - odd)
        (sin_i, cos_i), (sin_j, cos_j) = sine_cosine(i), sine_cosine(j)
        sine, cosine = sin_i * cos_u + cos_i * sin_u, cos_j * cos_u - sin_j * sin_u
        # The reciprocal length multiplied out: zero, not infinite, where the sine or cosine is
        # zero.
        square = ((row - _OFFSET) * cosine) ** 2 + ((column - _OFFSET) * sine) ** 2
        total += jnp.abs(sine * cosine) / (0.005 * jnp.sqrt(jnp.maximum(square, 1e-30)))
    brightness = jnp.abs(1.17 - jnp.exp(1.4 * jnp.log(total / _ROUNDS)))
    return jnp.minimum(((brightness**2) ** 2) ** 2, 1.0)
