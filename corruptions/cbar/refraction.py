"""caustic_refraction: the image seen through the surface of a pool."""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.cbar import severities
from corruptions.cbar.candidate import candidate, side
from corruptions.cbar.waves import caustic_draws
from corruptions.primitives import borders, staging
from corruptions.primitives.textures.caustic import caustic
from corruptions.primitives.warping import bilinear

_RADIUS = 4
_GAUSSIAN = np.exp(-0.5 * np.arange(-_RADIUS, _RADIUS + 1) ** 2)  # of standard deviation 1
_GAUSSIAN = (_GAUSSIAN / _GAUSSIAN.sum()).astype(np.float32)
_INDEX_RATIO = 4  # sine of the angle of incidence to that of the refracted ray
_FLAT = 1 / 0.999**2 - 1  # squared slope up to which a surface does not refract


def _sample(key, shape, severity, *, table=None):
    """Draws a surface: the time ~ U[0.5, 2) and the scale ~ U[0.75, 1.25) N of a caustic, N =
    min(H, W).

    Options: `table`, `cifar` or `imagenet`, by default the one made for the nearest size.
    """
    strength = severities.scanned("caustic_refraction", severity, shape, table)
    return {"lens": 0.05 * strength * side(shape), "light": 0.2 * strength, **caustic_draws(key, shape)}


def _slopes(shape, params):
    """The gradient of the surface, along rows and columns: float32 [H, W] each."""
    surface = staging.stage(caustic(shape, params["time"], params["scale"]))
    surface = jnp.pad(_smooth(_smooth(surface, 0), 1), 1)
    return surface[2:, 1:-1] - surface[:-2, 1:-1], surface[1:-1, 2:] - surface[1:-1, :-2]


def _refracted(slopes, params):
    """Where the image is looked up: rows and columns [H, W]."""
    slope_y, slope_x = slopes
    height, width = slope_y.shape
    square = slope_y**2 + slope_x**2
    cosine_square = 1 / (1 + square)
    cosine = jnp.sqrt(cosine_square)
    # sin(a - b) / |g|, with sin a = |g| cos a: neither angles nor a division by the slope.
    refracted = jnp.sqrt(1 - square * cosine_square / _INDEX_RATIO**2)
    factor = params["lens"] * cosine * (refracted - cosine / _INDEX_RATIO)
    factor = jnp.where(square > _FLAT, factor, 0.0)
    y, x = jnp.arange(height, dtype=jnp.float32)[:, None], jnp.arange(width, dtype=jnp.float32)[None, :]
    return y + _to_thousandths(factor * slope_y), x + _to_thousandths(factor * slope_x)


def _map(shape, params):
    return _refracted(_slopes(shape, params), params)


def _apply(image, params):
    """Refracts and lights the image: x(p + l sin(a - b) g / |g|) + e (g_y - g_x), clipped,
    bilinear, zero outside the image (C-bar, caustic_refraction).

    g is the gradient, by differences over two pixels and zero outside the image, of a caustic
    (`primitives.textures.caustic`) smoothed by a Gaussian of standard deviation 1; a = arctan |g|
    the angle of incidence, sin b = sin(a) / 4. Where cos a >= 0.999 there is no displacement;
    elsewhere it is rounded to 1/1000 pixel. float32 arithmetic puts about one pixel in a million on
    the other side of that threshold.
    """
    slope_y, slope_x = slopes = _slopes(image.shape, params)
    moved = bilinear.zero_padded(image, *_refracted(slopes, params))
    return jnp.clip(moved + (params["light"] * (slope_y - slope_x))[..., None], 0, 1)


def _smooth(plane, axis):
    """The plane, mirrored about its ends, filtered with `_GAUSSIAN` along an axis."""
    size = plane.shape[axis]
    padded = borders.extended(plane, _RADIUS, (axis,), "symmetric")
    shifted = (jax.lax.slice_in_dim(padded, i, i + size, axis=axis) for i in range(2 * _RADIUS + 1))
    return staging.stage(sum(weight * plane for weight, plane in zip(_GAUSSIAN, shifted, strict=True)))


def _to_thousandths(x):
    return jnp.round(x * 1000) * 0.001


caustic_refraction = candidate(
    "caustic_refraction",
    "geometry",
    _sample,
    _apply,
    (("lens", "pixels"), ("light", "1"), ("time", "radians"), ("scale", "pixels")),
    moves="refracts at a surface",
    mapper=_map,
)
