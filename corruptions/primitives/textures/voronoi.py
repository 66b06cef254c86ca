"""Voronoi cells: the distance to the nearest of points scattered one to a square cell."""

import math

import jax
import jax.numpy as jnp
import numpy as np


def voronoi_distance(shape: tuple[int, ...], seed: jax.Array, scale: jax.Array, least_scale: float) -> jax.Array:
    """Computes the distance of every pixel to the nearest point, in cells, at most 1.

    Pixel (x, y) lies at (x, y) / z + 1. Cell c = (cx, cy) holds one point, at c + frac(k sin(w)
    sqrt(w) / 400) with w = (13.85 cx + 47.77 cy, 99.41 cx + 88.48 cy). Points of the 3 x 3 cells
    around are considered.

    Args:
      shape: (H, W) or (H, W, 3).
      seed: k, scalar.
      scale: z, the side of a cell, scalar, pixels.
      least_scale: a Python number that `scale` is never below.

    Returns:
      float32 [H, W] in [0, 1].
    """
    counts = [math.floor((n - 1) / least_scale + 1) + 3 for n in shape[:2]]
    # The large sines are taken here, in float64; what is left to do in float32 is one product.
    cy, cx = np.mgrid[: counts[0], : counts[1]].astype(np.float64)
    hashes = np.stack([_hash(13.85 * cx + 47.77 * cy), _hash(99.41 * cx + 88.48 * cy)], axis=-1)
    points = seed * jnp.asarray(hashes.reshape(-1, 2), jnp.float32)
    points -= jnp.floor(points)
    y, x = (jnp.arange(n, dtype=jnp.float32) / scale + 1 for n in shape[:2])
    row, column = jnp.floor(y), jnp.floor(x)
    cell = row.astype(jnp.int32)[:, None] * counts[1] + column.astype(jnp.int32)[None, :]
    away_y, away_x = (row - y)[:, None], (column - x)[None, :]
    nearest = jnp.float32(1.0)
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            point = jnp.take(points, cell + (i * counts[1] + j), axis=0, mode="clip")
            nearest = jnp.minimum(nearest, (away_x + j + point[..., 0]) ** 2 + (away_y + i + point[..., 1]) ** 2)
    return jnp.sqrt(nearest)


def _hash(w):
    return np.sin(w) * np.sqrt(w) * 0.0025
