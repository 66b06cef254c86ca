"""ImageNet-C frost: ice laid over the image, procedural unless `photographs` are given."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.imagenet_c import photographs as folders
from corruptions.imagenet_c import tables
from corruptions.imagenet_c.member import member, padding
from corruptions.imagenet_c.photographs import TEXTURE_SCALE, resize_taps
from corruptions.primitives import color
from corruptions.primitives.textures import frost_texture
from corruptions.record import Parameter

# (weight of the image, weight of the frost)
_LEVELS = {
    "cifar": ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
    "tiny": ((1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55)),
    "imagenet": ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    "inception": ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
}

# The original draws one of five files, of which the second and third are the same picture.
_LOOK_OF_FILE = (0, 1, 1, 2, 3)


def weights(shape: Sequence[int], severity: jax.Array, table: str | None) -> dict[str, jax.Array]:
    """Looks up the weights of the image and of the frost at a severity."""
    image_weight, frost_weight = tables.lookup(_LEVELS, shape, table, severity)
    return {"image_weight": image_weight, "frost_weight": frost_weight}


def _sample(key, shape, severity, *, table=None, photographs=None):
    """Draws a procedural texture with the statistics of the original's photographs.

    First one of five looks with equal probability (two of them are alike), then `texture`: random
    fields (see `primitives.textures.frost_texture`) at the scale of the original's crop, resampled
    without smoothing by 0.2 (`cifar`) or 0.3 (`tiny`). Scores are close to, but not comparable
    with, published ones: those need the original photographs. `photographs`, the digest that
    `use_photographs` gave, draws from them instead.
    """
    table = tables.table_for(shape, table)
    if photographs is not None:
        return {**weights(shape, severity, table), **folders.find(photographs).crop(key, shape, table)}
    look_key, key = jax.random.split(key)
    look = jnp.array(_LOOK_OF_FILE)[jax.random.randint(look_key, (), 0, len(_LOOK_OF_FILE))]
    texture = _texture(key, look, shape, TEXTURE_SCALE[table])
    return {**weights(shape, severity, table), "texture": texture}


def _texture(key, look, shape, scale):
    taps = [resize_taps(size, scale) for size in shape[:2]]
    if not any(fraction.any() for _, fraction in taps):
        return frost_texture.texture(key, look, *(first for first, _ in taps))
    # Of the full-size texture only the pixels between which to interpolate are made: two rows, and
    # two columns, per output.
    pairs = [np.stack([first, first + 1], axis=1).ravel() for first, _ in taps]
    x = frost_texture.texture(key, look, *pairs)
    for axis, (_, fraction) in enumerate(taps):
        share = jnp.asarray(fraction, jnp.float32).reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
        before, after = (jax.lax.slice_in_dim(x, k, None, 2, axis) for k in (0, 1))
        x = before + share * (after - before)
    return jnp.round(x)


def _apply(image, params):
    """Adds ice F to the image I: clip(a I + b F, 0, 255) on levels, a and b the weights.

    `texture` is float32 [H, W, 3], whole levels 0..255. Source: ImageNet-C, frost.
    """
    total = params["image_weight"] * color.to_levels(image) + params["frost_weight"] * params["texture"]
    return color.from_levels(jnp.clip(total, 0, 255))


frost = member(
    "frost",
    "weather",
    _sample,
    _apply,
    (
        ("image_weight", "factor on the image"),
        ("frost_weight", "factor on the texture"),
        Parameter("texture", "RGB levels 0..255", "procedural, after statistics of ImageNet-C's photographs"),
    ),
    mixes="lays a texture of red, green and blue over the image",
    padding=padding(draws=False),
)
