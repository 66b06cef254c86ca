"""ImageNet-C frost: a photograph of ice laid over the image, here procedural ice or photographs of the user's."""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import levels, registry
from corruptions.contract import Corruption, Levels, Parameter
from corruptions.imagenet_c import tables
from corruptions.primitives import color, frost_texture

_SOURCE = "ImageNet-C, appendix B and released code"

# (weight of the image, weight of the frost)
_LEVELS = {
    "cifar": ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
    "tiny": ((1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55)),
    "imagenet": ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    "inception": ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
}

# The original draws one of five files, of which the second and third are the same picture.
_LOOK_OF_FILE = (0, 1, 1, 2, 3)

# How much smaller than the files the textures are used.
TEXTURE_SCALE = {"cifar": 0.2, "tiny": 0.3, "imagenet": 1.0, "inception": 1.0}


def resize_taps(size, scale):
    """Two-tap resampling of an axis by `scale` <= 1 without smoothing (the original's `cv2.resize`, INTER_LINEAR).

    Output o lies at (o + 1/2) / scale - 1/2: for scale 1/5 at every fifth sample, so that it is plain decimation.

    Args:
      size: number of outputs.
      scale: output size over input size.

    Returns:
      (first, fraction): int [size] and float64 [size]; output o is (1 - fraction) x[first] + fraction x[first + 1].
    """
    position = np.round((np.arange(size) + 0.5) / scale - 0.5, 9)
    first = np.floor(position).astype(int)
    return first, position - first


def weights(shape, severity, table):
    """Weights of the image and of the frost at a severity."""
    image_weight, frost_weight = levels.lookup(_LEVELS[tables.table_for(shape, table)], severity)
    return {"image_weight": image_weight, "frost_weight": frost_weight}


def _sample(key, shape, severity, *, table=None):
    """Frost with procedural textures, in the statistics of the original's photographs.

    Draws one of five textures with equal probability (two of them are alike), then the texture: random fields (see
    `primitives.frost_texture`) at the scale of the original's crop, resampled without smoothing by 0.2 (`cifar`) or
    0.3 (`tiny`). Scores are close to, but not comparable with, published ones: those need the original photographs
    (`frost_from_folder`).
    """
    table = tables.table_for(shape, table)
    look_key, key = jax.random.split(key)
    look = jnp.array(_LOOK_OF_FILE)[jax.random.randint(look_key, (), 0, len(_LOOK_OF_FILE))]
    texture = _texture(key, look, shape, TEXTURE_SCALE[table])
    return {**weights(shape, severity, table), "texture": texture}


def _texture(key, look, shape, scale):
    taps = [resize_taps(size, scale) for size in shape[:2]]
    if not any(fraction.any() for _, fraction in taps):
        return frost_texture.texture(key, look, *(first for first, _ in taps))
    # Of the full-size texture only the pixels between which to interpolate are made: two rows, columns per output.
    pairs = [np.stack([first, first + 1], axis=1).ravel() for first, _ in taps]
    x = frost_texture.texture(key, look, *pairs)
    for axis, (_, fraction) in enumerate(taps):
        share = jnp.asarray(fraction, jnp.float32).reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
        before, after = (jax.lax.slice_in_dim(x, k, None, 2, axis) for k in (0, 1))
        x = before + share * (after - before)
    return jnp.round(x)


def apply_frost(image, params):
    """clip(a I + b F, 0, 255) on levels: I the image, F the texture, a and b their weights.

    `texture` is float32 [H, W, 3], whole levels 0..255. Source: ImageNet-C, frost.
    """
    total = params["image_weight"] * color.to_levels(image) + params["frost_weight"] * params["texture"]
    return color.from_levels(jnp.clip(total, 0, 255))


WEIGHT_PARAMETERS = (
    Parameter("image_weight", "factor on the image", _SOURCE),
    Parameter("frost_weight", "factor on the texture", _SOURCE),
)

frost = registry.register(
    Corruption(
        name="frost",
        benchmark="imagenet_c",
        family="weather",
        sampler=_sample,
        applier=apply_frost,
        scale=Levels(5),
        rounding="truncate",
        parameters=(
            *WEIGHT_PARAMETERS,
            Parameter("texture", "RGB levels 0..255", "procedural, after statistics of ImageNet-C's photographs"),
        ),
    )
)
