"""ImageNet-C jpeg_compression, and the JPEG storage of its published datasets."""

import jax.numpy as jnp

from corruptions import levels, registry
from corruptions.contract import Corruption, Levels, Parameter
from corruptions.imagenet_c import tables
from corruptions.primitives import color, jpeg

_QUALITY = {
    "cifar": (80, 65, 58, 50, 40),
    "tiny": (65, 58, 50, 40, 25),
    "imagenet": (25, 18, 15, 10, 7),
    "inception": (23, 16, 13, 8, 5),
}
STORAGE_QUALITY = 85


def _sample(key, shape, severity, *, table=None):
    """JPEG artefacts. Nothing is drawn."""
    del key
    return {"quality": levels.lookup(_QUALITY[tables.table_for(shape, table)], severity)}


def _apply(image, params):
    """The image, rounded to 8 bits, written as JPEG (4:2:0) of integer `quality` and read back; bit-exact with Pillow.

    Source: ImageNet-C, jpeg_compression.
    """
    quality = jnp.round(params["quality"]).astype(jnp.int32)
    return _round_trip(image, quality)


def store(image):
    """The image as the published ImageNet-C, Tiny-ImageNet-C and ImageNet-64x64-C files keep it: JPEG, quality 85.

    Apply it to a corrupted image, float32[H, W, 3] in [0, 1], truncated to 8 bits first (the corruption's own
    rounding), to reproduce datasets "as published".
    """
    return _round_trip(image, STORAGE_QUALITY)


def _round_trip(image, quality):
    return color.from_levels(jpeg.round_trip(jnp.round(color.to_levels(image)), quality).astype(jnp.float32))


jpeg_compression = registry.register(
    Corruption(
        name="jpeg_compression",
        benchmark="imagenet_c",
        family="digital",
        sampler=_sample,
        applier=_apply,
        scale=Levels(5),
        rounding="truncate",
        parameters=(Parameter("quality", "JPEG quality 1..100", "ImageNet-C, appendix B and released code"),),
    )
)
