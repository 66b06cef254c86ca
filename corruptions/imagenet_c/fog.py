"""ImageNet-C fog: a plasma fractal laid over the image."""

import jax.numpy as jnp

from corruptions.imagenet_c.tables import lookup, member, padding, table_for
from corruptions.primitives import random, staging, textures
from corruptions.record import Image, Key, Params, Severity, Shape

# (strength, decay)
_LEVELS = {
    "cifar": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    "tiny": ((0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)),
    "imagenet": ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    "inception": ((1.5, 2), (2, 2), (2.5, 1.8), (2.5, 1.6), (3, 1.5)),
}
_MAP_SIDE = {"cifar": 32, "tiny": 64, "imagenet": 256, "inception": 512}


def _sample(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws the fractal thickness of the fog: `displacements`, U[-1, 1).

    One per point of a square fractal map but its corner; per octave centres, top and left points (see
    `textures.diamond_square`). The map's side is 32, 64, 256 or 512 by table (`cifar`, `tiny`, `imagenet`,
    `inception`), or the next power of two for a larger image.
    """
    strength, decay = lookup(_LEVELS, shape, table, severity)
    side = max(_MAP_SIDE[table_for(shape, table)], 1 << (max(shape[:2]) - 1).bit_length())
    displacements = random.uniform(key, (textures.draws_needed(side),), -1.0, 1.0)
    return {"strength": strength, "decay": decay, "displacements": displacements}


_UNITS = {
    "strength": "fog at its thickest, in units of the full range",
    "decay": "square root of the fall in amplitude per octave",
    "displacements": "U[-1, 1) per point of the fractal map, by octave",
}


@member("weather", _sample, _UNITS, mixes="scales by the largest value of all channels", padding=padding(quick=False))
def fog(image: Image, params: Params) -> Image:
    """Lays a plasma fractal over the image: clip((x + s P) M / (M + s), 0, 1).

    s is the strength, M the image's largest value and P the fog's thickness: the fractal map scaled to [0, 1] by its
    extremes and cropped to the image's size at the top left. A black image stays black. Source: ImageNet-C, fog.
    """
    height, width, _ = image.shape
    fractal = staging.stage(textures.diamond_square(params["displacements"], params["decay"]))
    low, high = jnp.min(fractal), jnp.max(fractal)
    thickness = (fractal[:height, :width] - low) / (high - low)
    brightest, strength = jnp.max(image), params["strength"]
    scale = brightest / (brightest + strength)
    return jnp.clip((image + strength * thickness[..., None]) * scale, 0, 1)
