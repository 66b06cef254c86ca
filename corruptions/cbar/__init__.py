"""The 30 candidate corruptions of C-bar, levels 1 to 10 each, and the ten each of ImageNet-C-bar and CIFAR-10-C-bar.

E. Mintun, A. Kirillov, S. Xie, "On Interaction Between Augmentations and Corruptions in Natural Corruption
Robustness" (2021). Severities 1 to 5 of the two benchmarks are levels of their members, `SELECTED`. The strength of a
level depends on the image size, `RANGES`: every candidate has the option `table`, `cifar` (32 pixels) or `imagenet`
(224 pixels), by default the nearest in size.
"""

from corruptions.cbar.blur import chromatic_aberration, circular_motion_blur, transverse_chromatic_aberration
from corruptions.cbar.color import bleach_bypass, color_balance, color_dither, hue_shift, pseudocolor, technicolor
from corruptions.cbar.displacement import (
    caustic_refraction,
    perspective_no_bars,
    quadrilateral_no_bars,
    ripple,
    scatter,
)
from corruptions.cbar.lenses import fish_eye, pinch_and_twirl, water_drop
from corruptions.cbar.noise import blue_noise, brownish_noise, perlin_noise, voronoi_noise
from corruptions.cbar.occlusion import blue_noise_sample, checkerboard_cutout, lines
from corruptions.cbar.severities import BENCHMARK_TABLE, RANGES, SELECTED, TABLES, table_for
from corruptions.cbar.waves import (
    caustic_noise,
    concentric_sine_waves,
    inverse_sparkles,
    plasma_noise,
    single_frequency_greyscale,
    sparkles,
)
from corruptions.core.registry import register_benchmark

register_benchmark("cbar_candidates", [f"cbar/{name}" for name in RANGES["cifar"]])
for _benchmark, _selected in SELECTED.items():
    _levels = {f"cbar/{name}": steps for name, steps in _selected.items()}
    register_benchmark(_benchmark, list(_levels), levels=_levels)

__all__ = [
    "BENCHMARK_TABLE", "RANGES", "SELECTED", "TABLES", "bleach_bypass", "blue_noise", "blue_noise_sample",
    "brownish_noise", "caustic_noise", "caustic_refraction", "checkerboard_cutout", "chromatic_aberration",
    "circular_motion_blur", "color_balance", "color_dither", "concentric_sine_waves", "fish_eye", "hue_shift",
    "inverse_sparkles", "lines", "perlin_noise", "perspective_no_bars", "pinch_and_twirl", "plasma_noise",
    "pseudocolor", "quadrilateral_no_bars", "ripple", "scatter", "single_frequency_greyscale", "sparkles",
    "table_for", "technicolor", "transverse_chromatic_aberration", "voronoi_noise", "water_drop",
]  # fmt: skip
