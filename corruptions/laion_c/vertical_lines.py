"""LAION-C vertical_lines: the image as lines that run from top to bottom and lean to the left where it is dark."""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.laion_c import common
from corruptions.laion_c.common import PUBLISHED_SIDE, register
from corruptions.primitives import color, padded, staging

# At a width of 224 pixels: number of lines, rows between two points of a line, pixels to the left where it is black.
_LINES = (224, 178, 112, 84, 60)
_STEPS = (1, 2, 4, 6, 8)
_LEAN = 40
_UNROLLED = 16


def _sample(key: Key, shape: Shape, severity: Severity) -> Params:
    """Looks up the cells of a severity and where a line lies by luma; draws nothing.

    l = 224, 178, 112, 84, 60 lines with points every 1, 2, 4, 6, 8 rows, and a lean of up to 40 pixels, are for 224
    columns and scale with the width.
    """
    del key
    return common.rows(shape, _tables, severity)


def _tables(shape: Sequence[int], table: str | None = None) -> dict[str, np.ndarray]:
    return _cells(shape[1])


@functools.lru_cache(maxsize=16)
def _cells(width):
    """Tabulates by severity the first column and the columns of each line's cells, the column of a point by luma and
    line, and the step; in the order of the released code's float64 operations, which decides on whole columns.
    """
    most, five = width, len(_LINES)
    starts, columns = np.zeros((five, most), np.int32), np.zeros((five, most), np.int32)
    points, counts = np.zeros((five, 256, most), np.int32), np.zeros((five, 2), np.int32)
    lean = _LEAN * width / PUBLISHED_SIDE * (1 - np.arange(256) / 255)
    for k, (lines, step) in enumerate(zip(_LINES, _STEPS, strict=True)):
        lines = round(lines * width / PUBLISHED_SIDE)
        x = np.arange(lines) / lines * width
        starts[k, :lines] = x.astype(int)
        columns[k, :lines] = np.minimum((x + width / lines).astype(int), width) - x.astype(int)
        points[k, :, :lines] = np.trunc(x[None] - lean[:, None])
        counts[k] = _step(step, width), lines
    return {"start": starts, "columns": columns, "point": points, "counts": counts}


def _step(step, width):
    return max(1, round(step * width / PUBLISHED_SIDE))


_UNITS = {
    "start": "first column of a line's cells",
    "columns": "columns of its cells",
    "point": "column of a line's point, by luma 0..255 of its cell",
    "counts": "rows of a cell; lines",
}
_MIXES = "leans lines by the luma of red, green and blue"


@register(
    "digital",
    _sample,
    _UNITS,
    severity={"lines": "lines at 224", "step": "rows between two points"},
    mixes=_MIXES,
    moves="leans lines to the left where the image is dark",
    padding=common.padding(_tables, axes=1),
    straight_through=lambda image, params: _drawn(image, params, lambda mean: mean),
)
def vertical_lines(image: Image, params: Params) -> Image:
    """Draws line after line, left to right, on black.

    The points of line i lie on rows 0, p, 2 p, ... at column trunc(x_i - a (1 - L / 255)), x_i = (i / l) W, where L is the
    mean luma of the cell that begins there: p rows, columns floor(x_i) to floor(x_i + W / l) - 1. A stroke of one pixel
    joins each point to the one before, the first to x_i on row 0, in the mean colour of the cell. Means are of 8-bit
    levels, rounded down. Strokes are rasterised as Pillow does. Source: LAION-C, vertical_lines.
    """
    return _drawn(image, params, jnp.floor)


def _drawn(image, params, rounded):
    height, width, _ = image.shape
    own_height, _ = padded.own_sides(image.shape, params)
    start, columns, (step, number) = params["start"], params["columns"], params["counts"][:2]
    colors, lumas = _means(image, step, start, columns, own_height, rounded)
    luma = jnp.clip(lumas, 0, 255).astype(jnp.int32)
    place = (luma * width + jnp.arange(width)[None]).ravel()
    points = staging.stage(jnp.take(params["point"].ravel(), place, mode="clip").reshape(luma.shape))
    shown = _last(points, start, step, number, own_height)
    colors = jnp.concatenate([colors.reshape(-1, 3), jnp.zeros((1, 3))])
    found = jnp.take(colors, jnp.where(shown < 0, height * width, shown).ravel(), axis=0, mode="clip")
    return color.from_levels(found.reshape(image.shape))


def _means(image, step, start, columns, height, rounded):
    """Averages the cells: colours [H, W, 3] and luma [H, W] by point and line, levels."""
    levels = color.to_levels(image)
    whole = jnp.round(levels).astype(jnp.int32)
    luma = color.luma_levels(*jnp.moveaxis(whole, -1, 0))
    rounds = whole.astype(jnp.float32) if rounded is jnp.floor else levels
    planes = jnp.concatenate([rounds, luma.astype(jnp.float32)[..., None]], axis=-1)
    rows, lines = (np.arange(n, dtype=np.int32) for n in image.shape[:2])
    most_rows, most_columns = _step(_STEPS[-1], lines.size), int(np.ceil(PUBLISHED_SIDE / _LINES[-1])) + 1
    first, sums = rows * step, jnp.zeros((rows.size, lines.size * 4))
    flat = planes.reshape(rows.size, -1)
    for k in range(most_rows):
        inside = (k < step) & (first + k < height)
        sums += jnp.where(inside[:, None], jnp.take(flat, first + k, axis=0, mode="clip"), 0.0)
    sums, flat = jnp.zeros_like(planes), staging.stage(sums).reshape(planes.shape)
    for k in range(most_columns):
        sums += jnp.where((k < columns)[None, :, None], jnp.take(flat, start + k, axis=1, mode="clip"), 0.0)
    pixels = jnp.clip(height - first, 0, step)[:, None] * columns[None]
    # Sums of whole levels are whole: a quarter more keeps the floor where a compiler multiplies by a reciprocal.
    means = (sums + (0.25 if rounded is jnp.floor else 0.0)) / jnp.maximum(pixels, 1)[..., None].astype(jnp.float32)
    return rounded(means[..., :3]), jnp.floor(jax.lax.stop_gradient(means[..., 3]))


def _last(points, start, step, number, height):
    """Finds the cell whose stroke lies on top of each pixel: int32 [H, W], point times W plus line, or -1 for none.

    On a row between two points the stroke to the next point passes; on the row of a point also the stroke that ends
    there, below the other.
    """
    rows, lines = np.ogrid[: points.shape[0], : points.shape[1]]
    before = rows // step
    at, after = before[:, 0], rows - before * step
    here, then = (jnp.take(points, index, axis=0, mode="clip") for index in (at, at + 1))
    previous = jnp.where(at[:, None] > 0, jnp.take(points, at - 1, axis=0, mode="clip"), start[None])
    ends = _crossed(previous, here, step, step)
    ends = [jnp.where(at[:, None] > 0, side, first) for side, first in zip(ends, (here, start[None]))]
    goes = _crossed(here, then, step, after)
    real = lines < number
    ends = ends[0], jnp.where(real & (after == 0) & (rows < height), ends[1], -1)
    goes = goes[0], jnp.where(real & ((before + 1) * step < height), goes[1], -1)
    strokes = [staging.stage(jnp.clip(side, -1, lines.size).astype(jnp.int16)) for side in (*ends, *goes)]
    x = lines.astype(jnp.int16)

    def paint(k, top):
        for below, (left, right) in enumerate((strokes[:2], strokes[2:])):
            code = jnp.asarray(2 * k + below, jnp.int16)
            passes = (left[:, k, None] <= x) & (x <= right[:, k, None])
            top = jnp.where(passes, code, top)
        return top

    none = jnp.full_like(strokes[1], -1)  # differs between devices as the strokes do: `jax.shard_map` requires it
    top = staging.loop(lines.size, paint, none, _UNROLLED)
    top = top.astype(jnp.int32)
    return jnp.where(top < 0, -1, (before + top % 2) * lines.size + top // 2)


def _crossed(start, stop, rows, row):
    """Finds the first and last column of Bresenham's line from (0, start) to (rows, stop) on a row."""
    across, sign = jnp.abs(stop - start), jnp.sign(stop - start)
    steep = _floored(2 * across * row + rows, 2 * rows)
    first = jnp.where(row > 0, _floored(across * (2 * row - 1) + 2 * rows - 1, 2 * rows), 0)
    last = jnp.minimum(_floored(across * (2 * row + 1) + 2 * rows - 1, 2 * rows) - 1, across)
    flat = across > rows
    one, other = (start + sign * jnp.where(flat, steps, steep) for steps in (first, last))
    return jnp.minimum(one, other), jnp.maximum(one, other)


def _floored(number, divisor):
    """Divides whole numbers, rounding down; half a step keeps the floor where a compiler multiplies by a reciprocal."""
    return jnp.floor((number.astype(jnp.float32) + 0.5) / jnp.asarray(divisor, jnp.float32)).astype(jnp.int32)
