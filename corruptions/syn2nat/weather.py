"""Sun and rain: flare, shadows and rain."""

import math

import jax
import jax.numpy as jnp

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.noc.severities import integer
from corruptions.noc.stamps import PUBLISHED_SIDE, scale
from corruptions.primitives import color, filters, painting, warps
from corruptions.syn2nat.common import lightness, pixels, register, relit

_GHOSTS = 10  # circles of a flare at most
_RINGS = 20
_SHADOWS, _VERTICES = 4, 8


def _grid(shape):
    """Makes rows float32 [H, 1] and columns float32 [1, W]."""
    rows, columns = (jnp.arange(size, dtype=jnp.float32) for size in shape[:2])
    return rows[:, None], columns[None, :]


def _sample_random_sun_flare(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws the `sun`, uniform in the upper half of the image, and 6 to 10 `ghosts` of it.

    Ghosts lie on a line through the sun at any angle, at columns uniform among the multiples of 10 pixels. Their
    `opacity` is from U[0.05, 0.2), and 0 for ghosts beyond their number; their `radius` is 1 or 8 pixels, their
    `shade` in each channel a whole level from 205 to 255.
    """
    keys = jax.random.split(key, 8)
    height, width = shape[:2]
    row, column = (jax.random.uniform(k) * size for k, size in ((keys[0], height / 2), (keys[1], width)))
    slope = jnp.tan(2 * math.pi * jax.random.uniform(keys[2]))
    tens = integer(keys[3], 0, (PUBLISHED_SIDE - 1) // 10, (_GHOSTS,)).astype(jnp.float32)
    columns = tens * (10 * width / PUBLISHED_SIDE)
    rows = jnp.clip(row - slope * (columns - column), -1e6, 1e6)
    opacity = jax.random.uniform(keys[4], (_GHOSTS,), minval=0.05, maxval=0.2)
    root = integer(keys[6], 1, 2, (_GHOSTS,)).astype(jnp.float32)
    return {
        "sun": jnp.stack([row, column]),
        "ghosts": jnp.stack([rows, columns], axis=1),
        "opacity": jnp.where(jnp.arange(_GHOSTS) < integer(keys[5], 6, _GHOSTS), opacity, 0.0),
        "radius": float(scale(shape)) * root**3,
        "shade": integer(keys[7], 205, 255, (_GHOSTS, 3)).astype(jnp.float32) / 255,
    }


@register(
    "lighting",
    _sample_random_sun_flare,
    {"sun": "pixels", "ghosts": "pixels", "opacity": "1", "radius": "pixels", "shade": "intensity"},
    mixes="paints red, green and blue",
)
def random_sun_flare(image: Image, params: Params) -> Image:
    """Paints the ghosts, each a disc over all before it, mixed in by its opacity; then the sun.

    The sun is 20 white discs of radius 1, 11, ..., 200 pixels, mixed in by (1 - i / 19)^3, i = 0, ..., 19 from the
    smallest on. Discs are the pixels within the radius; OpenCV's rims may differ. Source: RandomSunFlare.
    """
    rows, columns = _grid(image.shape)

    def squared_distance(place):
        return (rows - place[0]) ** 2 + (columns - place[1]) ** 2

    def paint(state, ghost):
        painted, mixed = state
        place, opacity, radius, shade = ghost
        painted = jnp.where((squared_distance(place) <= radius**2)[..., None], shade[None, None, :], painted)
        return (painted, mixed + opacity * (painted - mixed)), None

    ghosts = tuple(params[name] for name in ("ghosts", "opacity", "radius", "shade"))
    mixed = jax.lax.scan(paint, (image, image), ghosts)[0][1]
    to_sun = squared_distance(params["sun"])
    left = jnp.ones_like(to_sun)
    for i in range(_RINGS):
        radius = int(1 + 199 * i / (_RINGS - 1)) * float(scale(image.shape))
        left = left * jnp.where(to_sun <= radius**2, 1 - (1 - i / (_RINGS - 1)) ** 3, 1.0)
    return color.clip(1 - (1 - mixed) * left[..., None])


def _sample_random_shadow(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws polygons of 8 `vertices` (row, column), whole pixels uniform in the image, of which the first `number`, 2
    to 4, are shadows.
    """
    number_key, *keys = jax.random.split(key, 3)
    places = [integer(k, 0, size, (_SHADOWS, _VERTICES)) for k, size in zip(keys, shape[:2], strict=True)]
    return {"number": integer(number_key, 2, _SHADOWS), "vertices": jnp.stack(places, axis=-1).astype(jnp.float32)}


def _inside(vertices, shape):
    """Finds which pixels lie inside of a polygon, by the even-odd rule: bool [H, W]."""
    row, column = _grid(shape)
    inside = jnp.zeros(shape[:2], bool)
    for i in range(_VERTICES):
        (y, x), (next_y, next_x) = vertices[i], vertices[(i + 1) % _VERTICES]
        crossed = (y > row) != (next_y > row)
        run = (next_x - x) / jnp.where(next_y == y, 1.0, next_y - y)
        inside ^= crossed & (column < x + (row - y) * run)
    return inside


@register(
    "lighting",
    _sample_random_shadow,
    {"number": "shadows", "vertices": "pixels"},
    mixes="changes the lightness of red, green and blue",
)
def random_shadow(image: Image, params: Params) -> Image:
    """Halves the HLS lightness inside of any shadow, hue and saturation kept.

    Polygons that cross themselves have holes. Source: RandomShadow, of the whole image.
    """
    inside = jax.vmap(lambda vertices: _inside(vertices, image.shape))(params["vertices"])
    shaded = jnp.any(inside & (jnp.arange(_SHADOWS) < params["number"])[:, None, None], axis=0)
    return jnp.where(shaded[..., None], relit(image, lightness(image) / 2), image)


def _sample_random_rain(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws the upper ends of drops, `rows` and `columns` uniform where a drop fits, and one `slant`.

    A drop is 20 pixels high and slants by up to 10, whole pixels; one drop for 600 pixels of image.
    """
    height, width = shape[:2]
    number = max(1, int(height * width / (600 * scale(shape))))
    slant_key, row_key, column_key = jax.random.split(key, 3)
    slope = jax.random.uniform(slant_key, minval=-1.0, maxval=1.0)
    slant = jnp.trunc(slope * 10 * float(scale(shape))).astype(jnp.int32)
    return {
        "slant": slant,
        "rows": integer(row_key, 0, height - pixels(20, shape), (number,)),
        "columns": integer(column_key, jnp.minimum(slant, 0), width - jnp.maximum(slant, 0), (number,)),
    }


def _mean_matrix(size, reach):
    """Makes the matrix of means over 2 reach + 1 samples of an axis, mirrored about its end samples."""
    taps = warps.fold(jnp.arange(size)[:, None] + jnp.arange(-reach, reach + 1)[None, :], size, "reflect")
    return jnp.mean(taps[..., None] == jnp.arange(size)[None, None, :], axis=1, dtype=jnp.float32)


@register("weather", _sample_random_rain, {"slant": "pixels", "rows": "pixels", "columns": "pixels"})
def random_rain(image: Image, params: Params) -> Image:
    """Draws the drops as lines of grey 200 and width 1, blurs by means of 7x7, and darkens to 0.7.

    Source: RandomRain.
    """
    height, width, _ = image.shape
    length, reach = pixels(20, image.shape), pixels(3, image.shape, least=0)
    along = jnp.arange(length + 1)
    aside = jnp.round(along.astype(jnp.float32) * (params["slant"].astype(jnp.float32) / length)).astype(jnp.int32)
    rows, columns = (params[name][:, None] + by[None, :] for name, by in (("rows", along), ("columns", aside)))
    wet = painting.covered_by_products(
        rows.reshape(-1, 1) == jnp.arange(height)[None, :], columns.reshape(-1, 1) == jnp.arange(width)[None, :]
    )
    rainy = jnp.where(wet[..., None], 200 / 255, image)
    blurred = filters.separable(rainy, _mean_matrix(height, reach), _mean_matrix(width, reach))
    return color.clip(0.7 * blurred)
