"""Benchmarks that corruption error is defined for, and the errors of AlexNet that it is normalised
by.

Errors are paired with corruption names, never with a position in a list.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Reference(NamedTuple):
    """Errors of a reference network.

    Attributes:
      name: network and benchmark, for labels (no white space).
      errors: corruption name -> top-1 error at each severity, a tuple as long as `severities`.
      clean: top-1 error on clean images.
      severities: the severities that the errors belong to.
    """

    name: str
    errors: Mapping[str, tuple[float, ...]]
    clean: float
    severities: tuple[int | float | str, ...]


LEVELS = (1, 2, 3, 4, 5)
IMAGENET_C = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur",
    "zoom_blur", "snow", "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate",
    "jpeg_compression",
)  # fmt: skip
IMAGENET_C_EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
IMAGENET_NOC = (
    "quantization", "blur", "vertical_artifacts", "rain", "border", "shear", "brightness", "hue",
)  # fmt: skip

# torchvision AlexNet on ImageNet-C, severities 1..5: README of github.com/hendrycks/robustness
# (October 2019 to spring 2020). Clean error: 1 - .56522.
ALEXNET_IMAGENET_C = Reference(
    "AlexNet:ImageNet-C",
    MappingProxyType({
        "gaussian_noise": (0.69528, 0.82542, 0.93554, 0.98138, 0.99452),
        "shot_noise": (0.71224, 0.85108, 0.93574, 0.98182, 0.99146),
        "impulse_noise": (0.78374, 0.89808, 0.94870, 0.98720, 0.99548),
        "defocus_blur": (0.65624, 0.73202, 0.85036, 0.91364, 0.94714),
        "glass_blur": (0.64308, 0.75054, 0.88806, 0.91622, 0.93344),
        "motion_blur": (0.58430, 0.70048, 0.82108, 0.89750, 0.92638),
        "zoom_blur": (0.70008, 0.76992, 0.80784, 0.84198, 0.87198),
        "snow": (0.71726, 0.88392, 0.86468, 0.91870, 0.94952),
        "frost": (0.61390, 0.79734, 0.88790, 0.89942, 0.93430),
        "fog": (0.67474, 0.76050, 0.84378, 0.87260, 0.94500),
        "brightness": (0.45140, 0.48502, 0.54048, 0.62166, 0.72440),
        "contrast": (0.64548, 0.76150, 0.88874, 0.97760, 0.99270),
        "elastic_transform": (0.52596, 0.70116, 0.55686, 0.64076, 0.80554),
        "pixelate": (0.52218, 0.54620, 0.73728, 0.87092, 0.91262),
        "jpeg_compression": (0.51002, 0.54718, 0.57294, 0.65458, 0.74778),
        "speckle_noise": (0.66192, 0.74440, 0.90246, 0.94548, 0.97268),
        "gaussian_blur": (0.54732, 0.70444, 0.82574, 0.89864, 0.95940),
        "spatter": (0.47196, 0.62194, 0.75052, 0.84132, 0.90182),
        "saturate": (0.59342, 0.65514, 0.51174, 0.70834, 0.82260),
    }),
    0.4348,
    LEVELS,
)  # fmt: skip

# AlexNet on the 24 candidates of ImageNet-NOC at 224x224, severity drawn per image, with the clean
# error they were published with: github.com/bds-ailab/common_corruption_benchmark, settings.py.
# They belong to that repository's severity ranges; recalibrated ranges need new reference errors.
ALEXNET_NOC = Reference(
    "AlexNet:ImageNet-NOC",
    MappingProxyType({
        "quantization": (0.592,), "gaussian": (0.620,), "salt_pepper": (0.649,), "blur": (0.570,),
        "thumbnail_resize": (0.574,), "pixelate": (0.760,), "artifacts": (0.746,),
        "vertical_artifacts": (0.758,), "rhombus": (0.728,), "rain": (0.748,), "circle": (0.720,),
        "obstruction": (0.597,), "border": (0.670,), "translation": (0.603,), "shear": (0.657,),
        "elastic": (0.541,), "rotation": (0.711,), "backlight": (0.591,), "brightness": (0.577,),
        "contrast": (0.576,), "color_distortion": (0.606,), "gray_scale": (0.580,),
        "hue": (0.684,), "arlequin": (0.747,),
    }),
    0.435,
    ("random",),
)  # fmt: skip

BENCHMARKS = {
    "imagenet_c": IMAGENET_C,
    "imagenet_c_extra": IMAGENET_C_EXTRA,
    "imagenet_noc": IMAGENET_NOC,
}
_REFERENCES = {
    "imagenet_c": ALEXNET_IMAGENET_C,
    "imagenet_c_extra": ALEXNET_IMAGENET_C,
    "imagenet_noc": ALEXNET_NOC,
}
PREFIX = {"imagenet_c": "imagenet_c/", "imagenet_c_extra": "imagenet_c/", "imagenet_noc": "noc/"}


def benchmark_members(benchmark: str) -> tuple[str, ...]:
    """Lists the plain names of a benchmark's corruptions, in published order; refuses unknown
    benchmarks.
    """
    if benchmark not in BENCHMARKS:
        raise ValueError(f"expected a benchmark of {sorted(BENCHMARKS)}, found {benchmark!r}")
    return BENCHMARKS[benchmark]


def qualified_members(benchmark: str) -> tuple[str, ...]:
    """Lists the qualified names of a benchmark's corruptions, in published order."""
    return tuple(PREFIX[benchmark] + name for name in benchmark_members(benchmark))


def default_reference(benchmark: str) -> Reference:
    """Gives AlexNet's published errors for a benchmark."""
    benchmark_members(benchmark)
    return _REFERENCES[benchmark]
