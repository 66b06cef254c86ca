"""Candidates that `tests.reference.cbar.definitions` has, and how closely they agree with it."""

import jax
import numpy as np

from tests.corruptions.cbar.running import compiled
from tests.reference.cbar import definitions

NAMES = (
    "single_frequency_greyscale",
    "concentric_sine_waves",
    "plasma_noise",
    "voronoi_noise",
    "caustic_noise",
    "sparkles",
    "inverse_sparkles",
    "perlin_noise",
    "blue_noise",
    "brownish_noise",
    "checkerboard_cutout",
    "lines",
    "blue_noise_sample",
    "bleach_bypass",
    "technicolor",
    "pseudocolor",
    "hue_shift",
    "color_balance",
    "color_dither",
)


def assert_agrees(name, image, seed, level, **options):
    params, found = compiled(name, image.shape, **options)(jax.random.key(seed), image, level)
    params = {k: np.float64(v) if v.dtype == np.float32 else np.asarray(v) for k, v in params.items()}
    expected = getattr(definitions, name)(image, params)
    difference = np.abs(np.asarray(found).astype(int) - expected)
    assert found.shape == image.shape
    assert (difference > 1).mean() <= 1e-3, f"level {level}: {(difference > 1).mean():.2%} differ by more than a level"
    # Turned hues of 8-bit colours are often whole levels, and rounding decides on which side
    # truncation falls.
    ties = 0.2 if name == "hue_shift" else 0.02
    assert (difference > 0).mean() <= ties, f"level {level}: {(difference > 0).mean():.2%} differ"
