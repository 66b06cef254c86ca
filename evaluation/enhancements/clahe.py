"""Contrast-limited adaptive histogram equalisation, bit for bit as OpenCV defines it.

Of one 8-bit channel, in tiles of A pixels: every tile's histogram is cut off at L = max(1, int(clip
A / 256)), what was cut off is given back in equal parts to all bins, the rest one by one to bins
at equal distances; the tile's table is round(255 / A times the running sum). A pixel takes the
bilinear mean of its level's entries in the tables of the four nearest tiles. K. Zuiderveld,
"Contrast Limited Adaptive Histogram Equalization", Graphics Gems IV (1994).
"""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives.color import value_and_chroma
from corruptions.primitives.staging import stage
from evaluation.enhancements import lab, tiles

CLIP, GRID = 2.0, (8, 8)
_LEVELS = 256


def clahe(channel: jax.Array, clip: float = CLIP, grid: tuple[int, int] = GRID) -> jax.Array:
    """Equalises a channel.

    Where a side is no multiple of the grid, both sides are extended at their end by reflection
    without the last pixel, a side that is one by a whole grid.

    Args:
      channel: uint8 [H, W].
      clip: limit of a bin, relative to a flat histogram; 0 or less is none.
      grid: tiles down and across.

    Returns:
      uint8 [H, W].
    """
    height, width = channel.shape
    rows, columns = grid
    padded = channel
    if height % rows or width % columns:
        padded = jnp.pad(channel, ((0, rows - height % rows), (0, columns - width % columns)), mode="reflect")
    own = tiles.cut(padded.astype(jnp.int32), rows, columns)
    counts, area = tiles.histograms(own, _LEVELS), own.shape[1]
    if clip > 0:
        counts = clipped(counts, max(int(clip * area / _LEVELS), 1))
    scale = np.float32(255) / np.float32(area)
    tables = jnp.clip(jnp.round(jnp.cumsum(counts, axis=1).astype(jnp.float32) * scale), 0, 255).astype(jnp.int32)
    down = _neighbours(height, padded.shape[0] // rows, rows)
    right = _neighbours(width, padded.shape[1] // columns, columns)
    blended = tiles.blend(tables.reshape(rows, columns, _LEVELS), channel.astype(jnp.int32), down, right, 8)
    return stage(jnp.round(blended).astype(jnp.uint8))


def clipped(counts: jax.Array, limit: int) -> jax.Array:
    """Cuts histograms off at a limit and gives back what was cut off, once.

    Args:
      counts: int32 [T, 256].
      limit: of a bin, before anything is given back.

    Returns:
      int32 [T, 256], of the same sums.
    """
    excess = jnp.maximum(counts - limit, 0).sum(axis=1, keepdims=True)
    whole, rest = excess // _LEVELS, excess % _LEVELS
    step = _LEVELS // jnp.maximum(rest, 1)
    level = jnp.arange(_LEVELS)[None, :]
    extra = (level % step == 0) & (level // step < rest)
    return jnp.minimum(counts, limit) + whole + extra.astype(jnp.int32)


def _neighbours(size: int, side: int, number: int) -> tiles.Neighbours:
    """The tiles around each of `size` pixels; places from centre to centre in float32, without
    half a pixel.
    """
    place = np.arange(size, dtype=np.float32) * (np.float32(1) / np.float32(side)) - np.float32(0.5)
    before = np.floor(place)
    return tiles.neighbours(before + 1, place - before, number)


def of_lightness(image: jax.Array) -> jax.Array:
    """Equalises the lightness L of CIELAB, all three of its channels in 8 bits.

    Args:
      image: uint8 [H, W, 3].
    """
    lightness, a, b = lab.from_rgb(image)
    return lab.to_rgb(clahe(lightness), a, b)


def of_value(image: jax.Array) -> jax.Array:
    """Equalises the HSV value, the largest channel; hue and saturation stay.

    Args:
      image: uint8 [H, W, 3].
    """
    value, _ = value_and_chroma(image)
    return jnp.round(with_value(image, clahe(value[..., 0]).astype(jnp.float32))).astype(jnp.uint8)


def with_value(image: jax.Array, value: jax.Array) -> jax.Array:
    """Gives an image another HSV value: black, whose saturation is 0, becomes grey.

    Args:
      image: uint8 [H, W, 3].
      value: float32 [H, W], the new one, of any unit.

    Returns:
      float32 [H, W, 3] in the unit of `value`.
    """
    before, _ = value_and_chroma(image)
    share = image.astype(jnp.float32) / jnp.maximum(before, 1).astype(jnp.float32)
    return jnp.where(before > 0, share, 1) * value[..., None]


def of_channels(image: jax.Array) -> jax.Array:
    """Equalises each channel by itself, which changes colours.

    Args:
      image: uint8 [H, W, 3].
    """
    return jax.vmap(clahe, in_axes=-1, out_axes=-1)(image)
