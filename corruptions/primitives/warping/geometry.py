"""Warps: bilinear interpolation at given positions, with the boundary rules of the field.

Whole pixels are gathered, all channels of a neighbour at once; nothing is scattered, so a warp
costs four reads and one write per pixel.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from corruptions.primitives import staging

MODES = ("symmetric", "reflect")


def fold(index: jax.Array, size: jax.Array | int, mode: str) -> jax.Array:
    """Returns the index of the pixel that the extension of an axis shows at `index`, any integers.

    Args:
      index: int32 array, pixel 0 the first of the axis.
      size: length n of the axis, may be traced.
      mode: "symmetric" (cba|abcd|dcb) or "reflect" (dcb|abcd|cba), names as in `numpy.pad`.

    Returns:
      int32 array in 0..n-1.

    Raises:
      ValueError: another mode.
    """
    if mode == "symmetric":
        index = jnp.mod(index, 2 * size)
        return jnp.minimum(index, 2 * size - 1 - index)
    if mode == "reflect":
        period = jnp.maximum(2 * size - 2, 1)
        index = jnp.mod(index, period)
        return jnp.minimum(index, period - index)
    raise ValueError(f"expected a boundary mode among {', '.join(MODES)}, found {mode!r}")


class Neighbours(NamedTuple):
    """The four pixels around each position and their weights: rows and columns int32 [...], weights
    float32 [...].
    """

    top: jax.Array
    bottom: jax.Array
    left: jax.Array
    right: jax.Array
    top_weight: jax.Array
    bottom_weight: jax.Array
    left_weight: jax.Array
    right_weight: jax.Array


def neighbours(
    row: jax.Array,
    column: jax.Array,
    row_fraction: jax.Array,
    column_fraction: jax.Array,
    shape: tuple[int, ...] | jax.Array,
    mode: str,
) -> Neighbours:
    """Finds the pixels (row, column) to (row + 1, column + 1), brought inside the image, and their
    bilinear weights.

    Args:
      row, column: int32 [...], any integers.
      row_fraction, column_fraction: float32 [...] in [0, 1], the distance from (row, column) in
        pixels.
      shape: (H, W, ...), of the image; may be traced.
      mode: how the image continues beyond its border, see `fold`.
    """
    height, width = shape[0], shape[1]
    weights = [1 - row_fraction, row_fraction, 1 - column_fraction, column_fraction]
    rows = [fold(index, height, mode) for index in (row, row + 1)]
    columns = [fold(index, width, mode) for index in (column, column + 1)]
    return Neighbours(*rows, *columns, *weights)


def interpolate(image: jax.Array, near: Neighbours) -> jax.Array:
    """Sums the weighted neighbours of each position: image [H, W, C], near of shape [...] to [...,
    C].
    """

    def along_row(row):
        left, right = (image.at[row, column].get(mode="promise_in_bounds") for column in (near.left, near.right))
        return left * near.left_weight[..., None] + right * near.right_weight[..., None]

    upper, bottom = staging.in_turn(along_row(near.top) * near.top_weight[..., None], near.bottom)
    return upper + along_row(bottom) * near.bottom_weight[..., None]


def displaced(dy: jax.Array, dx: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Splits (y + dy, x + dx) for every pixel (y, x) as `neighbours` takes it; dy, dx float32 [H, W]
    in pixels.

    The displacement is split before y is added, which keeps all bits of its fraction.
    """
    down, right = jnp.floor(dy), jnp.floor(dx)
    row = jnp.arange(dy.shape[0])[:, None] + down.astype(jnp.int32)
    column = jnp.arange(dy.shape[1])[None, :] + right.astype(jnp.int32)
    return row, column, dy - down, dx - right
