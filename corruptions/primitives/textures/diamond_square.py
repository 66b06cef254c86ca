"""Plasma fractal by midpoint displacement (diamond-square) on a torus."""

import math

import jax
import jax.numpy as jnp


def draws_needed(side: int) -> int:
    """Counts the uniforms that a map of side 2^K takes: all its points but the corner."""
    return side * side - 1


def diamond_square(uniforms: jax.Array, decay: jax.Array) -> jax.Array:
    """Builds a height map of side m = 2^K from its random displacements.

    Octave k = 0, ..., K - 1 refines a grid C of n x n points, n = 2^k, with displacements of
    amplitude decay^(-2k). All shifts are circular, U are that octave's draws:

        centres  Q = (C[i,j] + C[i+1,j] + C[i,j+1] + C[i+1,j+1]) / 4 + amplitude U
        top      T = (Q + Q[i-1,j] + C + C[i,j+1]) / 4 + amplitude U
        left     L = (Q + Q[i,j-1] + C + C[i+1,j]) / 4 + amplitude U

    and interleaves them, C T over L Q. The amplitude of the whole is arbitrary. The original
    (ImageNet-C, fog) starts at 100^2; and as it multiplies the displacements by their own
    amplitude, they fall by decay^2 per octave.

    Args:
      uniforms: float32 [m^2 - 1] in [-1, 1]: per octave the centres, top and left points, each n x
        n by rows.
      decay: scalar, may be traced.

    Returns:
      float32 [m, m], 0 at the corner.

    Raises:
      ValueError: the number of uniforms fits no side.
    """
    side = math.isqrt(uniforms.shape[0] + 1)
    if uniforms.ndim != 1 or side & (side - 1) or draws_needed(side) != uniforms.shape[0]:
        raise ValueError(f"expected 4^K - 1 uniforms in one dimension, found shape {tuple(uniforms.shape)}")
    grid = jnp.zeros((1, 1), jnp.float32)
    amplitude, used = jnp.float32(1), 0
    for octave in range(side.bit_length() - 1):
        n = 2**octave
        displaced = uniforms[used : used + 3 * n * n].reshape(3, n, n) * amplitude
        grid = _refine(grid, *displaced)
        used += 3 * n * n
        amplitude = amplitude / decay**2
    return grid


def _refine(grid, centre, top, left):
    n = grid.shape[0]
    right = _next(grid, 1)
    centre = (grid + right + _next(grid + right, 0)) / 4 + centre
    top = (centre + _previous(centre, 0) + grid + right) / 4 + top
    left = (centre + _previous(centre, 1) + grid + _next(grid, 0)) / 4 + left
    rows = [jnp.stack(pair, axis=-1).reshape(n, 2 * n) for pair in ((grid, top), (left, centre))]
    return jnp.stack(rows, axis=1).reshape(2 * n, 2 * n)


def _next(x, axis):
    return jnp.roll(x, -1, axis)


def _previous(x, axis):
    return jnp.roll(x, 1, axis)
