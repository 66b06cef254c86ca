"""ImageNet-C elastic_transform: a random affine map, then a smooth random displacement."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core.corruption import Image, Key, Params, Positions, Severity, Shape
from corruptions.imagenet_c.tables import lookup, register, table_for
from corruptions.primitives import color, filters, padded, random, staging, warps

# (amplitude alpha, smoothing sigma, affine jitter) in units of L, and L in pixels. The 244 is the original's.
_SHAPE = {
    "cifar": ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    "tiny": ((0, 0, 0.08), (0.05, 0.3, 0.06), (0.1, 0.08, 0.06), (0.1, 0.03, 0.03), (0.16, 0.03, 0.02)),
    "imagenet": ((2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)),
    "inception": ((2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)),
}
_LENGTH = {"cifar": 32, "tiny": 64, "imagenet": 244, "inception": 360}
_PIXELS = {name: np.multiply(rows, _LENGTH[name]) for name, rows in _SHAPE.items()}
_TRUNCATE = 3.0
_BORDER = "scipy_1_5"  # the published files are older than SciPy 1.6


def _sample(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws three displaced points and two displacement fields.

    `points`, float32[3, 2] as (x, y) in pixels, are the images of the affine map's three anchors, anchor + U(-jitter,
    jitter)^2. `dx` and `dy`, float32[H, W] in pixels to the right and down, are alpha G(U(-1, 1)), G a Gaussian
    filter of standard deviation sigma.
    """
    points_key, *field_keys = jax.random.split(key, 3)
    alpha, sigma, jitter = lookup(_PIXELS, shape, table, severity)
    points = anchors(padded.own(shape)) + random.uniform(points_key, (3, 2), -jitter, jitter)
    noise = (random.uniform(k, shape[:2], -1.0, 1.0) for k in field_keys)
    radii = [int(_TRUNCATE * width + 0.5) for width in _PIXELS[table_for(shape, table)][:, 1]]
    dx, dy = filters.mirrored_gaussian(noise, shape, sigma, max(radii), radii[-1], _TRUNCATE)
    return {"points": points, "dx": alpha * dx, "dy": alpha * dy}


def anchors(shape: Sequence[Any]) -> jax.Array:
    """Places the anchors of the affine map, float32[3, 2] as (x, y) in pixels.

    They are c + (q, q), c + (q, -q) and c - (q, q) with c = (W//2, H//2) and q = min(H, W) // 3.
    """
    height, width = shape[:2]
    offset = jnp.minimum(height, width) // 3 * np.array([[1, 1], [1, -1], [-1, -1]])
    return (jnp.stack([width // 2, height // 2])[None] + offset).astype(jnp.float32)


def _map(shape: Shape, params: Params) -> Positions:
    return warps.positions(functools.partial(_warped, params=params), shape, params["dx"])


def _reflected(shape: Shape, params: Params) -> jax.Array:
    """Tells which pixels are mirror images: of the affine map's border, displaced, or of the displacement's own."""
    places = warps.displaced(params["dy"], params["dx"])
    of_affine = warps.beyond(*_affine_places(shape, params, shape), shape, "reflect").astype(jnp.float32)[..., None]
    return warps.beyond(*places, shape, _BORDER) | (warps.mirrored(of_affine, *places, shape, _BORDER)[..., 0] > 0.5)


_LEVEL_UNITS = {"alpha": "pixels", "sigma": "pixels", "jitter": "pixels"}
_UNITS = {"points": "pixels, three of the affine map", "dx": "pixels to the right", "dy": "pixels down"}
_MOVES = "moves pixels by an affine map and a random field"


@register(
    "digital",
    _sample,
    _UNITS,
    severity=_LEVEL_UNITS,
    moves=_MOVES,
    mapper=_map,
    reflects=_reflected,
    version=2,
    alone="quick",
)
def elastic_transform(image: Image, params: Params) -> Image:
    """Warps the image by an affine map, then displaces every pixel, both bilinear.

    The affine warp has coordinates in 1/32 pixel and the border d c b | a b c d, as OpenCV below 5. The displacement has the
    border c b a | a b c as SciPy below 1.6, which takes x[0] + t (x[1] - x[0]) at -1 + t, 0 < t < 1 (version 1 took
    x[0], as later SciPy). The parameters are pixels whatever the image size; where the original assumes a square image,
    the centre is (W/2, H/2). Source: ImageNet-C, elastic_transform.
    """
    return color.clip(_warped(image, params))


def _warped(image, params):
    sides = padded.own_sides(image.shape, params)
    # Staged: the second warp would compute the first again in each of its four look-ups.
    warped = staging.stage(warps.mirrored(image, *_affine_places(image.shape, params, sides), sides, "reflect"))
    return warps.mirrored(warped, *warps.displaced(params["dy"], params["dx"]), sides, _BORDER)


def _affine_places(shape: Any, params: Params, sides: Any) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Finds the places of the affine map as `warps.mirrored` takes them."""
    y, x = warps.affine_coordinates(params["points"], anchors(sides), shape)
    down, right = ((v & 31).astype(jnp.float32) * np.float32(1 / 32) for v in (y, x))
    return y >> 5, x >> 5, down, right
