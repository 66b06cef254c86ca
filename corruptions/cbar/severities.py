"""The common parts of the C-bar candidates: levels, scanned ranges, the two benchmarks' steps, grey levels.

E. Mintun, A. Kirillov, S. Xie, "On Interaction Between Augmentations and Corruptions in Natural Corruption
Robustness" (2021), supplement D and the released lists. A candidate has a real strength s, scanned in ten steps of a
range that depends on the image size: level k means s_k = lo + (hi - lo) k / 10. The ranges were chosen by hand so
that images stay readable.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core import registry, severity_tables
from corruptions.core.severity import Levels, lookup
from corruptions.primitives import color, padded

# The sides of the images that the ranges were chosen for: sides up to 84 use `cifar`, larger ones `imagenet`.
_TABLES = severity_tables.Tables({"cifar": 32, "imagenet": 224})
TABLES = tuple(_TABLES.sides)
table_for = _TABLES.name_for
STEPS = 10

# name: (range at 32 pixels, range at 224 pixels)
_RANGES = {
    "single_frequency_greyscale": ((0, 3), (0, 5)),
    "concentric_sine_waves": ((0, 5), (0, 10)),
    "plasma_noise": ((0, 7), (2.5, 10)),
    "voronoi_noise": ((1, 5), (2.5, 10)),
    "caustic_noise": ((2, 7), (2.5, 10)),
    "sparkles": ((0, 7), (0, 10)),
    "inverse_sparkles": ((0, 5), (0, 10)),
    "checkerboard_cutout": ((0, 10), (0, 10)),
    "lines": ((0, 5), (0, 8)),
    "scatter": ((1, 5), (0, 5)),
    "chromatic_aberration": ((0, 7), (0, 10)),
    "transverse_chromatic_aberration": ((0, 10), (0, 10)),
    "caustic_refraction": ((1, 5), (1.5, 10)),
    "pinch_and_twirl": ((5, 10), (3.5, 10)),
    "fish_eye": ((0, 1), (0, 4)),
    "water_drop": ((2, 10), (5, 10)),
    "ripple": ((5, 10), (2.5, 10)),
    "bleach_bypass": ((0, 10), (0, 10)),
    "technicolor": ((0, 10), (0, 10)),
    "pseudocolor": ((0, 7), (1, 10)),
    "color_balance": ((0, 10), (0, 10)),
    "quadrilateral_no_bars": ((0, 10), (0, 10)),
    "perspective_no_bars": ((0, 10), (0, 10)),
    "perlin_noise": ((4, 10), (4, 10)),
    "blue_noise_sample": ((0, 7), (0, 8)),
    "blue_noise": ((0, 2), (0, 7)),
    "hue_shift": ((0, 10), (0, 10)),
    "circular_motion_blur": ((2, 10), (1.5, 10)),
    "color_dither": ((0, 10), (2, 12)),
    "brownish_noise": ((2, 7), (0, 10)),
}

RANGES = {table: {name: ranges[i] for name, ranges in _RANGES.items()} for i, table in enumerate(TABLES)}

# The steps k of a benchmark's severities 1..5, members in published order.
SELECTED = {
    "imagenet_c_bar": {
        "caustic_refraction": (1, 2, 4, 6, 9),
        "inverse_sparkles": (1, 2, 4, 9, 10),
        "sparkles": (1, 2, 3, 5, 6),
        "perlin_noise": (1, 2, 3, 6, 8),
        "blue_noise_sample": (1, 2, 3, 5, 7),
        "plasma_noise": (3, 6, 8, 9, 10),
        "checkerboard_cutout": (2, 3, 4, 5, 6),
        "concentric_sine_waves": (3, 5, 8, 9, 10),
        "single_frequency_greyscale": (2, 3, 4, 9, 10),
        "brownish_noise": (1, 2, 3, 4, 5),
    },
    "cifar10_c_bar": {
        "blue_noise_sample": (1, 2, 3, 5, 6),
        "checkerboard_cutout": (1, 2, 3, 4, 5),
        "inverse_sparkles": (2, 3, 5, 9, 10),
        "pinch_and_twirl": (1, 2, 3, 7, 10),
        "ripple": (1, 2, 3, 5, 6),
        "brownish_noise": (1, 4, 7, 9, 10),
        "circular_motion_blur": (1, 2, 3, 4, 5),
        "lines": (1, 2, 3, 4, 5),
        "sparkles": (1, 5, 8, 9, 10),
        "transverse_chromatic_aberration": (1, 2, 5, 9, 10),
    },
}
BENCHMARK_TABLE = {"imagenet_c_bar": "imagenet", "cifar10_c_bar": "cifar"}


def scan(name: str, table: str) -> np.ndarray:
    """Returns the ten strengths s_1..s_10 of a candidate, float64 [10]."""
    low, high = RANGES[table][name]
    return low + (high - low) * np.arange(1, STEPS + 1) / STEPS


def scanned(name: str, level: jax.Array, shape: tuple[int, ...], table: str | None = None) -> jax.Array:
    """Looks up the strength s of a candidate at a level 1..10 (float32 scalar, may be traced), linear between whole
    levels.
    """
    return lookup(scan(name, table_for(shape, table)), level)


def greatest(name: str, shape: tuple[int, ...], table: str | None = None) -> float:
    """Returns the largest strength a candidate takes, for static bounds."""
    return RANGES[table_for(shape, table)][name][1]


register = registry.registrar(
    "cbar",
    Levels(STEPS),
    "truncate",
    "Mintun, Kirillov & Xie (2021), released code",
    by_size=lambda name, shape, options: {"table": table_for(shape, options.get("table"))},
    severity_of=lambda name: {"s": "the strength s of its formula, `RANGES`"},
)


def to_image(levels: jax.Array) -> jax.Array:
    """Clips grey levels to 0..255 and scales them to [0, 1]."""
    return color.from_levels(color.clip(levels, 0, 255))


def add_grey(image: jax.Array, plane: jax.Array) -> jax.Array:
    """Adds a plane of grey levels, float32 [H, W], to every channel of an image in [0, 1]."""
    return to_image(color.to_levels(image) + plane[..., None])


def side(shape: tuple[int, ...]) -> Any:
    """Returns N = min(H, W), the unit of lengths; traced for a `padded.Shape`."""
    if isinstance(shape, padded.Shape):
        return jnp.minimum(*shape.own[:2]).astype(jnp.float32)
    return min(shape[:2])


def padding(mode: Literal["reflect", "edge"] = "reflect") -> padded.Padding:
    """Makes the `Padding` of a candidate: a program for each of the two tables."""
    return padded.Padding(lambda shape, table, side: (table_for(shape, table), np.int32(0)), mode)
