"""Tiles of a channel: their histograms, and the interpolation between their tables."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives.staging import stage


class Neighbours(NamedTuple):
    """The two tiles around each pixel along an axis.

    Attributes:
      pairs: int [number + 1, 2], each tile and the one before; at the ends one tile twice.
      pair: int [size], which pair is around each pixel.
      weight: float32 [size], of the further tile.
    """

    pairs: np.ndarray
    pair: np.ndarray
    weight: np.ndarray


def neighbours(further: np.ndarray, weight: np.ndarray, number: int) -> Neighbours:
    """Makes the `Neighbours` of pixels from the further tile of each, 0 to `number`."""
    pairs = np.clip(np.stack([np.arange(-1, number), np.arange(number + 1)], axis=1), 0, number - 1)
    return Neighbours(pairs, further.astype(np.int32), weight.astype(np.float32))


def histograms(tiles: jax.Array, bins: int) -> jax.Array:
    """Counts the values of each tile.

    Args:
      tiles: int [T, A], values in 0..bins-1.
      bins: how many.

    Returns:
      int32 [T, bins].
    """
    number = tiles.shape[0]
    place = tiles + bins * jnp.arange(number)[:, None]
    counts = jnp.zeros(number * bins, jnp.int32).at[place.reshape(-1)].add(1, mode="promise_in_bounds")
    return counts.reshape(number, bins)


def cut(channel: jax.Array, rows: int, columns: int) -> jax.Array:
    """Cuts [rows h, columns w] into tiles [rows columns, h w], row by row."""
    height, width = channel.shape[0] // rows, channel.shape[1] // columns
    tiles = channel.reshape(rows, height, columns, width).transpose(0, 2, 1, 3)
    return tiles.reshape(rows * columns, height * width)


def blend(tables: jax.Array, values: jax.Array, down: Neighbours, right: Neighbours, bits: int) -> jax.Array:
    """Interpolates between the tables of the four tiles around each pixel.

    ((1 - x) upper_left + x upper_right) (1 - y) + ((1 - x) lower_left + x lower_right) y, each
    product and each sum rounded to float32 on its own, as C code without contraction does.

    Args:
      tables: int32 [rows, columns, bins] of values of at most so many bits.
      values: int32 [H, W], bins.
      down: rows of tiles around each pixel's row, H of them.
      right: columns of tiles around each pixel's column, W of them.
      bits: 8 or 16.

    Returns:
      float32 [H, W].
    """
    corners = [tables[down.pairs[:, i]][:, right.pairs[:, j]].astype(jnp.uint32) for i in (0, 1) for j in (0, 1)]
    across = jnp.asarray(right.pair)[None, :] + len(right.pairs) * jnp.asarray(down.pair)[:, None]
    place = across * tables.shape[2] + values
    found = []  # corners share a word: what costs time is the look-up of a word for each pixel
    for first in range(0, 4, 32 // bits):
        shifted = enumerate(corners[first : first + 32 // bits])
        words = stage(functools.reduce(jnp.bitwise_or, [table << (bits * k) for k, table in shifted]))
        own = stage(words.reshape(-1).at[place].get(mode="promise_in_bounds"))
        found += [(own >> shift & (2**bits - 1)).astype(jnp.float32) for shift in range(0, 32, bits)]
    x, y = jnp.asarray(right.weight)[None, :], jnp.asarray(down.weight)[:, None]
    upper, lower = (_product(a, 1 - x) + _product(b, x) for a, b in (found[:2], found[2:]))
    return _product(upper, 1 - y) + _product(lower, y)


def _product(a, b):
    # No product is negative. The maximum, which never acts, keeps compilers from fusing products
    # and sums into one rounding.
    return jnp.maximum(a * b, 0)
