"""ImageNet-C snow: whitened image under streaks of falling snow."""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.core.severity import lookup
from corruptions.imagenet_c import motion
from corruptions.imagenet_c.tables import padding, register, table_for
from corruptions.primitives import color, filters, padded, random, resizing, staging

# (mean, deviation, zoom, threshold, radius, sigma, mix); the small tables differ only in the mix.
_SMALL = (
    (0.1, 0.2, 1, 0.6, 8, 3),
    (0.1, 0.2, 1, 0.5, 10, 4),
    (0.15, 0.3, 1.75, 0.55, 10, 4),
    (0.25, 0.3, 2.25, 0.6, 12, 6),
    (0.3, 0.3, 1.25, 0.65, 14, 12),
)
_LARGE = (
    (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
    (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
    (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
)
_LEVELS = {
    "cifar": tuple((*row, mix) for row, mix in zip(_SMALL, (0.95, 0.9, 0.9, 0.85, 0.8), strict=True)),
    "tiny": tuple((*row, mix) for row, mix in zip(_SMALL, (0.8, 0.8, 0.7, 0.65, 0.6), strict=True)),
    "imagenet": _LARGE,
    "inception": _LARGE,
}


def _sample(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws flakes, `noise` ~ N(mean, deviation^2), and the `angle` of their fall.

    The angle is uniform in -135..-45 degrees. Between two severities (interpolated severities only) the zooms are
    blended, not their factors.
    """
    rows, columns = _zoom_matrices(shape, table, severity)
    by_severity = _LEVELS[table_for(shape, table)]
    mean, deviation, _, threshold, radius, sigma, mix = lookup(by_severity, severity)
    noise_key, angle_key = jax.random.split(key)
    return {
        "noise": mean + deviation * random.normal(noise_key, shape[:2]),
        "angle": random.uniform(angle_key, (), -135.0, -45.0),
        "zoom_rows": rows,
        "zoom_columns": columns,
        "threshold": threshold,
        "weights": motion.taps(radius, sigma, max(row[4] for row in by_severity)),
        "mix": mix,
    }


def _zoom_matrices(shape, table, severity):
    """Makes the matrices that enlarge rows and columns at a severity; for a padded image from its taps."""
    if not isinstance(shape, padded.Shape):
        factors = [row[2] for row in _LEVELS[table_for(shape, table)]]
        return [lookup([resizing.zoom_matrix(size, f) for f in factors], severity) for size in shape[:2]]
    level = jnp.round(severity).astype(jnp.int32) - 1
    taps = [(shape.tables[f"{axis}_first"][level], shape.tables[f"{axis}_fraction"][level]) for axis in _AXES]
    return [resizing.matrix_of_taps(first, first + 1, fraction) for first, fraction in taps]


_AXES = ("rows", "columns")


def _zoom_taps(shape, table):
    """Tabulates first taps and fractions of the enlargement along rows and columns by severity, [5, n]."""
    taps, factors = {}, [row[2] for row in _LEVELS[table_for(shape, table)]]
    for name, size in zip(_AXES, shape):
        first, fraction = zip(*(resizing.zoom_taps(size, factor) for factor in factors), strict=True)
        taps |= {f"{name}_first": np.int32(first), f"{name}_fraction": np.float32(fraction)}
    return taps


@register(
    "weather",
    _sample,
    {
        "noise": "N(mean, deviation^2) per pixel",
        "angle": "direction of the blur, degrees; -90 lets the streaks trail downwards",
        "zoom_rows": "matrix that enlarges the noise along rows",
        "zoom_columns": "matrix that enlarges the noise along columns",
        "threshold": "level of the enlarged noise below which there is no flake",
        "weights": "weights of the blur by distance along the streak in pixels",
        "mix": "share of the image that is not whitened",
    },
    severity={
        "mean": "full range",
        "deviation": "full range",
        "zoom": "1",
        "threshold": "full range",
        "radius": "pixels",
        "sigma": "pixels",
        "mix": "1",
    },
    mixes="whitens by the luma of red, green and blue",
    padding=padding(tables=_zoom_taps),
    alone="quick",
)
def snow(image: Image, params: Params) -> Image:
    """Whitens the image and adds streaks of snow S, and S' = S turned by 180 degrees.

    The result is clip(mix x + (1 - mix) max(x, 1.5 luma + 0.5) + S + S', 0, 1) with luma = 0.299 R + 0.587 G + 0.114
    B. S is the noise, its centre enlarged (bilinear), set to 0 below `threshold`, clipped to [0, 1], truncated to 8
    bits and blurred in 8 bits along `angle` as by ImageMagick (see `motion`). Source: ImageNet-C, snow.
    """
    layer = filters.separable(params["noise"], params["zoom_rows"], params["zoom_columns"])
    flakes = padded.repeat_border(flake_levels(layer, params["threshold"]), params)
    streaks = staging.stage(streak_levels(flakes, params["weights"], params["angle"]))
    snow_layer = color.from_levels((streaks + padded.turned(streaks, params)).astype(jnp.float32))
    # Staged: a CPU would compute the planes again for every channel.
    snow_layer, grey = (staging.stage_on_cpu(plane)[..., None] for plane in (snow_layer, 1.5 * color.luma(image) + 0.5))
    white = jnp.maximum(image, grey)
    mix = params["mix"]
    return color.clip(mix * image + (1 - mix) * white + snow_layer)


def flake_levels(layer: jax.Array, threshold: jax.Array | float) -> jax.Array:
    """Computes the flakes, int32 [H, W]: floor(255 clip(layer, 0, 1)), 0 below `threshold`."""
    flakes = jnp.where(layer < threshold, 0, jnp.clip(layer, 0, 1))
    return jnp.floor(flakes * np.float32(255)).astype(jnp.int32)


def streak_levels(flakes: jax.Array, weights: jax.Array, angle: jax.Array | float) -> jax.Array:
    """Blurs flakes, int32 [H, W], along `angle` (degrees): int32 [H, W], levels 0..255."""
    return motion.motion_blur_levels(flakes[..., None], weights, jnp.deg2rad(angle))[..., 0]
