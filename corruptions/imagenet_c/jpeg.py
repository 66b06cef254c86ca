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


def _sample(key: Key, shape: Shape, severity: Severity, *, table: str | None = None, codec: str = jpeg.TURBO) -> Params:
    """Looks up the JPEG `quality`; draws nothing. A parameter `libjpeg9` asks for the codec of that name."""
    checks.one_of("codec", "a codec", codec, jpeg.CODECS)
    marked = {"libjpeg9": jnp.int32(1)} if codec == jpeg.LIBJPEG9 else {}
    return {"quality": lookup(_QUALITY, shape, table, severity)} | marked


def _codec(params: Params) -> str:
    return jpeg.LIBJPEG9 if "libjpeg9" in params else jpeg.TURBO


def _smooth(image: Image, params: Params) -> Image:
    # Without rounding, transform and quantisation return the coefficients.
    return jpeg.without_rounding(image, _codec(params))


@register(
    "digital",
    _sample,
    {"quality": "JPEG quality 1..100"},
    severity={"quality": "JPEG quality 1..100"},
    mixes="stores red, green and blue as luma and chroma",
    padding=padding("edge"),
    alone="quick",
    straight_through=_smooth,
)
def jpeg_compression(image: Image, params: Params) -> Image:
    """Writes the image, rounded to 8 bits, as JPEG (4:2:0) of integer `quality` and reads it back.

    Bit-exact with Pillow's wheels for Linux: 9.0 to 13.0, which hold libjpeg-turbo, by default; 4.3 to 8.4, which hold
    libjpeg 9, with the option `codec="libjpeg9"`. Source: ImageNet-C, jpeg_compression.
    """
    quality = jnp.round(params["quality"]).astype(jnp.int32)
    return _round_trip(image, quality, params.get("own_size"), _codec(params))


def store(image: Array, codec: str = jpeg.TURBO, decoder: str | None = None) -> jax.Array:
    """Stores a corrupted image as the published ImageNet-C files do: as JPEG of quality 85.

    Tiny-ImageNet-C and ImageNet-64x64-C do so too. To reproduce datasets "as published", truncate the corrupted image
    to 8 bits first, as the corruptions' rounding says.

    Args:
      image: float32[H, W, 3] in [0, 1].
      codec: the library that writes the JPEG, `libjpeg-turbo` or `libjpeg9`; see `jpeg_compression`.
      decoder: the one that reads it; None is the same.

    Returns:
      The image read back from the JPEG, same shape and dtype.

    Raises:
      ValueError, TypeError: an image of another shape or dtype, an unknown codec.
    """
    image = dispatch.unmasked(image)
    checks.one_image(image)
    decoder = codec if decoder is None else decoder
    for library in (codec, decoder):
        checks.one_of("codec", "a codec", library, jpeg.CODECS)
    return _store(image, codec=codec, decoder=decoder)


def _round_trip(image, quality, size=None, codec=jpeg.TURBO, decoder=None):
    levels = jpeg.round_trip(jnp.round(color.to_levels(image)), quality, size, codec, decoder)
    return color.from_levels(levels.astype(jnp.float32))


def _stored(image, codec, decoder):
    return _round_trip(image, STORAGE_QUALITY, None, codec, decoder)


_store = dispatch.program(_stored, "codec", "decoder")
