"""ImageNet-NOC candidate corruptions (Laugros et al.)."""

from corruptions.noc.color import color_distortion, gray_scale, hue, quantization
from corruptions.noc.occlusion import border, obstruction
from corruptions.noc.severity import UNITS, ranges

__all__ = [
    "UNITS",
    "border",
    "color_distortion",
    "gray_scale",
    "hue",
    "obstruction",
    "quantization",
    "ranges",
]
