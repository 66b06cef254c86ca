"""The library's own packages of corruptions, which are imported when a name of theirs is looked up."""

import importlib

PACKAGES = {
    "imagenet_c": ("imagenet_c", "imagenet_c_extra"),
    "camera": ("camera", "robodepth", "robodepth_nyu", "robobev", "libero_plus_noise"),
    "cbar": ("cbar", "cbar_candidates", "imagenet_c_bar", "cifar10_c_bar"),
    "laion_c": ("laion_c",),
    "noc": ("noc", "noc_candidates", "imagenet_noc"),
    "optics": ("optics", "optics_release"),
    "noc.coverage": ("coverage_2026",),
}
"""Module: the prefixes and benchmarks that it registers. Lists of all names have this order."""
_PACKAGE_OF = {name: package for package, names in PACKAGES.items() for name in names}
_RANK = {name: rank for rank, name in enumerate(_PACKAGE_OF)}
# Names that other packages have for one of ImageNet-C's 19: tfds elastic and frosted_glass_blur, imgaug
# elastic_transformation and additive_gaussian_noise, torchvision and Kornia jpeg, Kornia saturation, the rest Albumentations.
OF_OTHERS = {
    "additive_gaussian_noise": "imagenet_c/gaussian_noise",
    "defocus": "imagenet_c/defocus_blur",
    "elastic": "imagenet_c/elastic_transform",
    "elastic_transformation": "imagenet_c/elastic_transform",
    "frosted_glass_blur": "imagenet_c/glass_blur",
    "gauss_noise": "imagenet_c/gaussian_noise",
    "image_compression": "imagenet_c/jpeg_compression",
    "jpeg": "imagenet_c/jpeg_compression",
    "saturation": "imagenet_c/saturate",
}


def load(name: str) -> None:
    """Imports the package that registers a prefix or benchmark, if it is one of the library's."""
    if package := _PACKAGE_OF.get(name):
        importlib.import_module(f"corruptions.{package}")


def load_all() -> None:
    """Imports all packages of corruptions."""
    for package in PACKAGES:
        importlib.import_module(f"corruptions.{package}")


def rank(name: str) -> int:
    """Returns the place of a prefix or benchmark in lists; names of the user's own come last."""
    return _RANK.get(name, len(_RANK))
