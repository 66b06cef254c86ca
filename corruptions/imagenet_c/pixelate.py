"""ImageNet-C pixelate: box reduction, nearest-neighbour enlargement, exact in integers."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.core.severity import lookup
from corruptions.imagenet_c.tables import padding, register, table_for
from corruptions.primitives import color, padded, staging

_SCALE = {
    "cifar": (0.95, 0.9, 0.85, 0.75, 0.65),
    "tiny": (0.9, 0.8, 0.7, 0.6, 0.5),
    "imagenet": (0.6, 0.5, 0.4, 0.3, 0.25),
    "inception": (0.5, 0.4, 0.3, 0.25, 0.2),
}
_LONGEST = 7  # pixels of a block along an axis: 19 make three blocks at a scale of .2


def _sample(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Computes which pixels each block averages and which block each pixel shows; draws nothing.

    The small image has floor(H scale) x floor(W scale) pixels. Arrays are padded to the largest of the table with
    blocks without pixels.
    """
    if isinstance(shape, padded.Shape):
        return _padded_blocks(shape, table, severity)
    params: dict[str, jax.Array] = {}
    for sizes, side, axis in _axes(shape, table):
        size, every = jnp.floor(lookup(sizes, severity)).astype(jnp.int32), range(min(sizes), max(sizes) + 1)
        params |= {name: jnp.asarray(rows)[size - min(sizes)] for name, rows in _named(axis, side, every)}
    return params


def _padded_blocks(shape, table, severity):
    """Looks up the blocks of a padded image."""
    level = jnp.round(severity).astype(jnp.int32) - 1
    # The number of blocks of the square at the finest scale of the tables that share a program.
    room = math.ceil(shape[0] * max(_SCALE["imagenet"][0], _SCALE[table_for(shape, table)][0]))
    rows = {name: values[level] for name, values in shape.tables.items() if name != "table"}
    return {name: x if name.endswith("shown") else x[:room] for name, x in rows.items()}


def _tables(shape, table):
    """Tabulates the parameters by severity: the rows of `_blocks` for the small size of each."""
    return {name: rows for sizes, side, axis in _axes(shape, table) for name, rows in _named(axis, side, sizes)}


def _axes(shape, table):
    """Yields for rows and columns the small sizes by severity, the side and the name."""
    scales = _SCALE[table_for(shape, table)]
    for axis, side in (("row", shape[0]), ("column", shape[1])):
        yield tuple(int(side * scale) for scale in scales), side, axis


def _named(axis, side, sizes):
    return zip((f"{axis}_{key}" for key in ("starts", "stops", "shown")), _blocks(side, sizes))


def _smooth(image: Image, params: Params) -> Image:
    return _blocked(image, params, lambda sums, counts: sums / counts.astype(jnp.float32))


_UNITS = {
    f"{axis}_{name}": unit
    for axis in ("row", "column")
    for name, unit in (
        ("starts", "first pixel of a block"),
        ("stops", "pixel after a block"),
        ("shown", "block, by pixel"),
    )
}


@register(
    "digital",
    _sample,
    _UNITS,
    severity={"scale": "small side / side"},
    padding=padding(tables=_tables, quick=False),
    alone="traced",
    straight_through=_smooth,
)
def pixelate(image: Image, params: Params) -> Image:
    """Averages blocks, columns then rows, each rounded to 8 bits; every pixel shows its block.

    Bit for bit the reduction by Pillow's BOX filter to the small size and the enlargement back. (Where H > 2 W, Pillow
    13 reduces the rows first; earlier versions, among them the original's, do as here.) Source: ImageNet-C, pixelate.
    """
    levels = jnp.round(color.to_levels(image)).astype(jnp.uint8)  # a quarter of the memory traffic
    return color.from_levels(_blocked(levels, params, _rounded_means).astype(jnp.float32))


def _rounded_means(sums, counts):
    """Computes means of whole levels in the 22-bit fixed point of Pillow."""
    weights = staging.stage_on_cpu(jax.lax.div(2**23 + counts, 2 * counts))
    return ((sums.astype(jnp.int32) * weights + 2**21) >> 22).astype(jnp.uint8)


def _blocked(x, params, means):
    """Shows the means of blocks.

    Sums of whole levels are exact in any order and, multiplied by 0 or 1, in any precision of a product: both forms
    give the same bits. On a CPU shifts take a sixth of the time of products.
    """
    by_shifts, by_products = functools.partial(_by_shifts, means), functools.partial(_by_products, means)
    return staging.by_platform(x, params, cpu=by_shifts, default=by_products)


def _by_shifts(means, x, params):
    """Sums shifted images: at every column over the block that starts there, then at every block over its rows.

    Works on rows of W C values, long runs for a CPU's vector units. Arrays are staged before look-ups, which would
    compute them again.
    """
    height, width, channels = x.shape
    starts, stops, shown = (params[f"column_{key}"] for key in ("starts", "stops", "shown"))
    lengths = jnp.zeros(width, jnp.int32).at[starts].add(stops - starts)  # 0 without a block
    lengths = staging.stage(jnp.repeat(lengths, channels))[None]
    x = staging.stage(jnp.pad(x.reshape(height, -1), ((0, 0), (0, (_LONGEST - 1) * channels))))
    shifted = (x[:, k * channels :][:, : width * channels] for k in range(_LONGEST))
    x = staging.stage(means(_sum(shifted, lengths), jnp.maximum(lengths, 1)))

    first, last, row_shown = (params[f"row_{key}"] for key in ("starts", "stops", "shown"))
    counts = (last - first)[:, None]
    shifted = (jnp.take(x, first + k, axis=0, mode="clip") for k in range(_LONGEST))
    x = staging.stage(means(_sum(shifted, counts), jnp.maximum(counts, 1)))

    pixels = np.arange(0, first.size * width, width, np.int32)[:, None] + starts[shown][None]
    x = staging.stage(jnp.take(x.reshape(-1, channels), pixels.reshape(-1), axis=0, mode="clip"))
    return jnp.take(x.reshape(first.size, -1), row_shown, axis=0, mode="clip").reshape(height, width, channels)


def _sum(shifted, lengths):
    """Adds at each value the first `lengths` arrays; `lengths` broadcasts to them."""
    parts = (part.astype(jnp.uint16) if part.dtype == jnp.uint8 else part for part in shifted)
    return sum(jnp.where(k < lengths, part, 0) for k, part in enumerate(parts))


def _by_products(means, x, params):
    for axis, name in ((1, "column"), (0, "row")):
        starts, stops = params[f"{name}_starts"], params[f"{name}_stops"]
        position = np.arange(x.shape[axis])[None, :]
        members = ((starts[:, None] <= position) & (position < stops[:, None])).astype(jnp.float32)
        sums = jnp.einsum("iw,hwc->hic" if axis else "ih,hwc->iwc", members, x.astype(jnp.float32))
        x = means(sums, jnp.expand_dims(jnp.maximum(stops - starts, 1), (0, 2) if axis else (1, 2)))
    return x[params["row_shown"]][:, params["column_shown"]]


@functools.lru_cache(maxsize=64)
def _blocks(side, sizes):
    """Tabulates each block's first and one past last pixel, and each pixel's block, for some small sizes.

    Uses Pillow's float64 arithmetic: its rounding errors decide where a pixel centre on the border of two blocks
    belongs (possibly to both).

    Returns:
      int32 [sizes, max(sizes)], int32 [sizes, max(sizes)] and int32 [sizes, side].
    """
    starts, stops, shown = [], [], []
    for size in sizes:
        start, stop = _taps(side, size)
        padding = (0, max(sizes) - size)
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
