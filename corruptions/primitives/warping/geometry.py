"""Warps: bilinear interpolation at given positions, with the boundary rules of the field.

Whole pixels are gathered, all channels of a neighbour at once; nothing is scattered, so a warp
costs four reads and one write per pixel.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from corruptions.primitives.warping import bilinear

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
    period, mirrored = _mirror(size, mode)
    index = jnp.mod(index, period)
    return jnp.minimum(index, mirrored - index)


def _mirror(size, mode):
    """The period of an extension, and the sum of an index and the one where it shows the same again."""
    if mode == "symmetric":
        return 2 * size, 2 * size - 1
    if mode == "reflect":
        return jnp.maximum(2 * size - 2, 1), 2 * size - 2
    raise ValueError(f"expected a boundary mode among {', '.join(MODES)}, found {mode!r}")


class Neighbours(NamedTuple):
    """The square of four pixels around each position: the number of its upper left one, row by row,
    int32 [...], and how far down and to the right of that the position lies, float32 [...] in [0, 1].
    """

    upper_left: jax.Array
    down: jax.Array
    right: jax.Array


def neighbours(
    row: jax.Array,
    column: jax.Array,
    row_fraction: jax.Array,
    column_fraction: jax.Array,
    shape: Sequence[int] | jax.Array,
    mode: str,
    stride: int | None = None,
) -> Neighbours:
    """Finds the pixels (row, column) to (row + 1, column + 1), brought inside the image.

    Args:
      row, column: int32 [...], any integers.
      row_fraction, column_fraction: float32 [...] in [0, 1], the distance from (row, column) in
        pixels.
      shape: (H, W, ...) of the image, at least 2 each; may be traced.
      mode: how the image continues beyond its border, see `fold`.
      stride: pixels in a row of the array, where that is more than W.
    """
    top, down = _pair(row, row_fraction, shape[0], mode)
    left, right = _pair(column, column_fraction, shape[1], mode)
    return Neighbours(top * (shape[1] if stride is None else stride) + left, down, right)


def _pair(index, fraction, size, mode):
    """Brings the samples `index` and `index` + 1 to two in a row inside an axis: the first, and the
    weight of the second.
    """
    period, mirrored = _mirror(size, mode)
    index = jnp.mod(index, period)
    first = jnp.minimum(index, mirrored - 1 - index)
    fraction = jnp.where(first < index, 1 - fraction, fraction)  # mirrored, the two change places
    # Between a sample at the end and its mirror image, which is the same, lies that alone.
    fraction = jnp.where(first < 0, 0.0, jnp.where(first > size - 2, 1.0, fraction))
    return jnp.clip(first, 0, size - 2), fraction


def interpolate(image: jax.Array, near: Neighbours) -> jax.Array:
    """Weights the neighbours of each position: image [H, W, C], near of shape [...] to [..., C]."""
    return bilinear.look_up(image.reshape(-1, image.shape[-1]), image.shape[1], *near)


def displaced(dy: jax.Array, dx: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Splits (y + dy, x + dx) for every pixel (y, x) as `neighbours` takes it; dy, dx float32 [H, W]
    in pixels.

    The displacement is split before y is added, which keeps all bits of its fraction.
    """
    down, right = jnp.floor(dy), jnp.floor(dx)
    row = jnp.arange(dy.shape[0])[:, None] + down.astype(jnp.int32)
    column = jnp.arange(dy.shape[1])[None, :] + right.astype(jnp.int32)
    return row, column, dy - down, dx - right
