"""Resizing along one axis: the zoom of ImageNet-C, sums of zooms, Pillow's antialiased triangle filter."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions.primitives import filters, staging


def zoom_taps(size: int, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """Computes the two-tap interpolation of `clipped_zoom` along one axis (ImageNet-C; `scipy.ndimage.zoom` of order
    1).

    The crop of c = ceil(size / factor) samples, starting at (size - c) // 2, is resampled to m = round(c * factor)
    points with both ends aligned: point o lies at o (c - 1) / (m - 1). The result is `size` points from (m - size) //
    2 on.

    Args:
      size: samples along the axis.
      factor: zoom factor >= 1, float64 on the host (it may come with the rounding of `np.arange`).

    Returns:
      (first, fraction): int [size] and float64 [size]; output o is (1 - fraction) x[first] + fraction x[first + 1],
      and first + 1 < size.
    """
    if factor < 1:
        raise ValueError(f"expected a zoom factor of at least 1, found {factor}")
    crop = math.ceil(size / factor)
    start = (size - crop) // 2
    enlarged = round(crop * factor)
    kept = np.arange(size) + (enlarged - size) // 2
    position = kept * ((crop - 1) / max(enlarged - 1, 1))
    first = np.clip(np.floor(position).astype(int), 0, crop - 2)
    return start + first, position - first


def zoom_matrix(size: int, factor: float) -> np.ndarray:
    """Builds the matrix A of `zoom_taps`: A x is the zoomed axis. float64 [size, size] on the host."""
    first, fraction = zoom_taps(size, factor)
    matrix = np.zeros((size, size))
    rows = np.arange(size)
    matrix[rows, first] += 1 - fraction
    matrix[rows, first + 1] += fraction
    return matrix


def sum_of_zooms(
    image: jax.Array, rows: jax.Array, columns: jax.Array, weights: jax.Array, largest: float = 4 / 3
) -> jax.Array:
    """Computes sum_j w_j zoom_j(X) of an image [H, W, C]: each zoom interpolates linearly along both axes.

    Output (y, x) of zoom j lies at (y + rows[j, y], x + columns[j, x]) of the image. The zooms are summed one after
    another, so that two images at a time are in memory.

    Args:
      rows: float32 [n, H], source minus output position of the samples, as from `zoom_taps`.
      columns: float32 [n, W], which fall by at most 1 - 1 / largest from sample to sample.
      weights: float32 [n].
      largest: bound of the zoom factors.
    """
    arrays = map(jnp.asarray, (image, rows, columns, weights))
    # The offsets of a tile's columns span at most this many whole numbers, and each column has two taps.
    shifts = 3 + math.floor((_TILE - 1) * (1 - 1 / largest))
    by_tiles = functools.partial(_sum_of_tiles, shifts)
    return staging.by_platform(*arrays, tpu=_sum_of_products, cpu=by_tiles, default=_sum_of_taps)


def _sum_of_taps(image, rows, columns, weights):
    def add(j, total):
        above, below, down = _taps(rows[j])
        left, right, across = _taps(columns[j])
        down, across = down[:, None, None], across[None, :, None]
        tall = (1 - down) * _take(image, above, 0) + down * _take(image, below, 0)
        wide = (1 - across) * _take(tall, left, 1) + across * _take(tall, right, 1)
        return total + weights[j] * wide

    # Unrolled they are one GPU kernel; a loop would read and write the sum for each zoom.
    return staging.loop(weights.shape[0], add, jnp.zeros_like(image), unroll=True)


def _sum_of_tiles(shifts, image, rows, columns, weights):
    """Computes `sum_of_zooms` in tiles of eight columns, each the weighted sum of shifts of a strip of columns.

    A CPU reads a strip with its vector units, but columns of a table number by number.
    """
    height, width, channels = image.shape
    tiles = -(-width // _TILE)
    # A strip begins up to shifts - 2 columns before the image and ends up to shifts - 1 behind its last tile.
    margin = shifts - 1
    flat = jnp.pad(image, ((0, 0), (margin, tiles * _TILE - width + margin), (0, 0))).reshape(height, -1)
    columns = jnp.pad(columns, ((0, 0), (0, tiles * _TILE - width)), mode="edge")

    def add(total, layer):
        down, across, weight, wanted = layer
        above, below, down = _taps(down)
        start, shares = _strips(across.reshape(tiles, _TILE), shifts)
        start, shares = (start + margin) * channels, jnp.repeat(weight * shares, channels, axis=2)

        def compute(total):
            tall = (1 - down)[:, None] * _take(flat, above, 0) + down[:, None] * _take(flat, below, 0)
            tall, length = staging.stage(tall), (_TILE + shifts - 1) * channels
            strips = jax.vmap(lambda first: jax.lax.dynamic_slice_in_dim(tall, first, length, axis=1), 0, 1)(start)
            shifted = (strips[..., k * channels : (k + _TILE) * channels] for k in range(shifts))
            return total + sum(shares[None, :, k] * x for k, x in enumerate(shifted))

        # Computed inside the branch, the shares would be computed again for each row of the image.
        return jax.lax.cond(wanted, compute, lambda total: total, total), None

    total = staging.varying_zeros((height, tiles, _TILE * channels), like=image)
    wanted = staging.largest((weights > 0).astype(jnp.int32)) > 0  # used by any image of a batch
    total = jax.lax.scan(add, total, (rows, columns, weights, wanted))[0]
    return total.reshape(height, tiles * _TILE, channels)[:, :width]


_TILE = 8  # numbers in a CPU's vector


def _strips(offsets, shifts):
    """Finds the column where the strip of each tile begins, int32 [tiles], and the weights in output column x of the
    strip's `shifts` columns x, x + 1, ..., float32 [tiles, shifts, 8]; offsets are [tiles, 8].
    """
    whole = jnp.floor(offsets)
    first = jnp.min(whole, axis=1, keepdims=True)
    fraction = (offsets - whole)[:, None]
    k = jnp.arange(shifts, dtype=jnp.float32)[None, :, None] - (whole - first)[:, None]
    shares = jnp.where(k == 0, 1 - fraction, 0.0) + jnp.where(k == 1, fraction, 0.0)
    return _TILE * jnp.arange(offsets.shape[0]) + first[:, 0].astype(jnp.int32), shares


def _sum_of_products(image, rows, columns, weights):
    """Computes `sum_of_zooms` with a matrix for each axis: taking rows and columns is slow on a TPU."""

    def add(total, layer):
        down, across, weight = layer
        return total + filters.separable(
            image, matrix_of_taps(*_taps(down)), weight * matrix_of_taps(*_taps(across))
        ), None

    return jax.lax.scan(add, jnp.zeros_like(image), (rows, columns, weights))[0]


def matrix_of_taps(first: jax.Array, second: jax.Array, fraction: jax.Array) -> jax.Array:
    """Builds the matrix A, float32 [n, n]: (A x)_o = (1 - fraction_o) x[first_o] + fraction_o x[second_o]."""
    first, second, fraction = (values[:, None] for values in (first, second, fraction))
    sample = jnp.arange(first.shape[0])[None, :]
    return jnp.where(sample == first, 1 - fraction, 0) + jnp.where(sample == second, fraction, 0)


def _taps(offsets):
    """Finds the two samples around each position and the weight of the second."""
    whole = jnp.floor(offsets)
    first = jnp.arange(offsets.size) + whole.astype(jnp.int32)
    return first, jnp.minimum(first + 1, offsets.size - 1), offsets - whole


def _take(image, index, axis):
    return jnp.take(image, index, axis=axis, mode="clip")


def triangle_matrix(
    outputs: ArrayLike, inputs: ArrayLike, output_size: int, input_size: int, first: ArrayLike = 0
) -> jax.Array:
    """Makes the matrix that resizes by the antialiased triangle filter (PIL's BILINEAR).

    With q = inputs / outputs, output i is the mean of the inputs weighted by max(0, 1 - |j + 1/2 - (i + 1/2) q| /
    max(q, 1)): linear interpolation when enlarging, a filter as wide as the reduction when shrinking, cut at the ends.

    Args:
      outputs, inputs: numbers of samples, may be traced.
      output_size, input_size: static sizes of the matrix, float32 [output_size, input_size], at least those numbers.
      first: index of the first input sample, may be traced.

    Columns outside first..first + inputs - 1 are zero, rows 0..outputs - 1 sum to one; rows from `outputs` on are to be
    ignored.
    """
    inputs, outputs, first = (jnp.asarray(v, jnp.float32) for v in (inputs, outputs, first))
    ratio = inputs / outputs
    centre = (jnp.arange(output_size, dtype=jnp.float32)[:, None] + 0.5) * ratio
    sample = jnp.arange(input_size, dtype=jnp.float32)[None, :] - first
    weight = jnp.maximum(0.0, 1 - jnp.abs(sample + 0.5 - centre) / jnp.maximum(ratio, 1.0))
    weight = jnp.where((sample >= 0) & (sample < inputs), weight, 0.0)
    return weight / jnp.maximum(weight.sum(axis=1, keepdims=True), 1e-6)
