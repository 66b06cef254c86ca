"""ImageNet-C snow: whitened image under streaks of falling snow."""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import levels, registry
from corruptions.contract import Corruption, Levels, Parameter
from corruptions.imagenet_c import motion, tables
from corruptions.primitives import color, filters, random, staging, zoom

_SOURCE = "ImageNet-C, appendix B and released code"

# (mean, deviation, zoom, threshold, radius, sigma, mix)
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


def _sample(key, shape, severity, *, table=None):
    """Snow flakes as noise and the direction in which they fall.

    Draws `noise` ~ N(mean, deviation^2) per pixel, then `angle` ~ U(-135, -45) degrees. Between two severities
    (interpolated severities only) the zooms are blended, not their factors.
    """
    table = _LEVELS[tables.table_for(shape, table)]
    mean, deviation, _, threshold, radius, sigma, mix = levels.lookup(table, severity)
    noise_key, angle_key = jax.random.split(key)
    height, width = shape[:2]
    return {
        "noise": mean + deviation * random.normal(noise_key, (height, width)),
        "angle": random.uniform(angle_key, (), -135.0, -45.0),
        "zoom_rows": levels.lookup([zoom.zoom_matrix(height, row[2]) for row in table], severity),
        "zoom_columns": levels.lookup([zoom.zoom_matrix(width, row[2]) for row in table], severity),
        "threshold": threshold,
        "weights": motion.taps(radius, sigma, max(row[4] for row in table)),
        "mix": mix,
    }


def _apply(image, params):
    """clip(mix x + (1 - mix) max(x, 1.5 luma + 0.5) + S + S', 0, 1): S the snow, S' the same turned by 180 degrees.

    S: the noise, its centre enlarged (bilinear), set to 0 below `threshold`, clipped to [0, 1], truncated to 8 bits
    and blurred in 8 bits along `angle` as by ImageMagick (see `motion`). Luma 0.299 R + 0.587 G + 0.114 B.
    Source: ImageNet-C, snow.
    """
    layer = filters.separable(params["noise"], params["zoom_rows"], params["zoom_columns"])
    flakes = flake_levels(layer, params["threshold"])
    streaks = staging.stage(streak_levels(flakes, params["weights"], params["angle"]))
    snow_layer = color.from_levels((streaks + streaks[::-1, ::-1]).astype(jnp.float32))
    white = jnp.maximum(image, 1.5 * color.luma(image)[..., None] + 0.5)
    mix = params["mix"]
    return jnp.clip(mix * image + (1 - mix) * white + snow_layer[..., None], 0, 1)


def flake_levels(layer, threshold):
    """8-bit levels of the flakes, floor(255 clip(layer, 0, 1)) where layer is at least `threshold`: int32 [H, W]."""
    flakes = jnp.where(layer < threshold, 0, jnp.clip(layer, 0, 1))
    return jnp.floor(flakes * np.float32(255)).astype(jnp.int32)


def streak_levels(flakes, weights, angle):
    """Flakes int32 [H, W] blurred along `angle` (degrees): int32 [H, W] levels 0..255."""
    return motion.motion_blur_levels(flakes[..., None], weights, jnp.deg2rad(angle))[..., 0]


snow = registry.register(
    Corruption(
        name="snow",
        benchmark="imagenet_c",
        family="weather",
        sampler=_sample,
        applier=_apply,
        scale=Levels(5),
        rounding="truncate",
        parameters=(
            Parameter("noise", "N(mean, deviation^2) per pixel", _SOURCE),
            Parameter("angle", "direction of the blur, degrees; -90 lets the streaks trail downwards", _SOURCE),
            Parameter("zoom_rows", "matrix that enlarges the noise along rows", _SOURCE),
            Parameter("zoom_columns", "matrix that enlarges the noise along columns", _SOURCE),
            Parameter("threshold", "of the enlarged noise", _SOURCE),
            Parameter("weights", "of the blur, by distance along the streak in pixels", _SOURCE),
            Parameter("mix", "share of the image that is not whitened", _SOURCE),
        ),
    )
)
