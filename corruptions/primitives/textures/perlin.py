"""Perlin's noise and turbulence, as products of a lattice of gradients with static matrices."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import tables

_product = functools.partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)
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
    axes = [[_axis(n, frequency * octave) for n in shape[:2]] for octave in OCTAVES]
    # Columns by rows, the corners of all octaves in one axis: a TPU's compiler takes a second and more for
    # each look-up, and ten for one of pixels in two axes.
    corners = [np.stack(np.meshgrid(rows[0], columns[0])).reshape(2, -1) for rows, columns in axes]
    i, j = np.concatenate(corners, axis=1) % _PERIOD
    hashed = (tables.look_up(permutation, jnp.asarray(i)) + j) % _PERIOD
    found = [tables.look_up(tables.look_up(part, permutation), hashed) for part in gradients.T]
    ends = np.cumsum([points.shape[1] for points in corners])[:-1]
    total = jnp.float32(0)
    for octave, (rows, columns), *parts in zip(OCTAVES, axes, *(jnp.split(part, ends) for part in found), strict=True):
        (points, blend_rows, slope_rows), (_, blend_columns, slope_columns) = rows, columns
        lattice = jnp.stack(parts).reshape(2, -1, points.size)
        halves = _product("kji,kyi->kjy", lattice, np.stack([slope_rows, blend_rows]))
        total += jnp.abs(_product("kjy,kxj->yx", halves, np.stack([blend_columns, slope_columns]))) * (1.5 / octave)
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
