"""ImageNet-C jpeg_compression, and the JPEG storage of its published datasets."""

import jax
import jax.numpy as jnp

from corruptions import padded
from corruptions.imagenet_c import tables
from corruptions.imagenet_c.member import member, padding
from corruptions.primitives import color, jpeg
from corruptions.record import Array

_QUALITY = {
    "cifar": (80, 65, 58, 50, 40),
    "tiny": (65, 58, 50, 40, 25),
    "imagenet": (25, 18, 15, 10, 7),
    "inception": (23, 16, 13, 8, 5),
}
STORAGE_QUALITY = 85


def _sample(key, shape, severity, *, table=None):
    """Looks up the JPEG `quality`; draws nothing."""
    del key
    return {"quality": tables.lookup(_QUALITY, shape, table, severity), **padded.own_size(shape)}


def _apply(image, params):
    """Writes the image, rounded to 8 bits, as JPEG (4:2:0) of integer `quality` and reads it back.

    Bit-exact with Pillow. Source: ImageNet-C, jpeg_compression.
    """
    quality = jnp.round(params["quality"]).astype(jnp.int32)
    return _round_trip(image, quality, params.get("size"))


def _smooth(image, params):
    del params  # transform and quantisation without rounding give the coefficients back
    return jpeg.without_rounding(image)


def store(image: Array) -> jax.Array:
    """Stores a corrupted image as the published ImageNet-C files do: as JPEG of quality 85.

    So do Tiny-ImageNet-C and ImageNet-64x64-C. To reproduce datasets "as published", truncate the
    corrupted image to 8 bits first, as the corruptions' rounding says.

    Args:
      image: float32[H, W, 3] in [0, 1].

    Returns:
      The image read back from the JPEG, same shape and dtype.
    """
    return _round_trip(image, STORAGE_QUALITY)


def _round_trip(image, quality, size=None):
    return color.from_levels(jpeg.round_trip(jnp.round(color.to_levels(image)), quality, size).astype(jnp.float32))


jpeg_compression = member(
    "jpeg_compression",
    "digital",
    _sample,
    _apply,
    (("quality", "JPEG quality 1..100"),),
    mixes="stores red, green and blue as luma and chroma",
    padding=padding("edge"),
    straight_through=_smooth,
)
