"""Places: affines, perspective, cutout and downscale."""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core.corruption import Image, Key, Params, Positions, Severity, Shape
from corruptions.noc.severities import integer
from corruptions.primitives import color, filters, resizing, warps
from corruptions.syn2nat.common import pixels, register


def _sample_affines(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws `scale` from U[0.6, 0.8), the same along both axes."""
    return {"scale": jax.random.uniform(key, minval=0.6, maxval=0.8)}


def _position(size, scale):
    middle = (size - 1) / 2
    return (jnp.arange(size, dtype=jnp.float32) - middle) / scale + middle


def _shrunk(size, scale):
    """Makes the matrix of out(p) = in((p - m) / s + m) along an axis of middle m."""
    position = _position(size, scale)
    first = jnp.floor(position)
    taps = (warps.fold(first.astype(jnp.int32) + i, size, "reflect") for i in (0, 1))
    return resizing.matrix_of_taps(*taps, position - first)


def _reflected(shape: Shape, params: Params) -> jax.Array:
    rows, columns = (jnp.floor(_position(size, params["scale"]) + 0.5) for size in shape[:2])
    inside = [(nearest >= 0) & (nearest < size) for nearest, size in zip((rows, columns), shape)]
    return ~(inside[0][:, None] & inside[1][None, :])


def _matrices(shape, params):
    return [_shrunk(size, params["scale"]) for size in shape[:2]]


@register(
    "geometry",
    _sample_affines,
    {"scale": "ratio of sides"},
    moves="shrinks the image and mirrors it around",
    mapper=lambda shape, params: filters.positions(*_matrices(shape, params)),
    reflects=_reflected,
)
def affines(image: Image, params: Params) -> Image:
    """Shrinks the image about its centre by `scale`, bilinearly; around it the image is mirrored.

    Source: IAAAffine with only a scale.
    """
    return color.clip(filters.separable(image, *_matrices(image.shape, params)))


def _sample_perspective(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws `corners`, (x, y) of the upper left, upper right, lower right and lower left one, in sides of the image.

    Each moves inwards along both axes by |N(0, s^2)| mod 1, s drawn from U[0.1, 0.3); corners that cross are sorted
    again, left from right first.
    """
    scale_key, jitter_key = jax.random.split(key)
    spread = jax.random.uniform(scale_key, minval=0.1, maxval=0.3)
    moved = jnp.mod(jnp.abs(spread * jax.random.normal(jitter_key, (4, 2))), 1.0)
    square = jnp.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    points = jnp.abs(square - moved)
    points = points[jnp.argsort(points[:, 0])]
    left, right = (side[jnp.argsort(side[:, 1])] for side in (points[:2], points[2:]))
    return {"corners": jnp.stack([left[0], right[0], right[1], left[1]])}


def _homography(corners):
    """Finds the 3x3 matrix that takes the unit square's corners (0, 0), (1, 0), (1, 1), (0, 1) to `corners`."""
    a, b, c, d = corners
    across, down, skew = b - c, d - c, a - b + c - d
    area = _not_zero(across[0] * down[1] - down[0] * across[1])
    g = (skew[0] * down[1] - down[0] * skew[1]) / area
    h = (across[0] * skew[1] - skew[0] * across[1]) / area
    columns = jnp.stack([b - a + g * b, d - a + h * d, a], axis=1)
    return jnp.concatenate([columns, jnp.stack([g, h, jnp.float32(1)])[None]])


def _not_zero(value):
    return jnp.where(jnp.abs(value) < 1e-6, 1e-6, value)


def _map_perspective(shape: Shape, params: Params) -> Positions:
    height, width = shape[:2]
    v, u = (jnp.arange(size, dtype=jnp.float32) / size for size in (height, width))
    v, u = v[:, None], u[None, :]
    x, y, depth = (row[0] * u + row[1] * v + row[2] for row in _homography(params["corners"]))
    depth = _not_zero(depth)
    return height * y / depth, width * x / depth


@register(
    "geometry",
    _sample_perspective,
    {"corners": "sides of the image"},
    moves="projects the image",
    mapper=_map_perspective,
)
def perspective(image: Image, params: Params) -> Image:
    """Stretches the quadrilateral between the corners over the whole image, bilinearly.

    If the corners are not convex, pixels from outside of the image are black. Source: IAAPerspective, which resamples
    twice; this does once.
    """
    return warps.zero_padded(image, *_map_perspective(image.shape, params))


def _sample_cutout(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws the middle of a square of 150 pixels, uniform in the image; the square is pushed inwards at the upper and
    left edge (`top`, `left`) and cut at the others (`bottom`, `right`).
    """
    side = pixels(150, shape)
    first = [
        jnp.maximum(integer(k, 0, n) - side // 2, 0) for k, n in zip(jax.random.split(key), shape[:2], strict=True)
    ]
    return {"top": first[0], "left": first[1], "bottom": first[0] + side, "right": first[1] + side}


@register("occlusion", _sample_cutout, {"top": "pixels", "left": "pixels", "bottom": "pixels", "right": "pixels"})
def cutout(image: Image, params: Params) -> Image:
    """Blackens rows top..bottom - 1 of columns left..right - 1. Source: Cutout, one hole."""
    rows, columns = jnp.arange(image.shape[0])[:, None], jnp.arange(image.shape[1])[None, :]
    inside = (rows >= params["top"]) & (rows < params["bottom"])
    inside &= (columns >= params["left"]) & (columns < params["right"])
    return jnp.where(inside[..., None], 0.0, image)


def _sample_downscale(key: Key, shape: Shape, severity: Severity) -> Params:
    """Lists the `rows` and `columns` that remain at 0.45 times the size; draws nothing."""
    return {"rows": _kept(shape[0], 0.45), "columns": _kept(shape[1], 0.45)}


def _kept(size, ratio):
    """Finds the pixel shown at each place of an axis reduced and enlarged by OpenCV's nearest neighbours."""
    small = round(size * ratio)
    shown = np.arange(size) * small // size
    return jnp.asarray(np.minimum(np.floor(shown / ratio), size - 1), jnp.int32)


@register("digital", _sample_downscale, {"rows": "index", "columns": "index"})
def downscale(image: Image, params: Params) -> Image:
    """Repeats the remaining pixels of the image. Source: Downscale, nearest neighbours."""
    return image[params["rows"]][:, params["columns"]]
