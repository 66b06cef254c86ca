"""Sparks: stars with rays of random lengths."""

import jax
import jax.numpy as jnp

from corruptions.primitives import staging, tables
from corruptions.primitives.trigonometry import arctangent2


def spark(
    shape: tuple[int, ...], centre: jax.Array, lengths: jax.Array, number: jax.Array, exponent: jax.Array | None
) -> jax.Array:
    """Computes the brightness of a star.

    At distance r and angle a = atan2(dx, dy) the position among the n rays is d = (a + pi) n / (2
    pi), i = floor(d), f = d - i. L is the length between rays i and i + 1, linear in f, and the
    brightness clip((1 - (f - 1/2)^2) (L^2 / (r^2 + 1e-4))^e, 0, 1).

    Args:
      shape: (H, W) or (H, W, 3).
      centre: (row, column), float32 [2], pixels.
      lengths: float32 [M], pixels; the first n are used.
      number: n, int32 scalar, at most M.
      exponent: e, positive scalar, or None for 1.

    Returns:
      float32 [H, W] in [0, 1].
    """
    y = (jnp.arange(shape[0], dtype=jnp.float32) - centre[0])[:, None]
    x = (jnp.arange(shape[1], dtype=jnp.float32) - centre[1])[None, :]
    rays = jnp.asarray(number, jnp.float32)
    position = staging.stage((arctangent2(x, y) / (2 * jnp.pi) + 0.5) * rays)
    ray = jnp.minimum(jnp.floor(position), rays - 1)
    fraction = position - ray
    # Two lookups in one array that is there: XLA would work out entries of pairs or differences
    # anew for each pixel.
    lengths = staging.stage(lengths)
    first = ray.astype(jnp.int32)
    second = jnp.where(first >= number - 1, 0, first + 1)  # at the seam the next ray is the first one again
    start, end = (tables.look_up(lengths, index) for index in (first, second))
    length = start + fraction * (end - start)
    falloff = length**2 / (x**2 + y**2 + 1e-4)
    if exponent is not None:
        falloff = jnp.exp(exponent * jnp.log(falloff))
    return jnp.clip((1 - (fraction - 0.5) ** 2) * falloff, 0.0, 1.0)
