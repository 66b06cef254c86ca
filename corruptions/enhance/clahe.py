"""Contrast-limited adaptive histogram equalisation, bit for bit as OpenCV defines it.

One 8-bit channel is cut into tiles of A pixels. Each tile's histogram is clipped at L = max(1, int(clip A / 256)); the
excess is returned to all bins in equal parts, the remainder one by one to bins at equal distances. The tile's table is
round(255 / A times the running sum). A pixel takes the bilinear mean of its level's entries in the tables of the four
nearest tiles. K. Zuiderveld, "Contrast Limited Adaptive Histogram Equalization", Graphics Gems IV (1994).

The lightness L of CIELAB is converted in float32 and rounded to the nearest of 256 levels: L 255/100, a + 128 and b +
128 of sRGB with the white point D65. OpenCV converts in fixed point; the two differ by at most 1 level in L and 2 in a
and b.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives.color import value_and_chroma
from corruptions.primitives.staging import stage

CLIP, GRID = 2.0, (8, 8)
_LEVELS = 256

_TO_XYZ = np.array(
    [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]]
)  # ITU-R BT.709
_WHITE = np.array([0.950456, 1.0, 1.088754])
_LINEAR = np.array([v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in np.arange(256) / 255])
_KNEE = 0.008856  # below it f is a straight line


def clahe(channel: jax.Array, clip: float = CLIP, grid: tuple[int, int] = GRID) -> jax.Array:
    """Equalises a channel, uint8 [H, W].

    Where a side is no multiple of the grid, both sides are extended at their end by reflection without the last pixel;
    a side that is a multiple grows by a whole grid. `clip` limits a bin, relative to a flat histogram; 0 or less is no
    limit. `grid` are the tiles down and across.
    """
    height, width = channel.shape
    rows, columns = grid
    padded = channel
    if height % rows or width % columns:
        padded = jnp.pad(channel, ((0, rows - height % rows), (0, columns - width % columns)), mode="reflect")
    tiles = cut(padded.astype(jnp.int32), rows, columns)
    counts, area = histograms(tiles, _LEVELS), tiles.shape[1]
    if clip > 0:
        counts = clipped(counts, max(int(clip * area / _LEVELS), 1))
    scale = np.float32(255) / np.float32(area)
    tables = jnp.clip(jnp.round(jnp.cumsum(counts, axis=1).astype(jnp.float32) * scale), 0, 255).astype(jnp.int32)
    down = _neighbours(height, padded.shape[0] // rows, rows)
    right = _neighbours(width, padded.shape[1] // columns, columns)
    blended = blend(tables.reshape(rows, columns, _LEVELS), channel.astype(jnp.int32), down, right, 8)
    return stage(jnp.round(blended).astype(jnp.uint8))


def clipped(counts: jax.Array, limit: int) -> jax.Array:
    """Clips histograms, int32 [T, 256], at a limit and returns the excess to their bins, once, beyond the limit too."""
    excess = jnp.maximum(counts - limit, 0).sum(axis=1, keepdims=True)
    whole, rest = excess // _LEVELS, excess % _LEVELS
    step = _LEVELS // jnp.maximum(rest, 1)
    level = jnp.arange(_LEVELS)[None, :]
    extra = (level % step == 0) & (level // step < rest)
    return jnp.minimum(counts, limit) + whole + extra.astype(jnp.int32)


def of_lightness(image: jax.Array, *, clip: float = CLIP, grid: tuple[int, int] = GRID) -> jax.Array:
    """Equalises the lightness L of CIELAB of an image, uint8 [H, W, 3]; all three channels have 8 bits."""
    lightness, a, b = lab_from_rgb(image)
    return rgb_from_lab(clahe(lightness, clip, grid), a, b)


def of_value(image: jax.Array, *, clip: float = CLIP, grid: tuple[int, int] = GRID) -> jax.Array:
    """Equalises the HSV value, the largest channel, of an image, uint8 [H, W, 3]; hue and saturation stay."""
    value, _ = value_and_chroma(image)
    return jnp.round(with_value(image, clahe(value[..., 0], clip, grid).astype(jnp.float32))).astype(jnp.uint8)


def of_channels(image: jax.Array, *, clip: float = CLIP, grid: tuple[int, int] = GRID) -> jax.Array:
    """Equalises each channel of an image, uint8 [H, W, 3], by itself, which changes colours."""
    return jax.vmap(functools.partial(clahe, clip=clip, grid=grid), in_axes=-1, out_axes=-1)(image)


def with_value(image: jax.Array, value: jax.Array) -> jax.Array:
    """Gives an image, uint8 [H, W, 3], another HSV value, float32 [H, W], in any unit, which the result has.

    Black, which has saturation 0, becomes grey.
    """
    before, _ = value_and_chroma(image)
    share = image.astype(jnp.float32) / jnp.maximum(before, 1).astype(jnp.float32)
    return jnp.where(before > 0, share, 1) * value[..., None]


class Neighbours(NamedTuple):
    """The two tiles around each pixel along an axis."""

    pairs: np.ndarray  # int [number + 1, 2], each tile and the one before; at the ends one tile twice
    pair: np.ndarray  # int [size], index of the pair around each pixel
    weight: np.ndarray  # float32 [size], weight of the further tile


def neighbours(further: np.ndarray, weight: np.ndarray, number: int) -> Neighbours:
    """Makes the `Neighbours` of pixels from the further tile of each pixel, 0 to `number`."""
    pairs = np.clip(np.stack([np.arange(-1, number), np.arange(number + 1)], axis=1), 0, number - 1)
    return Neighbours(pairs, further.astype(np.int32), weight.astype(np.float32))


def _neighbours(size: int, side: int, number: int) -> Neighbours:
    """Finds the tiles around each of `size` pixels. Places run from centre to centre in float32, without half a pixel."""
    place = np.arange(size, dtype=np.float32) * (np.float32(1) / np.float32(side)) - np.float32(0.5)
    before = np.floor(place)
    return neighbours(before + 1, place - before, number)


def cut(channel: jax.Array, rows: int, columns: int) -> jax.Array:
    """Cuts [rows h, columns w] into tiles [rows columns, h w], row by row."""
    height, width = channel.shape[0] // rows, channel.shape[1] // columns
    tiles = channel.reshape(rows, height, columns, width).transpose(0, 2, 1, 3)
    return tiles.reshape(rows * columns, height * width)


def histograms(tiles: jax.Array, bins: int) -> jax.Array:
    """Counts the values 0..bins-1 of each tile, int [T, A]: int32 [T, bins]."""
    number = tiles.shape[0]
    place = tiles + bins * jnp.arange(number)[:, None]
    counts = jnp.zeros(number * bins, jnp.int32).at[place.reshape(-1)].add(1, mode="promise_in_bounds")
    return counts.reshape(number, bins)


def blend(tables: jax.Array, values: jax.Array, down: Neighbours, right: Neighbours, bits: int) -> jax.Array:
    """Interpolates between the tables of the four tiles around each pixel.

    ((1 - x) upper_left + x upper_right) (1 - y) + ((1 - x) lower_left + x lower_right) y, each product and each sum
    rounded to float32 on its own, as C code without contraction does. `tables` are int32 [rows, columns, bins],
    values of at most `bits` bits, 8 or 16; `values` int32 [H, W], bins; `down` and `right` the rows of tiles around
    each of the H rows of pixels, and the columns around each of the W columns.
    """
    corners = [tables[down.pairs[:, i]][:, right.pairs[:, j]].astype(jnp.uint32) for i in (0, 1) for j in (0, 1)]
    across = jnp.asarray(right.pair)[None, :] + len(right.pairs) * jnp.asarray(down.pair)[:, None]
    place = across * tables.shape[2] + values
    found = []  # The look-up of a word for each pixel takes the time, so corners share a word.
    for first in range(0, 4, 32 // bits):
        shifted = enumerate(corners[first : first + 32 // bits])
        words = stage(functools.reduce(jnp.bitwise_or, [table << (bits * k) for k, table in shifted]))
        own = stage(words.reshape(-1).at[place].get(mode="promise_in_bounds"))
        found += [(own >> shift & (2**bits - 1)).astype(jnp.float32) for shift in range(0, 32, bits)]
    x, y = jnp.asarray(right.weight)[None, :], jnp.asarray(down.weight)[:, None]
    upper, lower = (_product(a, 1 - x) + _product(b, x) for a, b in (found[:2], found[2:]))
    return _product(upper, 1 - y) + _product(lower, y)


def _product(a, b):
    # No product is negative. The maximum, which never acts, keeps compilers from fusing products and sums into one
    # rounding.
    return jnp.maximum(a * b, 0)


def lab_from_rgb(image: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Converts sRGB, uint8 [H, W, 3], to L, a and b, uint8 [H, W] each.

    With f(t) = t^(1/3) above .008856, 7.787 t + 16/116 below: L = 116 f(Y) - 16, a = 500 (f(X) - f(Y)), b = 200 (f(Y) -
    f(Z)), X, Y and Z relative to white.
    """
    table = jnp.asarray(_LINEAR, jnp.float32)
    linear = [stage(table.at[image[..., c].astype(jnp.int32)].get(mode="promise_in_bounds")) for c in range(3)]
    matrix = (_TO_XYZ / _WHITE[:, None]).astype(np.float32)
    x, y, z = (stage(_cube_root(row[0] * linear[0] + row[1] * linear[1] + row[2] * linear[2])) for row in matrix)
    scaled = ((116 * y - 16) * np.float32(2.55), 500 * (x - y) + 128, 200 * (y - z) + 128)
    lightness, a, b = (stage(jnp.clip(jnp.round(channel), 0, 255).astype(jnp.uint8)) for channel in scaled)
    return lightness, a, b


def rgb_from_lab(lightness: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    """Converts L, a and b, uint8 [H, W] each, to sRGB, uint8 [H, W, 3]; colours out of range are clipped."""
    lightness, a, b = (channel.astype(jnp.float32) for channel in (lightness, a, b))
    y = (lightness * np.float32(100 / 255) + 16) / 116
    white = [_cube(f) for f in (y + (a - 128) / 500, y, y - (b - 128) / 200)]
    matrix = np.linalg.inv(_TO_XYZ / _WHITE[:, None]).astype(np.float32)
    linear = (jnp.clip(row[0] * white[0] + row[1] * white[1] + row[2] * white[2], 0, 1) for row in matrix)
    return jnp.stack([stage(_encoded(channel)) for channel in linear], axis=-1)


def _encoded(linear):
    bright = 1.055 * jnp.exp(jnp.log(jnp.maximum(linear, 1e-6)) / 2.4) - 0.055
    return jnp.round(255 * jnp.where(linear <= 0.0031308, 12.92 * linear, bright)).astype(jnp.uint8)


def _cube_root(t):
    return jnp.where(t > _KNEE, jnp.exp(jnp.log(jnp.maximum(t, 1e-6)) / 3), 7.787 * t + 16 / 116)


def _cube(f):
    return jnp.where(f > 7.787 * _KNEE + 16 / 116, f * f * f, (f - 16 / 116) / 7.787)
