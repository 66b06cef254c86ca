"""ImageNet-C jpeg_compression, and the JPEG storage of its published datasets."""

import jax
import jax.numpy as jnp

from corruptions.core import checks, dispatch
from corruptions.core.corruption import Array, Image, Key, Params, Severity, Shape
from corruptions.imagenet_c.tables import lookup, padding, register
from corruptions.primitives import color, jpeg

_QUALITY = {
    "cifar": (80, 65, 58, 50, 40),
    "tiny": (65, 58, 50, 40, 25),
    "imagenet": (25, 18, 15, 10, 7),
    "inception": (23, 16, 13, 8, 5),
}
STORAGE_QUALITY = 85


def _sample(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Looks up the JPEG `quality`; draws nothing."""
    return {"quality": lookup(_QUALITY, shape, table, severity)}


def _smooth(image: Image, params: Params) -> Image:
    del params  # without rounding, transform and quantisation return the coefficients
    return jpeg.without_rounding(image)


@register(
    "digital",
    _sample,
    {"quality": "JPEG quality 1..100"},
    severity={"quality": "JPEG quality 1..100"},
    mixes="stores red, green and blue as luma and chroma",
    padding=padding("edge"),
    straight_through=_smooth,
)
def jpeg_compression(image: Image, params: Params) -> Image:
    """Writes the image, rounded to 8 bits, as JPEG (4:2:0) of integer `quality` and reads it back.

    Bit-exact with Pillow. Source: ImageNet-C, jpeg_compression.
    """
    quality = jnp.round(params["quality"]).astype(jnp.int32)
    return _round_trip(image, quality, params.get("own_size"))


def store(image: Array) -> jax.Array:
    """Stores a corrupted image as the published ImageNet-C files do: as JPEG of quality 85.

    Tiny-ImageNet-C and ImageNet-64x64-C do so too. To reproduce datasets "as published", truncate the corrupted image
    to 8 bits first, as the corruptions' rounding says.

    Args:
      image: float32[H, W, 3] in [0, 1].

    Returns:
      The image read back from the JPEG, same shape and dtype.

    Raises:
      ValueError, TypeError: an image of another shape or dtype.
    """
    image = dispatch.unmasked(image)
    checks.one_image(image)
    return _store(image)


def _round_trip(image, quality, size=None):
    return color.from_levels(jpeg.round_trip(jnp.round(color.to_levels(image)), quality, size).astype(jnp.float32))


_store = dispatch.program(lambda image: _round_trip(image, STORAGE_QUALITY))
