"""ImageNet-C: 15 benchmark corruptions and 4 extra ones, five severities each.

D. Hendrycks, T. Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations", ICLR
2019, and its released code.
"""

from corruptions.core.registry import register_benchmark
from corruptions.imagenet_c.blur import defocus_blur, gaussian_blur, zoom_blur
from corruptions.imagenet_c.color import brightness, contrast, saturate
from corruptions.imagenet_c.elastic import elastic_transform
from corruptions.imagenet_c.fog import fog
from corruptions.imagenet_c.frost import ORIGINAL_PHOTOGRAPHS, frost, use_photographs, used_photographs
from corruptions.imagenet_c.glass import glass_blur
from corruptions.imagenet_c.jpeg import jpeg_compression, store
from corruptions.imagenet_c.motion import motion_blur
from corruptions.imagenet_c.noise import gaussian_noise, impulse_noise, shot_noise, speckle_noise
from corruptions.imagenet_c.pixelate import pixelate
from corruptions.imagenet_c.snow import snow
from corruptions.imagenet_c.spatter import spatter
from corruptions.imagenet_c.tables import TABLES, table_for

_BENCHMARK = (
    *(gaussian_noise, shot_noise, impulse_noise),
    *(defocus_blur, glass_blur, motion_blur, zoom_blur),
    *(snow, frost, fog, brightness),
    *(contrast, elastic_transform, pixelate, jpeg_compression),
)
_EXTRA = (speckle_noise, gaussian_blur, spatter, saturate)

register_benchmark("imagenet_c", [corruption.qualified_name for corruption in _BENCHMARK])
register_benchmark("imagenet_c_extra", [corruption.qualified_name for corruption in _EXTRA])

__all__ = [
    "ORIGINAL_PHOTOGRAPHS", "TABLES", "brightness", "contrast", "defocus_blur", "elastic_transform", "fog", "frost",
    "gaussian_blur", "gaussian_noise", "glass_blur", "impulse_noise", "jpeg_compression",
    "motion_blur", "pixelate", "saturate", "shot_noise", "snow", "spatter", "speckle_noise", "store", "table_for",
    "use_photographs", "used_photographs", "zoom_blur",
]  # fmt: skip
