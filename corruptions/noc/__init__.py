"""The 23 candidate corruptions of ImageNet-NOC, arlequin, and the 8 that were selected.

A. Laugros, A. Caplier, M. Ospici, "Increasing the Coverage and Balance of Robustness Benchmarks by Using
Non-Overlapping Corruptions" (2021). Severity is a fraction in [0, 1] of a range; see `ranges` and the option `range`.
"""

from corruptions.core.registry import register_benchmark
from corruptions.noc.blur import blur, pixelate, thumbnail_resize
from corruptions.noc.color import (
    backlight,
    brightness,
    color_distortion,
    contrast,
    gaussian,
    gray_scale,
    hue,
    quantization,
    salt_pepper,
)
from corruptions.noc.geometry import elastic, rotation, shear, translation
from corruptions.noc.occlusion import (
    arlequin,
    artifacts,
    border,
    circle,
    obstruction,
    rain,
    rhombus,
    vertical_artifacts,
)
from corruptions.noc.severities import UNITS, ranges

_CANDIDATES = (
    *(quantization, gaussian, salt_pepper),
    *(blur, thumbnail_resize, pixelate),
    *(artifacts, vertical_artifacts, rhombus, rain, circle, obstruction, border),
    *(translation, shear, elastic, rotation),
    *(backlight, brightness, contrast),
    *(color_distortion, gray_scale, hue),
)
_SELECTED = (quantization, blur, vertical_artifacts, rain, border, shear, brightness, hue)

register_benchmark("noc_candidates", [c.qualified_name for c in _CANDIDATES])
register_benchmark("imagenet_noc", [c.qualified_name for c in _SELECTED])

__all__ = [
    "UNITS", "arlequin", "artifacts", "backlight", "blur", "border", "brightness", "circle", "color_distortion",
    "contrast", "elastic", "gaussian", "gray_scale", "hue", "obstruction", "pixelate", "quantization", "rain",
    "ranges", "rhombus", "rotation", "salt_pepper", "shear", "thumbnail_resize", "translation", "vertical_artifacts",
]  # fmt: skip
