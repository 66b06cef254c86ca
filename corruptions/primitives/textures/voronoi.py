"""Voronoi cells: the distance to the nearest of points scattered one to a square cell."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import filters


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
    points = points.reshape(*counts, 2)
    nearest = functools.partial(_nearest, _taken), functools.partial(_nearest, _products)
    return jnp.sqrt(jax.lax.platform_dependent(points, y, x, default=nearest[0], tpu=nearest[1]))


def _nearest(look_up, points, y, x):
    """The least squared distance to the points of 3 x 3 cells around (y, x), at most 1."""
    row, column = jnp.floor(y), jnp.floor(x)
    point_of = look_up(points, row.astype(jnp.int32), column.astype(jnp.int32))
    away_y, away_x = (row - y)[:, None], (column - x)[None, :]
    nearest = jnp.float32(1.0)
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            point = point_of(i, j)
            nearest = jnp.minimum(nearest, (away_x + j + point[..., 0]) ** 2 + (away_y + i + point[..., 1]) ** 2)
    return nearest


def _taken(points, row, column):
    """Makes (i, j) -> points[row + i, column + j], [H, W, 2]."""
    width = points.shape[1]
    cell = row[:, None] * width + column[None, :]
    return lambda i, j: jnp.take(points.reshape(-1, 2), cell + (i * width + j), axis=0, mode="clip")


def _products(points, row, column):
    """The same by products with ones and zeros, exact too: a TPU takes pixel by pixel slowly."""
    columns = jnp.concatenate([jax.nn.one_hot(column + j, points.shape[1]) for j in (-1, 0, 1)])
    planes = [filters.separable(points, jax.nn.one_hot(row + i, points.shape[0]), columns) for i in (-1, 0, 1)]
    return lambda i, j: planes[i + 1][:, (j + 1) * column.size : (j + 2) * column.size]


def _hash(w):
    return np.sin(w) * np.sqrt(w) * 0.0025
