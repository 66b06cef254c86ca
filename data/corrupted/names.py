"""Names and severities of published corrupted datasets, as their files have them and as this
project calls them.
"""

import math
from collections.abc import Iterable, Sequence

_OF_IMAGENET_C = (
    *("gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("snow", "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression"),
    *("speckle_noise", "gaussian_blur", "spatter", "saturate"),
)
# The members of ImageNet-C-bar and their five strengths, which name its folders as the authors'
# program writes them.
_IMAGENET_C_BAR = {
    "caustic_refraction": (2.35, 3.2, 4.9, 6.6, 9.15),
    "inverse_sparkles": (1, 2, 4, 9, 10),
    "sparkles": (1, 2, 3, 5, 6),
    "perlin_noise": (4.6, 5.2, 5.8, 7.6, 8.8),
    "blue_noise_sample": (0.8, 1.6, 2.4, 4, 5.6),
    "plasma_noise": (4.75, 7, 8.5, 9.25, 10),
    "checkerboard_cutout": (2, 3, 4, 5, 6),
    "concentric_sine_waves": (3, 5, 8, 9, 10),
    "single_frequency_greyscale": (1, 1.5, 2, 4.5, 5),
    "brownish_noise": (1, 2, 3, 4, 5),
}
# What CIFAR-10-C-bar has besides, then the candidates that are in neither.
_OF_CBAR = (
    *_IMAGENET_C_BAR,
    *("pinch_and_twirl", "ripple", "circular_motion_blur", "lines", "transverse_chromatic_aberration"),
    *("voronoi_noise", "caustic_noise", "scatter", "chromatic_aberration", "fish_eye", "water_drop", "bleach_bypass"),
    *("technicolor", "pseudocolor", "color_balance", "quadrilateral_no_bars", "perspective_no_bars", "blue_noise"),
    *("hue_shift", "color_dither"),
)
_OTHER_SPELLINGS = {
    "elastic": "elastic_transform", "frosted_glass_blur": "glass_blur",  # of tfds cifar10_corrupted
    "cocentric_sine_waves": "concentric_sine_waves", "chromatic_abberation": "chromatic_aberration",  # of C-bar
    "transverse_chromatic_abberation": "transverse_chromatic_aberration",
    "pinch_and_twirl_v2": "pinch_and_twirl", "fish_eye_v2": "fish_eye",
}  # fmt: skip
_QUALIFIED = {name: f"imagenet_c/{name}" for name in _OF_IMAGENET_C} | {name: f"cbar/{name}" for name in _OF_CBAR}
_RANK = {name: rank for rank, name in enumerate(_QUALIFIED.values())}


def qualified(name: str) -> str:
    """A published file's or folder's name as a corruption.

    `imagenet_c/...` for the 19 of ImageNet-C, `cbar/...` for the 30 of C-bar in either spelling,
    unchanged for others.
    """
    name = _OTHER_SPELLINGS.get(name, name)
    return _QUALIFIED.get(name, name)


def published_order(names: Iterable[str]) -> list[str]:
    """Names in the order of ImageNet-C, then of the C-bar benchmarks, others after them by the
    alphabet.
    """
    return sorted(names, key=lambda name: (_RANK.get(qualified(name), len(_RANK)), name))


def published_severities(name: str, folders: Sequence[str]) -> dict[str, int]:
    """Folder -> severity 1..5, where the folders are the strengths of a member of ImageNet-C-bar;
    {} otherwise.

    The authors' program prints strengths with two decimals (`2.35`); their redistributed archive
    has 1 to 5 already.
    """
    strengths = _IMAGENET_C_BAR.get(qualified(name).removeprefix("cbar/"))
    if strengths is None or len(folders) != len(strengths) or not all(folder[-3:-2] == "." for folder in folders):
        return {}
    ordered = sorted(folders, key=float)
    same = all(math.isclose(float(folder), strength) for folder, strength in zip(ordered, strengths))
    return {folder: severity for severity, folder in enumerate(ordered, 1)} if same else {}
