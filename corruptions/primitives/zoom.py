"""The zoom of ImageNet-C: a central crop enlarged bilinearly to the image's size, as one matrix per axis."""

import itertools
import math

import jax.numpy as jnp
import numpy as np


def zoom_taps(size, factor):
    """Two-tap interpolation of `clipped_zoom` along one axis (ImageNet-C; `scipy.ndimage.zoom` of order 1).

    The crop of c = ceil(size / factor) samples, starting at (size - c) // 2, is resampled to m = round(c * factor)
    points with both ends aligned: point o lies at o (c - 1) / (m - 1). Of these, `size` are kept from (m - size) // 2.

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


def zoom_matrix(size, factor):
    """Matrix A of `zoom_taps`: A x is the zoomed axis. float64 [size, size] on the host."""
    first, fraction = zoom_taps(size, factor)
    matrix = np.zeros((size, size))
    rows = np.arange(size)
    matrix[rows, first] += 1 - fraction
    matrix[rows, first + 1] += fraction
    return matrix


def sum_of_zooms(image, rows, columns, weights, largest):
    """sum_j w_j A_j X B_j^T of every channel X, with the interpolation matrices of n zooms.

    Row o of A_j holds the two weights of linear interpolation at o + rows[j, o]: a hat function. The sum over
    zooms is folded into two matrix products. Zooms leave a stripe of the image near its place, so both products are
    done in stripes, each from the few rows (columns) it can need.

    Args:
      image: float32 [H, W, C].
      rows: float32 [n, H], source minus output position, as from `zoom_taps`.
      columns: float32 [n, W].
      weights: float32 [n].
      largest: static upper bound of the zoom factors, which bounds where a stripe comes from.

    Returns:
      float32 [H, W, C].
    """
    height, width = image.shape[:2]
    planes = jnp.moveaxis(image, -1, 0)
    stripes = []
    for start, stop in _stripes(width):
        low, high = _source_range(width, start, stop, largest)
        across = _hats(columns, start, stop, low, high)  # [n, o, w]
        wide = jnp.einsum("chw,jow->chjo", planes[:, :, low:high], across, precision="highest")
        parts = []
        for top, bottom in _stripes(height):
            first, last = _source_range(height, top, bottom, largest)
            down = weights[:, None, None] * _hats(rows, top, bottom, first, last)
            parts.append(jnp.einsum("jph,chjo->cpo", down, wide[:, first:last], precision="highest"))
        stripes.append(jnp.concatenate(parts, axis=1))
    return jnp.moveaxis(jnp.concatenate(stripes, axis=2), 0, -1)


def _hats(offsets, start, stop, low, high):
    """Interpolation weights of outputs start..stop-1 on samples low..high-1: float32 [n, stop-start, high-low]."""
    difference = jnp.arange(start, stop)[:, None] - jnp.arange(low, high)
    position = offsets[:, start:stop, None] + difference.astype(jnp.float32)
    return jnp.maximum(1 - jnp.abs(position), 0.0)


def _stripes(size):
    count = max(1, round(size / 56))
    ends = [size * i // count for i in range(count + 1)]
    return list(itertools.pairwise(ends))


def _source_range(size, start, stop, largest):
    """Samples that outputs start..stop-1 of zooms 1..largest can touch."""
    centre = size / 2
    ends = [o for edge in (start, stop) for o in (edge, centre + (edge - centre) / largest)]
    # Crops are rounded to whole samples: up to two beside the ideal place, and one more for the second tap.
    return max(0, math.floor(min(ends)) - 3), min(size, math.ceil(max(ends)) + 4)
