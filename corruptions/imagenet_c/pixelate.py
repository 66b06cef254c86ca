"""ImageNet-C pixelate: box reduction, nearest-neighbour enlargement, exact in integers."""

import functools
import math

import jax.numpy as jnp
import numpy as np

from corruptions import levels, padded
from corruptions.imagenet_c import tables
from corruptions.imagenet_c.member import member, padding
from corruptions.primitives import color

_SCALE = {
    "cifar": (0.95, 0.9, 0.85, 0.75, 0.65),
    "tiny": (0.9, 0.8, 0.7, 0.6, 0.5),
    "imagenet": (0.6, 0.5, 0.4, 0.3, 0.25),
    "inception": (0.5, 0.4, 0.3, 0.25, 0.2),
}


def _sample(key, shape, severity, *, table=None):
    """Computes which pixels each block averages and which block each pixel shows; draws nothing.

    The small image has floor(H scale) x floor(W scale) pixels. Arrays are padded to the largest of
    the table with blocks without pixels.
    """
    del key
    if isinstance(shape, padded.Shape):
        level = jnp.round(severity).astype(jnp.int32) - 1
        # As many blocks as the square has at the finest scale of the tables that share a program.
        room = math.ceil(shape[0] * max(_SCALE["imagenet"][0], _SCALE[tables.table_for(shape, table)][0]))
        found = {name: rows[level] for name, rows in shape.tables.items() if name != "table"}
        return {name: x if name.endswith("shown") else x[:room] for name, x in found.items()}
    params = {}
    for sizes, blocks in _axes(shape, table):
        size = jnp.floor(levels.lookup(sizes, severity)).astype(jnp.int32)
        params |= {name: jnp.asarray(rows)[size - min(sizes)] for name, rows in blocks.items()}
    return params


def _tables(shape, table):
    """What `_sample` computes, by severity: the rows of `_blocks` for the small size of each."""
    return {
        name: rows[np.array(sizes) - min(sizes)]
        for sizes, blocks in _axes(shape, table)
        for name, rows in blocks.items()
    }


def _axes(shape, table):
    """For rows and columns, the small sizes by severity and the named tables of `_blocks`."""
    scales = _SCALE[tables.table_for(shape, table)]
    for name, side in (("row", shape[0]), ("column", shape[1])):
        sizes = [int(side * scale) for scale in scales]
        blocks = _blocks(side, min(sizes), max(sizes))
        yield sizes, {f"{name}_{key}": rows for key, rows in zip(("starts", "stops", "shown"), blocks)}


def _apply(image, params):
    """Averages blocks, columns then rows, each rounded to 8 bits; every pixel shows its block.

    Bit for bit the reduction by Pillow's BOX filter to the small size and the enlargement back.
    (Where H > 2 W, Pillow 13 reduces the rows first; earlier versions, among them the original's,
    do as here.) Source: ImageNet-C, pixelate.
    """
    return color.from_levels(_blocked(jnp.round(color.to_levels(image)), params, _means))


def _smooth(image, params):
    return _blocked(image, params, _smooth_means)


def _blocked(x, params, means):
    x = means(x, params["column_starts"], params["column_stops"], 1)
    x = means(x, params["row_starts"], params["row_stops"], 0)
    return x[params["row_shown"]][:, params["column_shown"]]


def _means(x, starts, stops, axis):
    """Averages x[start:stop] along an axis of [H, W, 3], in the 22-bit fixed point of Pillow."""
    sums, count = _sums(x, starts, stops, axis)
    return ((sums.astype(jnp.int32) * ((2**23 + count) // (2 * count)) + 2**21) >> 22).astype(jnp.float32)


def _smooth_means(x, starts, stops, axis):
    sums, count = _sums(x, starts, stops, axis)
    return sums / count.astype(jnp.float32)


def _sums(x, starts, stops, axis):
    """(sums, counts) of x[start:stop] along an axis; counts broadcast to the sums."""
    position = np.arange(x.shape[axis])[None, :]
    members = ((starts[:, None] <= position) & (position < stops[:, None])).astype(jnp.float32)
    # Whole levels up to 255 times 0 or 1: exact in any precision of the product, also in the fast
    # ones of accelerators.
    sums = jnp.einsum("ih,hwc->iwc" if axis == 0 else "iw,hwc->hic", members, x)
    return sums, jnp.expand_dims(jnp.maximum(stops - starts, 1), (1, 2) if axis == 0 else (0, 2))


@functools.lru_cache(maxsize=64)
def _blocks(side, smallest, largest):
    """Tabulates each block's first and one past last pixel, and each pixel's block, by small size.

    In Pillow's float64 arithmetic, since its rounding errors decide where a pixel centre falls on
    the border of two blocks (a pixel may even belong to both).

    Returns:
      int32 [sizes, largest], int32 [sizes, largest] and int32 [sizes, side],
      sizes = largest - smallest + 1.
    """
    starts, stops, shown = [], [], []
    for size in range(smallest, largest + 1):
        start, stop = _taps(side, size)
        padding = (0, largest - size)
        starts.append(np.pad(start, padding))
        stops.append(np.pad(stop, padding))
        shown.append(_taps(size, side)[0])
    return tuple(np.asarray(t, np.int32) for t in (starts, stops, shown))


def _taps(source, target):
    """Computes the pixels start..stop-1 of `source` under each box of `target`, as Pillow does."""
    ratio = source / target
    centre = (np.arange(target) + 0.5) * ratio
    width = max(ratio, 1.0)
    start = np.maximum((centre - 0.5 * width + 0.5).astype(int), 0)
    stop = np.minimum((centre + 0.5 * width + 0.5).astype(int), source)
    inverse = 1.0 / width
    start = start + ((start - centre + 0.5) * inverse <= -0.5)
    stop = stop - ((stop - 1 - centre + 0.5) * inverse > 0.5)
    return start, stop


pixelate = member(
    "pixelate",
    "digital",
    _sample,
    _apply,
    (("scale", "small side / side"),),
    padding=padding(tables=_tables),
    smooth=_smooth,
)
