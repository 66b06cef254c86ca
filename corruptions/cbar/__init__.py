"""Candidate corruptions of ImageNet-C-bar and CIFAR-10-C-bar (Mintun, Kirillov & Xie, 2021), levels 1 to 10 each."""

from corruptions.cbar.color import bleach_bypass, color_balance, hue_shift, pseudocolor, technicolor
from corruptions.cbar.dither import color_dither
from corruptions.cbar.noise import blue_noise, brownish_noise, perlin_noise, voronoi_noise
from corruptions.cbar.occlusion import blue_noise_sample, checkerboard_cutout, lines
from corruptions.cbar.severity import BENCHMARK_TABLE, RANGES, SELECTED
from corruptions.cbar.sparkles import inverse_sparkles, sparkles
from corruptions.cbar.waves import caustic_noise, concentric_sine_waves, plasma_noise, single_frequency_greyscale

__all__ = [
    "BENCHMARK_TABLE",
    "RANGES",
    "SELECTED",
    "bleach_bypass",
    "blue_noise",
    "blue_noise_sample",
    "brownish_noise",
    "caustic_noise",
    "checkerboard_cutout",
    "color_balance",
    "color_dither",
    "concentric_sine_waves",
    "hue_shift",
    "inverse_sparkles",
    "lines",
    "perlin_noise",
    "plasma_noise",
    "pseudocolor",
    "single_frequency_greyscale",
    "sparkles",
    "technicolor",
    "voronoi_noise",
]
