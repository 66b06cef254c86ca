"""Plasma: coloured flow lines, sines of coordinates that were bent by sines of themselves."""

import jax
import jax.numpy as jnp

from corruptions.primitives import staging
from corruptions.primitives.trigonometry import sine_cosine

_MOST_ROUNDS = 6
_CHANNELS = ((1.0, 0.0), (0.5, 0.5), (0.0, 1.0))  # weights of X and Y in red, green and blue


def plasma(shape: tuple[int, ...], time: jax.Array, rounds: jax.Array, decay: jax.Array, scale: jax.Array) -> jax.Array:
    """Computes the colours of a plasma.

    From (X, Y) = (x, y) / z and f = u = g = 1, `rounds` times: p = cos(Y f + t / u) / g and
    q = sin(X f + t / u) / g; (X, Y) += (p - 0.3 q, q + 0.3 p); f *= 1.93, u *= 1.15, g *= 2.25 - h.
    Red, green and blue are sin(X - t), sin((X + Y + sin t) / 2) and sin(Y + t).

    Args:
      shape: (H, W) or (H, W, 3).
      time: t, scalar, radians.
      rounds: at most 6, int32 scalar.
      decay: h, scalar below 1.25.
      scale: z, scalar, pixels.

    Returns:
      float32 [H, W, 3] in [-1, 1].
    """
    x = jnp.arange(shape[1], dtype=jnp.float32)[None, :] / scale
    y = jnp.arange(shape[0], dtype=jnp.float32)[:, None] / scale
    divisor = jnp.float32(1)
    for n in range(_MOST_ROUNDS):
        phase = time / 1.15**n
        gain = jnp.where(n < rounds, 1 / divisor, 0.0)
        p, q = gain * sine_cosine(y * 1.93**n + phase)[1], gain * sine_cosine(x * 1.93**n + phase)[0]
        x, y = x + p - 0.3 * q, y + q + 0.3 * p
        divisor *= 2.25 - decay
    # As one complex plane, because of two planes XLA would compute each from the start.
    staged = staging.stage(jax.lax.complex(x, y))
    x, y = staged.real, staged.imag
    weights = jnp.array(_CHANNELS)
    phases = jnp.stack([-time, jnp.sin(time) / 2, time])
    along_x, along_y, phases = (v[None, None, :] for v in (weights[:, 0], weights[:, 1], phases))
    return sine_cosine(x[..., None] * along_x + y[..., None] * along_y + phases)[0]
