"""LAION-C geometric_shapes: triangles, squares, stars and discs of any colour, painted one over another."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.laion_c.common import count, largest_count, register, scale
from corruptions.primitives import color, random

_COUNTS = (150, 300, 600, 800, 1000)
_SIZES = tuple(range(6, 16))  # pixels, at 224
_TRIANGLE, _SQUARE, _STAR, _DISC = range(4)
_TURNS = 360


def _sample(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws 150, 300, 600, 800, 1000 shapes in the order of painting.

    Each is a triangle, square, star or disc with equal probability, at a uniform pixel, of a size U{6..15}, colours
    U{0..255} and a rotation U{0..359} degrees, which only stars show. The number is for squares and grows with H W /
    min(H, W)^2.
    """
    most, keys = largest_count(_COUNTS, shape), jax.random.split(key, 6)
    return {
        "count": count(_COUNTS, shape, severity),
        "kind": random.integers(keys[0], (most,), 0, 4),
        "row": jax.random.randint(keys[1], (most,), 0, shape[0]),
        "column": jax.random.randint(keys[2], (most,), 0, shape[1]),
        "size": random.integers(keys[3], (most,), 0, len(_SIZES)),
        "color": random.integers(keys[4], (most, 3), 0, 256).astype(jnp.float32),
        "rotation": jax.random.randint(keys[5], (most,), 0, _TURNS),
    }


_UNITS = {
    "count": "shapes",
    "kind": "0 triangle, 1 square, 2 star, 3 disc",
    "row": "pixels",
    "column": "pixels",
    "size": "0..9, for 6..15 pixels at 224",
    "color": "RGB levels 0..255",
    "rotation": "degrees",
}


@register(
    "occlusion", _sample, _UNITS, severity={"count": "shapes at 224"}, mixes="paints shapes in red, green and blue"
)
def geometric_shapes(image: Image, params: Params) -> Image:
    """Paints opaque shapes, later over earlier, cut off at the border.

    A shape of size s at row y, column x is the triangle (y, x), (y, x + s), (y + s, x + s / 2); the square or the disc in
    the box of s + 1 pixels from (y, x); or a star about (y, x) with five points at s / 1.2 and five corners half as far,
    at angles 36 i + rotation. Vertices are whole pixels, rounded down, and shapes are filled as Pillow fills them. Boxes of
    s + 1 pixels are for 224 and scale with min(H, W), to a pixel at least. `corrupt_each` compiles it for each size: the
    number of shapes, which grows with H W / min(H, W)^2, and the table of their pixels are built into a program. Source:
    LAION-C, geometric_shapes.
    """
    height, width, _ = image.shape
    top, runs = _runs(scale(image.shape))
    kind, size = params["kind"], params["size"]
    number = jnp.where(
        kind == _STAR,
        3 * len(_SIZES) + size * _TURNS + params["rotation"],
        jnp.where(kind == _DISC, 2, kind) * len(_SIZES) + size,
    )
    run = jnp.asarray(runs)[number].astype(jnp.int32)
    rows = params["row"][:, None] + jnp.asarray(top)[number][:, None] + jnp.arange(runs.shape[1])[None]
    left = jnp.maximum(params["column"][:, None, None] + run[..., 0], 0)
    right = jnp.minimum(params["column"][:, None, None] + run[..., 1], width)
    order = jnp.arange(1, kind.size + 1)
    painted = (order <= params["count"])[:, None] & (rows >= 0) & (rows < height)
    left = jnp.where(painted[..., None], left, right)
    last = _last(order[:, None, None], rows[..., None], left, right, (height, width), int(np.diff(runs).max()))
    colors = color.from_levels(params["color"])
    shown = jnp.take(colors, jnp.maximum(last - 1, 0).ravel(), axis=0, mode="clip").reshape(image.shape)
    return jnp.where((last > 0)[..., None], shown, image)


def _last(order, rows, left, right, shape, longest):
    """Finds the largest order of the runs over each pixel of `shape` (H, W), 0 where there is none.

    Run `order` covers columns left..right - 1 of a row, at most `longest`; none where right <= left. The arrays
    broadcast. Every run is the union of two runs whose length is a power of two, entered where they begin; runs of 2^p
    pixels then hand their order on to their two halves, from the longest to the shortest.
    """
    powers = longest.bit_length()
    length = right - left
    power = sum((length >= 2**p).astype(jnp.int32) for p in range(1, powers)) if powers > 1 else jnp.zeros_like(length)
    page = (power * shape[0] + rows) * shape[1]
    places = jnp.stack([page + left, page + right - (1 << power)])
    places = jnp.where(length > 0, places, powers * shape[0] * shape[1])
    entered = jnp.zeros(powers * shape[0] * shape[1], jnp.int32)
    entered = entered.at[places].max(jnp.broadcast_to(order, places.shape), mode="drop")
    pages = entered.reshape(powers, *shape)
    last = pages[-1]
    for p in reversed(range(powers - 1)):
        moved = jnp.pad(last, ((0, 0), (2**p, 0)))[:, : shape[1]]
        last = jnp.maximum(pages[p], jnp.maximum(last, moved))
    return last


@functools.lru_cache(maxsize=8)
def _runs(factor):
    """Tabulates all shapes at a scale: 10 triangles, 10 squares, 10 discs, 10 times 360 stars.

    Returns int32 [3630], the row of each shape's first run, relative to its place; int16 [3630, rows, runs, 2], first
    column and one past the last of its runs in each row, equal where there is none.
    """
    sizes = [max(1, round((size + 1) * factor)) - 1 for size in _SIZES]
    reach = math.ceil(sizes[-1] / 1.2)
    rows = np.arange(max(sizes[-1], 2 * reach) + 1)[None]
    box = [[np.where(rows <= s, 0, 1), np.where(rows <= s, s + 1, 0)] for s in sizes]
    parts = [[_filled([(0, 0), (s, 0), (s // 2, s)], rows)] for s in sizes]
    parts += [[np.stack(run, -1)] for run in box] + [[_disc(s, rows)] for s in sizes]
    turns = np.radians(36 * np.arange(10)[:, None] + np.arange(_TURNS)[None])
    for s in sizes:
        radius = s / 1.2 * np.where(np.arange(10) % 2 == 0, 1, 0.5)[:, None]
        points = np.stack([radius * np.sin(turns), radius * np.cos(turns)], 1)[..., None]
        points = np.floor(points + 1e-9)  # a whole vertex may be computed from either side
        kites = ([np.zeros_like(points[0]), points[i - 1], points[i], points[i + 1]] for i in range(0, 10, 2))
        parts.append([_filled(kite, rows - reach) for kite in kites])
    found = np.concatenate([_union(np.stack(part * (5 // len(part)), -2)) for part in parts])
    number = 1 + np.flatnonzero(np.diff(found, axis=-1).any((0, 1, 3)))[-1]
    top = np.where(np.arange(len(found)) < 3 * len(_SIZES), 0, -reach).astype(np.int32)
    return top, found[:, :, :number].astype(np.int16)


def _filled(vertices, rows):
    """Fills a convex polygon of whole vertices (x, y): from the first to the last crossing of a row with its border,
    each rounded to the nearest pixel, half pixels inwards.
    """
    first, last = np.full(np.broadcast_shapes(rows.shape, np.shape(vertices[0][0])), np.inf), -np.inf
    for (x0, y0), (x1, y1) in zip(vertices, [*vertices[1:], vertices[0]]):
        level = np.equal(y0, y1)
        share = (rows - y0) / np.where(level, 1, y1 - y0)
        meets = (rows >= np.minimum(y0, y1)) & (rows <= np.maximum(y0, y1))
        for x in (np.where(level, x0, x0 + share * (x1 - x0)), np.where(level, x1, x0 + share * (x1 - x0))):
            first, last = np.where(meets, np.minimum(first, x), first), np.where(meets, np.maximum(last, x), last)
    empty = first > last
    first, last = (np.where(empty, 0, x) for x in (first, last))
    return np.stack([np.floor(first + 0.5), np.where(empty, 0, np.ceil(last - 0.5) + 1)], -1)


def _disc(size, rows):
    """Fills a disc in a box of size + 1 pixels by the midpoint rule: along its border, in half pixels about the middle, each
    step goes to the neighbour that is nearest to the circle.
    """
    x, y, widths = size, size % 2, {}
    while True:
        widths[y] = max(widths.get(y, 0), x)
        if (x, y) == (size % 2, size):
            break
        steps = [(x, y + 2), *([(x - 2, y + 2), (x - 2, y)] if x > 1 else [])]
        x, y = min(steps, key=lambda step: abs(step[0] ** 2 + step[1] ** 2 - size**2))
    found = np.zeros((*rows.shape, 2))
    for k in range(size + 1):
        wide = widths[abs(2 * k - size)]
        found[rows == k] = (size - wide) // 2, (size + wide) // 2 + 1
    return found


def _union(runs):
    """Joins runs [..., n, 2] that overlap or touch: disjoint runs [..., n, 2], the empty ones last."""
    empty = runs[..., 0] >= runs[..., 1]
    runs = np.where(empty[..., None], 1e6, runs)
    runs = np.take_along_axis(runs, np.argsort(runs[..., 0], axis=-1)[..., None], axis=-2)
    reach = np.maximum.accumulate(runs[..., 1], axis=-1)
    begins = np.concatenate([np.ones_like(empty[..., :1]), runs[..., 1:, 0] > reach[..., :-1]], -1)
    group = np.cumsum(begins, -1) - 1
    joined = np.zeros_like(runs)
    for g in range(runs.shape[-2]):
        own = (group == g) & (runs[..., 0] < 1e6)
        left = np.where(own, runs[..., 0], 1e6).min(-1)
        joined[..., g, 1] = np.where(own, runs[..., 1], -1e6).max(-1)
        joined[..., g, 0] = left
        joined[..., g, :] *= own.any(-1)[..., None]
    return joined
