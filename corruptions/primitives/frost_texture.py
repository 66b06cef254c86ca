"""Procedural frost: random ice textures with the statistics of the photographs behind ImageNet-C's frost.

A texture is a sum of random fields one octave apart, the finest bent into filaments that are stronger in some patches
than in others; the sum takes the brightness distribution and the colours measured on a photograph. All steps but the
fields are pointwise, and the fields are built at the wanted pixels only, each as a product of small matrices.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import filters, padded, random

_product = functools.partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)
SCALES = tuple(0.8 * 2.0**k for k in range(8))  # standard deviations in pixels of the fields' Gaussian kernels
PERCENTILES = (1, 5, 25, 50, 75, 95, 99)
LOOKS = ("filaments", "needles", "granules", "ferns")  # after frost1, frost2 (= frost3), frost4, frost5 of ImageNet-C

_RIDGED = 3  # number of the finest fields, which become filaments
_PATCH_SCALE = 9.6
_TINT_SCALE = 19.2
_SPACING = 1.25  # spacing of a field's lattice, in standard deviations of its kernel
_APART = 6  # standard deviations between positions that are drawn independently: their correlations are below exp(-9)

# Measured on the photographs, per look: luminance at the percentiles; mean of luminance, R, G, B; change of R, G, B
# per level of luminance; change per unit of a separate field of tint (only `filaments` goes from cyan to grey).
LEVELS = (
    (95, 102, 116, 128, 141, 163, 177),
    (140, 165, 193, 208, 220, 235, 244),
    (81, 102, 132, 150, 167, 196, 231),
    (43, 58, 89, 117, 149, 202, 237),
)
_MEANS = ((130, 78, 149, 166), (205, 201, 205, 215), (150, 138, 153, 165), (121, 112, 123, 135))
_SLOPES = ((1.341, 0.893, 0.669), (0.95, 1.0, 1.04), (1.0, 1.0, 1.03), (1.02, 1.0, 0.98))
_TINTS = ((-10.3, 3.65, 8.4), (0, 0, 0), (0, 0, 0), (0, 0, 0))

# Fitted to the measured spectra of the photographs, per look: amplitude of each field; deviation of
# the logarithm of the filaments' strength; percentiles of the sum.
AMPLITUDES = (
    (6.5, 7.8, 0.0, 4.0, 5.8, 1.8, 12.0, 5.8),
    (7.5, 11.6, 13.3, 7.8, 0.0, 5.4, 0.0, 21.0),
    (9.9, 17.2, 11.6, 6.0, 0.0, 0.0, 11.5, 16.6),
    (17.2, 11.0, 24.3, 21.7, 2.6, 0.0, 10.8, 24.7),
)
PATCHINESS = (0.25, 0.4, 0.25, 0.3)
QUANTILES = (
    (-40.9, -29.4, -12.3, -0.0, 12.6, 30.8, 44.0),
    (-67.4, -47.0, -19.0, 0.7, 20.9, 51.5, 75.3),
    (-68.2, -49.0, -20.8, -0.2, 21.4, 54.1, 78.6),
    (-104.3, -74.6, -31.2, -0.0, 32.0, 80.4, 117.0),
)


def texture(key: jax.Array, look: jax.Array | int, rows: np.ndarray, columns: np.ndarray, own: Any = None) -> jax.Array:
    """Draws a random frost texture at the crossings of some rows and columns of an endless sheet.

    Args:
      look: index into `LOOKS`, may be traced.
      rows, columns: host arrays [H], [W] of increasing whole pixel positions, not necessarily neighbours.
      own: `lattices` of the first rows and columns, which then are as they would be without the others; may be traced.

    Returns whole RGB levels 0..255, float32 [H, W, 3].
    """
    key, tint_key = jax.random.split(key)
    own = [None] * (len(SCALES) + 2) if own is None else own
    sheet = height(key, rows, columns, _row(AMPLITUDES, look), _row(PATCHINESS, look), own)
    luminance = spread(sheet, _row(QUANTILES, look), _row(LEVELS, look))
    means, slopes, tints = (_row(table, look)[None, None, :] for table in (_MEANS, _SLOPES, _TINTS))
    tint = _field(tint_key, rows, columns, _TINT_SCALE, own[-1])
    deviation = luminance[..., None] - means[..., :1]
    colour = means[..., 1:] + deviation * slopes + tint[..., None] * tints
    return jnp.clip(jnp.round(colour), 0, 255)


def lattices(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Counts the points at which the fields of `texture` draw noise: int32 [fields, 2], down and across."""
    spaced = min(np.diff(rows).min(), np.diff(columns).min())
    scales = (*SCALES, _PATCH_SCALE, _TINT_SCALE)
    number = lambda axis, scale: len(axis) if spaced > _APART * scale else len(_lattice(axis, scale))  # noqa: E731
    return np.array([[number(axis, scale) for axis in (rows, columns)] for scale in scales], np.int32)


def height(
    key: jax.Array,
    rows: np.ndarray,
    columns: np.ndarray,
    amplitudes: jax.Array,
    patchiness: jax.Array | float,
    own: Sequence[Any] = (None,) * (len(SCALES) + 1),
) -> jax.Array:
    """Draws random fields of mean 0 and variance 1 and sums them: float32 [H, W].

    Args:
      rows, columns, own: as of `texture`.
      amplitudes: float32 [8], of each scale's field.
      patchiness: deviation of the logarithm of the filaments' strength, whose mean square is 1.
    """
    patch_key, *keys = jax.random.split(key, 1 + len(SCALES))
    fine = zip(amplitudes[:_RIDGED], keys, SCALES[:_RIDGED], own, strict=False)
    filaments = sum(amplitude * _ridge(_field(k, rows, columns, *field)) for amplitude, k, *field in fine)
    patches = _field(patch_key, rows, columns, _PATCH_SCALE, own[len(SCALES)])
    strength = jnp.exp(patchiness * patches - patchiness**2)
    coarse = slice(_RIDGED, len(SCALES))
    coarse = _sum_of_fields(keys[coarse], rows, columns, SCALES[coarse], amplitudes[coarse], own[coarse])
    return strength * filaments + coarse


def spread(x: jax.Array, quantiles: jax.Array, levels: jax.Array) -> jax.Array:
    """Maps `quantiles` [7] to `levels` [7] piecewise linearly, first and last piece extended, within 0..255."""
    slopes = jnp.diff(levels) / jnp.diff(quantiles)
    last = len(PERCENTILES) - 2
    value = levels[0]
    for k in range(last + 1):
        low = -jnp.inf if k == 0 else quantiles[k]
        high = jnp.inf if k == last else quantiles[k + 1]
        value = value + slopes[k] * (jnp.clip(x, low, high) - quantiles[k])
    return jnp.clip(value, 0, 255)


def _row(table, look):
    return jnp.asarray(np.array(table, np.float32))[look]


def _field(key, rows, columns, scale, own=None):
    """Draws a smooth random field at rows x columns: white noise on a lattice through Gaussian kernels."""
    if min(np.diff(rows).min(), np.diff(columns).min()) > _APART * scale:
        return random.normal(key, _drawn((len(rows), len(columns)), own))
    left, right = _kernel(rows, scale), _kernel(columns, scale)
    noise = _noise(key, left, right, own)

    if _SPACING * scale != 1 or max(np.diff(rows).max(), np.diff(columns).max()) > 1:
        return filters.separable(noise, left, right)
    # A lattice of pixels: every row of a kernel is the one before, moved by one.
    weights = jnp.asarray(left[0, : left.shape[1] - len(rows) + 1])
    return filters.sum_of_shifts(filters.sum_of_shifts(noise, weights, 0), weights, 1)


def _sum_of_fields(keys, rows, columns, scales, amplitudes, own):
    """Sums smooth fields, each times its amplitude, in two products: the lattices are padded to the largest."""
    left, right = ([_kernel(positions, scale) for scale in scales] for positions in (rows, columns))
    height, width = left[0].shape[1], right[0].shape[1]
    noise = jnp.stack(
        [
            jnp.pad(_noise(k, a, b, o), ((0, height - a.shape[1]), (0, width - b.shape[1])))
            for k, a, b, o in zip(keys, left, right, own, strict=True)
        ]
    )
    left, right = (
        np.stack([np.pad(kernel, ((0, 0), (0, size - kernel.shape[1]))) for kernel in kernels])
        for kernels, size in ((left, height), (right, width))
    )
    across = _product("oij,oxj->oix", amplitudes[:, None, None] * noise, right)
    return _product("oyi,oix->yx", left, across)


def _drawn(shape, own):
    """Returns the shape to draw for, where a lattice is padded beyond its `own` points."""
    return shape if own is None else padded.Shape(shape, own)


def _noise(key, left, right, own=None):
    """Draws white noise on the lattice of two kernels, [rows, columns]; 0 beyond its `own` points."""
    width = math.sqrt(3)  # half width for variance 1; the sum over the kernel is nearly normal
    noise = random.uniform(key, _drawn((left.shape[1], right.shape[1]), own), -width, width)
    return noise if own is None else padded.blackened(noise[..., None], {"own_size": own})[..., 0]


def _lattice(positions, scale):
    """Lists the points of a lattice whose noise is seen at the positions."""
    spacing = _SPACING * scale
    first = math.floor((positions[0] - 4 * scale) / spacing)
    last = math.ceil((positions[-1] + 4 * scale) / spacing)
    return spacing * np.arange(first, last + 1)


def _kernel(positions, scale):
    """Builds the matrix [positions, lattice] of a kernel, rows of unit length."""
    distance = positions[:, None] - _lattice(positions, scale)
    kernel = np.exp(-0.5 * (distance / scale) ** 2)
    return (kernel / np.linalg.norm(kernel, axis=1, keepdims=True)).astype(np.float32)


def _ridge(field):
    """Bends a normal field into thin bright filaments along its sign changes, mean 0 and variance 1."""
    return (jnp.exp(-2 * jnp.abs(field)) - 0.336204) / 0.275358
