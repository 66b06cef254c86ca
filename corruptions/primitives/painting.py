"""Painting many copies of one small shape: counting the copies over a pixel, and finding the last grey.

A shape is a tuple of runs (row offset, leftmost, rightmost column offset; both ends included): consecutive rows, each
run contained in or containing every other. A product of one-hot matrices enters the centres into one map, and shifts
of the whole map spread it over the shape, along rows, then along columns. Work and memory are a few images, whatever
the number of shapes, without scatters or loops.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

Runs = Sequence[tuple[int, int, int]]


def covering(rows: jax.Array, columns: jax.Array, number: jax.Array, runs: Runs, shape: tuple[int, ...]) -> jax.Array:
    """Counts the shapes covering each pixel: float32 [H, W] of whole numbers. The image's border cuts shapes off.

    Of the centres, int32 [N] each, the first `number` count, which may be traced.
    """
    counted = jnp.arange(rows.shape[0]) < number
    return _spread(_enter(rows, columns, counted.astype(jnp.float32), shape), runs, jnp.add)


def paint(
    image: jax.Array, rows: jax.Array, columns: jax.Array, number: jax.Array, greys: jax.Array, runs: Runs
) -> jax.Array:
    """Paints shapes on an image [H, W, C], one after the other, each with its own grey on all channels.

    `rows` and `columns` are centres, int32 [N], N below 2**15, of which the first `number` are painted (may be
    traced); `greys` are float32 [N] in [0, 1], painted exactly where a multiple of 2**-23 below 1 and N < 256, else
    within 2**-16.
    """
    index = jnp.arange(rows.shape[0])
    painted = index < number
    later = painted[None, :] & (index[None, :] > index[:, None])
    same = (rows[:, None] == rows[None, :]) & (columns[:, None] == columns[None, :])
    hidden = jnp.any(same & later, axis=1)
    seen = (painted & ~hidden).astype(jnp.float32)
    # One whole number holds the order (high bits) and the grey (low bits): the maximum over the shapes covering a
    # pixel belongs to the last one and holds its grey.
    bits = 31 - rows.shape[0].bit_length()
    levels = jnp.minimum(jnp.floor(greys * 2.0**bits), 2.0**bits - 1)
    order = _enter(rows, columns, seen * (index + 1).astype(jnp.float32), image.shape).astype(jnp.int32)
    level = _enter(rows, columns, seen * levels, image.shape).astype(jnp.int32)
    last = _spread((order << bits) | level, runs, jnp.maximum)[..., None]
    grey = (last & (2**bits - 1)).astype(jnp.float32) * 2.0**-bits
    return jnp.where(last > 0, grey, image)


def covered_by_products(row_sets: jax.Array, column_sets: jax.Array) -> jax.Array:
    """Whether any of N products of a set of rows [N, H] and a set of columns [N, W] covers a pixel: bool [H, W]."""
    # Sums of ones: any precision of products tells 0 from more.
    return row_sets.astype(jnp.float32).T @ column_sets.astype(jnp.float32) > 0.5


def _enter(rows, columns, values, shape):
    """Sums the values at each centre: float32 [H, W]."""
    height, width = shape[:2]
    at_row = jnp.where(rows[:, None] == jnp.arange(height)[None, :], values[:, None], 0.0)
    at_column = (columns[:, None] == jnp.arange(width)[None, :]).astype(jnp.float32)
    return jnp.matmul(at_row.T, at_column, precision=jax.lax.Precision.HIGHEST)


def _spread(centres, runs, combine):
    """Combines, at each pixel, the values of all centres whose shape covers it; 0 is neutral."""
    height, width = centres.shape
    reach = max(max(-left, right) for _, left, right in runs)
    top, bottom = -runs[0][0], runs[-1][0]
    padded = jnp.pad(centres, ((bottom, top), (reach, reach)))

    # From the shortest run to the longest, each adding the columns the last one lacks.
    lines, line, done = {}, jnp.zeros((height + bottom + top, width), centres.dtype), set()
    for left, right in sorted({run[1:] for run in runs}, key=lambda run: run[1] - run[0]):
        for column in sorted(set(range(left, right + 1)) - done):
            line = combine(line, padded[:, reach - column : reach - column + width])
            done.add(column)
        lines[left, right] = line
    result = jnp.zeros_like(centres)
    for row, left, right in runs:
        result = combine(result, lines[left, right][bottom - row : bottom - row + height])
    return result
