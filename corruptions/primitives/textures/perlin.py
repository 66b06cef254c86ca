"""Perlin's noise and turbulence, as products of a lattice of gradients with static matrices."""

import jax
import jax.numpy as jnp
import numpy as np

_PERIOD = 256
OCTAVES = (1, 2, 4, 8, 16)


def turbulence(gradients: jax.Array, permutation: jax.Array, shape: tuple[int, ...], frequency: float) -> jax.Array:
    """Sums |n(f u, f v)| / f over f = 1, 2, 4, 8, 16 at (u, v) = frequency * (y, x).

    n is 1.5 times the smoothstep blend, 3 t^2 - 2 t^3, of g . (p - corner) over the four corners of
    p's cell; corner (i, j) has the gradient G[P[P[i] + j]], all indices mod 256.

    Args:
      gradients: G, float32 [256, 2], along rows and columns.
      permutation: P, int32 [256].
      shape: (H, W) or (H, W, 3).
      frequency: cells per pixel, a Python number.

    Returns:
      float32 [H, W], about 0.5 in the mean; the error of float32 arithmetic is below 1e-5.
    """
    total = jnp.float32(0)
    for octave in OCTAVES:
        (rows, blend_rows, slope_rows), (columns, blend_columns, slope_columns) = (
            _axis(n, frequency * octave) for n in shape[:2]
        )
        hashed = permutation[(permutation[rows % _PERIOD][:, None] + columns[None, :] % _PERIOD) % _PERIOD]
        along_rows, along_columns = gradients[:, 0][hashed], gradients[:, 1][hashed]
        # Both terms of the dot product in one product: the lattices side by side, the matrices one
        # over the other.
        halves = jnp.concatenate([_dot(along_rows, blend_columns.T), _dot(along_columns, slope_columns.T)])
        total += jnp.abs(_dot(np.concatenate([slope_rows, blend_rows], axis=1), halves)) * (1.5 / octave)
    return total


def _axis(size, frequency):
    """Lattice points in use along an axis [I], weights [size, I] and weights times distances [size,
    I].
    """
    position = np.arange(size) * frequency
    cell = np.floor(position).astype(int)
    points, index = np.unique(np.stack([cell, cell + 1]), return_inverse=True)
    index = index.reshape(2, size)
    fraction = position - cell
    smooth = fraction**2 * (3 - 2 * fraction)
    blend, slope = np.zeros((2, size, points.size))
    for corner, weight in enumerate((1 - smooth, smooth)):
        blend[np.arange(size), index[corner]] = weight
        slope[np.arange(size), index[corner]] = weight * (fraction - corner)
    return points, blend.astype(np.float32), slope.astype(np.float32)


def _dot(a, b):
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)
