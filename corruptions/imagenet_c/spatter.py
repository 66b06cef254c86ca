"""ImageNet-C spatter: drops of water or splashes of mud on the lens."""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.imagenet_c.tables import lookup, register
from corruptions.primitives import color, filters, random, staging
from corruptions.primitives.edges import canny, chamfer_distance, equalize

# (mean, deviation, blur, threshold, gain of water or blur of mud, 1 for mud)
_LEVELS = {
    "cifar": (
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ),
    "tiny": (
        (0.62, 0.1, 0.7, 0.7, 0.6, 0),
        (0.65, 0.1, 0.8, 0.7, 0.6, 0),
        (0.65, 0.3, 1, 0.69, 0.6, 0),
        (0.65, 0.1, 0.7, 0.68, 0.6, 1),
        (0.65, 0.1, 0.5, 0.67, 0.6, 1),
    ),
    "imagenet": (
        (0.65, 0.3, 4, 0.69, 0.6, 0),
        (0.65, 0.3, 3, 0.68, 0.6, 0),
        (0.65, 0.3, 2, 0.68, 0.5, 0),
        (0.65, 0.3, 1, 0.65, 1.5, 1),
        (0.67, 0.4, 1, 0.65, 1.5, 1),
    ),
    "inception": (
        (0.65, 0.3, 4, 0.69, 0.9, 0),
        (0.65, 0.3, 3.5, 0.68, 0.9, 0),
        (0.65, 0.3, 3, 0.68, 0.8, 0),
        (0.65, 0.3, 1.2, 0.65, 1.8, 1),
        (0.67, 0.4, 1.2, 0.65, 1.8, 1),
    ),
}
_LIQUID_RADIUS = 16  # radius of the widest blur, int(4 * 4 + 0.5)
_MUD_RADIUS = 7  # int(4 * 1.8 + 0.5)
_WATER = np.array([[[175, 238, 238]]], np.float32) / 255
_MUD = np.array([[[63, 42, 20]]], np.float32) / 255
_EDGE_THRESHOLDS = (50, 150)


def _sample(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws `noise` ~ N(mean, deviation^2) per pixel, the liquid before it is blurred into drops.

    It is water at severities 1 to 3, mud at 4 and 5. Between severities 3 and 4 (interpolated severities only) `mud`
    is a fraction, and the image a blend of both.
    """
    mean, deviation, blur, threshold, strength, mud = lookup(_LEVELS, shape, table, severity)
    noise = mean + deviation * random.normal(key, shape[:2])
    return {"noise": noise, "blur": blur, "threshold": threshold, "strength": strength, "mud": mud}


@register(
    "weather",
    _sample,
    {
        "noise": "N(mean, deviation^2) per pixel",
        "blur": "standard deviation of the liquid's blur, pixels",
        "threshold": "level of the blurred noise above which there is liquid",
        "strength": "water: largest brightening (fraction); mud: blur in pixels",
        "mud": "1 for mud, 0 for water",
    },
    severity={
        "mean": "full range",
        "deviation": "full range",
        "blur": "pixels",
        "threshold": "full range",
        "strength": "full range, or pixels of mud",
        "mud": "1 for mud, 0 for water",
    },
    mixes="splashes water or mud of a colour",
    padding=None,
)
def spatter(image: Image, params: Params) -> Image:
    """Splashes water, clip(x + m (175, 238, 238)/255), or mud, (1 - m) x + m (63, 42, 20)/255.

    m >= 0 is the liquid. The noise, blurred with a Gaussian of standard deviation `blur` pixels, is set to 0 below
    `threshold`. Water: 8-bit levels of the blurred noise times an 8-bit relief (distance to the drops' Canny edges up
    to 20 pixels, averaged, equalised and sharpened), scaled to a largest value of `strength`; no liquid leaves the
    image unchanged. Mud: the region above the threshold, blurred again with `strength` pixels, where that is at least
    0.8. Source: ImageNet-C, spatter.
    """
    layer = _blur(params["noise"], params["blur"], _LIQUID_RADIUS)
    layer = jnp.where(layer < params["threshold"], 0, layer)
    mud = params["mud"]
    none = jnp.zeros_like(layer)
    # A batch with mud only, or without mud, runs one branch. The branches are jitted because vmap within `shard_map`
    # counts the constants of a plain branch as split twice.
    is_wet, is_dirty = (staging.largest(liquid.astype(jnp.int32)) > 0 for liquid in (mud < 1, mud > 0))
    water = jax.lax.cond(is_wet, jax.jit(_water), lambda *_: none, layer, params["strength"])
    dirt = jax.lax.cond(is_dirty, jax.jit(_mud), lambda *_: none, layer, params["strength"], params["threshold"])
    water, dirt = water[..., None], dirt[..., None]
    wet = color.clip(image + water * _WATER)
    dirty = color.clip(image * (1 - dirt) + dirt * _MUD)
    return (1 - mud) * wet + mud * dirty


def _blur(x, sigma, max_radius):
    return filters.gaussian(x, sigma, filters.gaussian_weights(sigma, max_radius))


def _water(layer, gain):
    drops = drop_levels(layer)
    mask = staging.stage_on_cpu(drops * relief(drops)).astype(jnp.float32)
    return mask * (gain / jnp.maximum(jnp.max(mask), 1))


def _mud(layer, sigma, threshold):
    mask = _blur((layer > threshold).astype(jnp.float32), sigma, _MUD_RADIUS)
    return jnp.where(mask < 0.8, 0, mask)


def drop_levels(layer: jax.Array) -> jax.Array:
    """Computes floor(255 layer) modulo 256, int32 [H, W]; it wraps around in the original too."""
    return jnp.floor(layer * 255).astype(jnp.int32) & 255


def relief(drops: jax.Array) -> jax.Array:
    """Computes the relief of drops, both 8-bit, int32 [H, W]. Source: ImageNet-C, spatter."""
    distance = chamfer_distance(canny(drops, *_EDGE_THRESHOLDS))
    smooth = _staged(floor_of_mean(distance))
    x = _staged(filters.extended(equalize(smooth, 21), 1, (0, 1), "reflect"))
    sharp = 2 * (x[2:, 2:] - x[:-2, :-2]) + x[1:-1, 1:-1] + x[1:-1, 2:] + x[2:, 1:-1] - x[:-2, 1:-1] - x[1:-1, :-2]
    total = _sum_of_nine(_staged(jnp.clip(sharp, 0, 255)))
    return jnp.round(total.astype(jnp.float32) * np.float32(1 / 9)).astype(jnp.int32)  # never half way: 9 is odd


def _staged(levels):
    """Stages levels 0..255, int32, as bytes."""
    return staging.stage(levels.astype(jnp.uint8)).astype(jnp.int32)


def floor_of_mean(distance: jax.Array) -> jax.Array:
    """Rounds down the 3x3 mean of distances 0..20, itself a float32 as in the original.

    Means that are whole numbers are common, so the sums have to be exact: of multiples of 2^-23, in integers.
    """
    total = _sum_of_nine((distance * 2**23).astype(jnp.int32))
    nearest = jnp.round(total.astype(jnp.float32) * np.float32(2.0**-23 / 9)).astype(jnp.int32)
    # A float32 rounds up to a whole number from half its spacing below: 2^(k - 25) for numbers in (2^(k - 1), 2^k].
    early = (9 << (32 - jax.lax.clz(nearest - 1))) >> 2
    return nearest - (total < 9 * 2**23 * nearest - early).astype(jnp.int32)


def _sum_of_nine(x):
    """Sums over 3x3 pixels, mirrored at the edge pixels."""
    x = filters.extended(x, 1, (0, 1), "reflect")
    x = x[:, :-2] + x[:, 1:-1] + x[:, 2:]
    return x[:-2] + x[1:-1] + x[2:]
