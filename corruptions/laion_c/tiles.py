"""LAION-C mosaic and stickers: the image as tiles of a bank, and tiles of a bank on the image."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core import severity_tables
from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.laion_c import banks
from corruptions.laion_c.common import SEVERITIES, count, largest_count, register, scale
from corruptions.primitives import color, staging

# Tiles to a side: 56, 37 1/3, 28, 14, 8 of 4, 6, 8, 16, 28 pixels at 224. At 32 such tiles would be pixels.
_GRIDS = {"cifar": (16, 11, 8, 5, 3), "imagenet": (56, 112 / 3, 28, 14, 8)}
_TABLES = severity_tables.Tables({"cifar": 32, "imagenet": 224})  # sides up to 84 use `cifar`, larger ones `imagenet`
TABLES = tuple(_TABLES.sides)
table_for = _TABLES.name_for
_STICKERS = (100, 200, 400, 600, 1200)
_STICKER = 16
_AT_ONCE = 16


def _sides(shape, table):
    """Lists the sides of a mosaic's tiles by severity: 4, 6, 8, 16, 28 pixels at 224."""
    return [max(1, round(min(shape[:2]) / grid)) for grid in _GRIDS[table_for(shape, table)]]


def _sample_mosaic(
    key: Key, shape: Shape, severity: Severity, *, table: str | None = None, bank: str | None = None
) -> Params:
    """Looks up the tiles of a severity; draws nothing.

    A grid has 56, 37 1/3, 28, 14, 8 tiles to the shorter side (`imagenet`), or 16, 11, 8, 5, 3 (`cifar`, for small images).
    Between two levels the nearest one counts.

    Args:
      table: `cifar` or `imagenet`, by default the nearest in size, 32 or 224.
      bank: digest of a bank that `use_bank` read; by default the one read last.

    Raises:
      ValueError: no bank, or one whose images are too small.
    """
    del key
    found, sides = banks.find(bank), _sides(shape, table)
    tiles = [found.tiles(side) for side in reversed(sides)][::-1]  # the largest first: images may be too small for it
    cells = [_cells(shape[:2], side) for side in sides]
    most = np.max([[len(axis) for axis in axes] for axes in cells], axis=0)
    level = jnp.round(jnp.clip(severity, 1, SEVERITIES)).astype(jnp.int32) - 1
    rows, columns = (
        np.stack([np.pad(axes[k], ((0, most[k] - len(axes[k])), (0, 0))) for axes in cells]) for k in (0, 1)
    )
    numbers = [tile.shape[0] * side * side for tile, side in zip(tiles, sides)]
    return {
        "side": jnp.asarray(sides)[level],
        "first": jnp.asarray(np.cumsum([0, *numbers[:-1]]), jnp.int32)[level],
        "level": level,
        "rows": jnp.asarray(rows, jnp.float32)[level],
        "columns": jnp.asarray(columns, jnp.float32)[level],
        "colors": jnp.asarray(np.stack([tile.mean((1, 2), dtype=np.float64) for tile in tiles]), jnp.float32),
        "tiles": jnp.asarray(np.concatenate([tile.reshape(-1, 3) for tile in tiles])),
    }


@functools.lru_cache(maxsize=64)
def _cells(shape, side):
    """Makes the matrices of Pillow's BICUBIC that reduce rows and columns to the cells of a grid in the middle of the image:
    float64 [cells, H] and [cells, W]. Weights of cells at a border that is not theirs are cut off there.
    """
    found = []
    for size in shape:
        number = -(-size // side)
        centre = (np.arange(number)[:, None] + 0.5) * side - _overhang(size, side)
        x = np.abs(np.arange(size)[None] + 0.5 - centre) / side
        weight = np.where(x < 1, (1.5 * x - 2.5) * x * x + 1, np.where(x < 2, ((2.5 - 0.5 * x) * x - 4) * x + 2, 0))
        found.append(weight / weight.sum(1, keepdims=True))
    return found


def _overhang(size, side):
    """Counts the pixels by which the first cell begins before the image; may be traced."""
    return (-(-size // side) * side - size) // 2


_MOSAIC_UNITS = {
    "side": "pixels of a tile",
    "first": "the first row of its tiles in `tiles`",
    "level": "severity - 1",
    "rows": "weights of rows, by cell",
    "columns": "weights of columns, by cell",
    "colors": "RGB levels, mean of each tile by level",
    "tiles": "RGB levels 0..255 of all pixels of all tiles, by level",
}
_MIXES = "shows tiles of red, green and blue"


def _averaged(image, params, rounded):
    """Reduces an image of levels to cells [rows, columns, 3]."""
    exact = jax.lax.Precision.HIGHEST
    x = jnp.einsum("jw,hwc->hjc", params["columns"], color.to_levels(image), precision=exact)
    x = staging.stage(rounded(x)) if rounded is not _as_it_is else x
    return rounded(jnp.einsum("ih,hjc->ijc", params["rows"], x, precision=exact))


def _as_it_is(levels):
    return levels


def _to_8_bits(levels):
    return jnp.clip(jnp.floor(levels + 0.5), 0, 255)


def _places(size, side):
    """Finds the cell of each pixel along an axis, and its place in the tile."""
    place = jnp.arange(size, dtype=jnp.int32) + _overhang(size, side)
    return place // side, place % side


def _smooth(image: Image, params: Params) -> Image:
    cells = _averaged(image, params, _as_it_is)
    row, column = (_places(size, params["side"])[0] for size in image.shape[:2])
    return jnp.take(jnp.take(cells, row, axis=0, mode="clip"), column, axis=1, mode="clip") / 255


@register(
    "digital",
    _sample_mosaic,
    _MOSAIC_UNITS,
    severity={"grid": "tiles to the shorter side"},
    mixes=_MIXES,
    straight_through=_smooth,
    fixed={"bank": banks.default},
    loads=lambda options: False,  # a program holds the tiles
    by_size=lambda shape, options: {"table": table_for(shape, options.get("table"))},
)
def mosaic(image: Image, params: Params) -> Image:
    """Shows in each cell of a grid the tile whose mean colour is nearest to the cell's, by Euclidean distance in RGB.

    A cell's colour is its pixel after Pillow's BICUBIC has reduced the image to one pixel per cell. The grid lies in the middle of the image,
    and its outer tiles are cut off. Of equally near tiles the first is taken. `corrupt_each` compiles it for each size: the
    tiles of the bank at the image's own tile sides are built into a program. Source: LAION-C, mosaic.
    """
    cells = staging.stage(_averaged(image, params, _to_8_bits))
    number = _nearest(cells.reshape(-1, 3), params["colors"], params["level"]).reshape(cells.shape[:2])
    side = params["side"]
    (row, down), (column, across) = (_places(size, side) for size in image.shape[:2])
    cell = row[:, None] * cells.shape[1] + column[None]
    tile = staging.look_up(number.ravel(), cell)
    pixel = params["first"] + (tile * side + down[:, None]) * side + across[None]
    shown = jnp.take(params["tiles"], pixel.ravel(), axis=0, mode="clip").reshape(image.shape)
    return color.from_levels(shown.astype(jnp.float32))


def _nearest(cells, colors, level):
    """Finds for each of the cells [M, 3] the number of the nearest of `colors[level]`, [N, 3]: int32 [M].

    All cells are compared with sixteen colours a round, differences squared in float32: |a|^2 - 2 a b would lose the
    distances of near colours.
    """
    number = colors.shape[1]
    rounds = -(-number // _AT_ONCE)
    colors = jnp.pad(colors, ((0, 0), (0, rounds * _AT_ONCE - number), (0, 0)), constant_values=1e6)
    red, green, blue = cells.T

    def compare(turn, found):
        least, nearest = found
        some = jax.lax.dynamic_slice(colors, (level, turn * _AT_ONCE, 0), (1, _AT_ONCE, 3))[0]
        for k in range(_AT_ONCE):
            distance = (red - some[k, 0]) ** 2 + (green - some[k, 1]) ** 2 + (blue - some[k, 2]) ** 2
            nearer = distance < least
            least, nearest = jnp.minimum(least, distance), jnp.where(nearer, turn * _AT_ONCE + k, nearest)
        return least, nearest

    start = jnp.full_like(red, jnp.inf), jnp.zeros_like(red, jnp.int32)
    return jax.lax.fori_loop(0, rounds, compare, start)[1]


def _sample_stickers(key: Key, shape: Shape, severity: Severity, *, bank: str | None = None) -> Params:
    """Draws 100, 200, 400, 600, 1200 stickers in the order in which they are laid: each any tile of the bank, its upper left
    corner at row U{0..H - b - 1} and column U{0..W - b - 1}.

    Their side b is 16 pixels at 224 and scales with min(H, W). The number is for squares and grows with H W / min(H, W)^2.

    Args:
      bank: digest of a bank that `use_bank` read; by default the one read last.

    Raises:
      ValueError: no bank, or one whose images are too small.
    """
    side = _sticker_side(shape)
    tiles, most, keys = banks.find(bank).tiles(side), largest_count(_STICKERS, shape), jax.random.split(key, 3)
    return {
        "count": count(_STICKERS, shape, severity),
        "row": jax.random.randint(keys[0], (most,), 0, shape[0] - side),
        "column": jax.random.randint(keys[1], (most,), 0, shape[1] - side),
        "tile": jax.random.randint(keys[2], (most,), 0, len(tiles)),
        "tiles": jnp.asarray(tiles.reshape(-1, 3)),
    }


def _sticker_side(shape):
    return max(1, round(_STICKER * scale(shape)))


_STICKER_UNITS = {
    "count": "stickers",
    "row": "pixels",
    "column": "pixels",
    "tile": "number of a tile",
    "tiles": "RGB levels 0..255 of all pixels of all tiles",
}


@register(
    "occlusion",
    _sample_stickers,
    _STICKER_UNITS,
    severity={"count": "stickers at 224"},
    mixes=_MIXES,
    fixed={"bank": banks.default},
    loads=lambda options: False,  # a program holds the tiles
)
def stickers(image: Image, params: Params) -> Image:
    """Lays square tiles of a bank on the image, later over earlier; the last row and column stay free.

    `corrupt_each` compiles it for each size: the tiles of the bank at the image's own side of stickers, and the number of
    stickers, are built into a program. Source: LAION-C, stickers.
    """
    height, width, _ = image.shape
    side, order = _sticker_side(image.shape), jnp.arange(1, params["row"].size + 1)
    place = jnp.where(order <= params["count"], params["row"] * width + params["column"], height * width)
    last = jnp.zeros(height * width, jnp.int32).at[place].max(order, mode="drop").reshape(height, width)
    for axis in (0, 1):
        last = _largest_before(last, side, axis)
    # The pixel of its tile that a pixel shows is linear in the pixel's row and column.
    base = (params["tile"] * side - params["row"]) * side - params["column"]
    row, column = np.ogrid[:height, :width]
    pixel = staging.look_up(base, jnp.maximum(last - 1, 0)) + row * side + column
    shown = jnp.take(params["tiles"], pixel.ravel(), axis=0, mode="clip").reshape(image.shape)
    return jnp.where((last > 0)[..., None], color.from_levels(shown.astype(jnp.float32)), image)


def _largest_before(values, number, axis):
    """Takes the largest of each value and the number - 1 before it along an axis, all >= 0."""
    reach = 1
    while reach < number:
        step = min(reach, number - reach)
        before = [(step, 0) if k == axis else (0, 0) for k in range(2)]
        values = jnp.maximum(values, jax.lax.slice_in_dim(jnp.pad(values, before), 0, values.shape[axis], axis=axis))
        reach += step
    return values
