"""ImageNet-C fog: a plasma fractal laid over the image."""

import jax.numpy as jnp

from corruptions import levels, registry
from corruptions.contract import Corruption, Levels, Parameter
from corruptions.imagenet_c import tables
from corruptions.primitives import random, staging
from corruptions.primitives.diamond_square import diamond_square, draws_needed

_SOURCE = "ImageNet-C, appendix B and released code"

# (strength, decay)
_LEVELS = {
    "cifar": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    "tiny": ((0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)),
    "imagenet": ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    "inception": ((1.5, 2), (2, 2), (2.5, 1.8), (2.5, 1.6), (3, 1.5)),
}
_MAP_SIDE = {"cifar": 32, "tiny": 64, "imagenet": 256, "inception": 512}


def _map_side(shape, table):
    """Side of the fractal: the table's, or the next power of two when the image is larger than that."""
    return max(_MAP_SIDE[table], 1 << (max(shape[:2]) - 1).bit_length())


def _sample(key, shape, severity, *, table=None):
    """Fog of random, fractal thickness.

    Draws U[-1, 1) displacements, one per point of a square fractal map but its corner; per octave centres, top and
    left points (see `primitives.diamond_square`). The map's side is 32, 64, 256 or 512 by table (`cifar`, `tiny`,
    `imagenet`, `inception`), or the next power of two for an image larger than that.
    """
    table = tables.table_for(shape, table)
    strength, decay = levels.lookup(_LEVELS[table], severity)
    number = draws_needed(_map_side(shape, table))
    return {"strength": strength, "decay": decay, "displacements": random.uniform(key, (number,), -1.0, 1.0)}


def _apply(image, params):
    """clip((x + s P) M / (M + s), 0, 1): s the strength, P the fog's thickness in [0, 1], M the image's largest value.

    P is the fractal map scaled to [0, 1] by its own extremes, cropped to the image's size at the top left. A black
    image stays black. Source: ImageNet-C, fog.
    """
    height, width, _ = image.shape
    fractal = staging.stage(diamond_square(params["displacements"], params["decay"]))
    low, high = jnp.min(fractal), jnp.max(fractal)
    thickness = (fractal[:height, :width] - low) / (high - low)
    brightest, strength = jnp.max(image), params["strength"]
    scale = brightest / (brightest + strength)
    return jnp.clip((image + strength * thickness[..., None]) * scale, 0, 1)


fog = registry.register(
    Corruption(
        name="fog",
        benchmark="imagenet_c",
        family="weather",
        sampler=_sample,
        applier=_apply,
        scale=Levels(5),
        rounding="truncate",
        parameters=(
            Parameter("strength", "fog at its thickest, in units of the full range", _SOURCE),
            Parameter("decay", "square root of the fall in amplitude per octave", _SOURCE),
            Parameter("displacements", "U[-1, 1) per point of the fractal map, by octave", _SOURCE),
        ),
    )
)
