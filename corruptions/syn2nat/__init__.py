"""The 18 corruptions of ImageNet-Syn2Nat; importing this module registers them.

    import corruptions.syn2nat
    corruptions.corrupt(key, images, "syn2nat/solarize")
    python eval.py ... --imports=corruptions.syn2nat --config.eval.corruptions="('imagenet_syn2nat',)"

A. Laugros, A. Caplier, M. Ospici, "Using Synthetic Corruptions to Measure Robustness to Natural Distribution Shifts"
(2021), where each is a transform of albumentations 0.5.2 with parameters drawn for each image: one severity.
They compute the transforms' formulas in float, without roundings to 8 bits in between; lengths in pixels are for
224x224 images and scale with the side. Names are not in `corruptions.names()` before this import: nobody has compared
the images with the original pixel by pixel, and the released code evaluated clean images in their place.
"""

from corruptions.core.registry import register_benchmark
from corruptions.syn2nat.geometry import affines, cutout, downscale, perspective
from corruptions.syn2nat.values import (
    channel_dropout,
    color_jitter,
    emboss,
    iso_noise,
    posterize,
    random_brightness,
    random_contrast,
    random_gamma,
    sharpen,
    solarize,
    to_sepia,
)
from corruptions.syn2nat.weather import random_rain, random_shadow, random_sun_flare

# Three of each of six categories, in the order of the release, which does not name the categories.
_MEMBERS = (
    *(solarize, random_sun_flare, random_shadow),
    *(affines, perspective, cutout),
    *(sharpen, random_rain, emboss),
    *(random_contrast, random_brightness, random_gamma),
    *(iso_noise, downscale, posterize),
    *(color_jitter, channel_dropout, to_sepia),
)

register_benchmark("imagenet_syn2nat", [c.qualified_name for c in _MEMBERS])

__all__ = [
    "affines", "channel_dropout", "color_jitter", "cutout", "downscale", "emboss", "iso_noise", "perspective",
    "posterize", "random_brightness", "random_contrast", "random_gamma", "random_rain", "random_shadow",
    "random_sun_flare", "sharpen", "solarize", "to_sepia",
]  # fmt: skip
