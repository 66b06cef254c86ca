"""C-bar candidates compiled for tests, and how closely each agrees with its reference."""

import functools

import jax
import numpy as np

from corruptions import cbar
from corruptions.batch import from_float, to_float
from tests.reference.cbar import blur_definitions, definitions, warp_definitions

BLURS = ("chromatic_aberration", "transverse_chromatic_aberration", "circular_motion_blur")
WARPS = (
    *("caustic_refraction", "pinch_and_twirl", "fish_eye", "water_drop"),
    *("ripple", "scatter", "perspective_no_bars", "quadrilateral_no_bars"),
)
NAMES = tuple(name for name in cbar.RANGES["cifar"] if name not in BLURS + WARPS)
# Largest share of values that differ, where rounding decides on which side truncation falls: turned hues of 8-bit
# colours are often whole levels; where a channel stays in place, a spline's weights are 36ths, and one value in 36 is
# halfway between levels.
TIES = dict.fromkeys(NAMES, 0.02) | dict.fromkeys(WARPS, 5e-3) | dict.fromkeys(BLURS, 2e-3)
TIES |= {"hue_shift": 0.2, "transverse_chromatic_aberration": 0.01}


@functools.cache
def compiled(name, shape, **options):
    """(key, uint8 image, level) -> (params, corrupted uint8 image), one compile for all levels."""
    corruption = getattr(cbar, name)

    @jax.jit
    def run(key, image, level):
        params = corruption.sample(key, shape, level, **options)
        return params, from_float(corruption.apply(to_float(image), params), np.uint8, "truncate")

    return run


def assert_agrees(name, image, seed, level, **options):
    params, found = compiled(name, image.shape, **options)(jax.random.key(seed), image, level)
    params = {
        k: np.asarray(v, np.float64 if v.dtype == np.float32 or name in WARPS + BLURS else None)
        for k, v in params.items()
    }
    module = blur_definitions if name in BLURS else warp_definitions if name in WARPS else definitions
    difference = np.abs(np.asarray(found).astype(int) - getattr(module, name)(image, params))
    assert found.shape == image.shape
    share = (difference > 1).mean()
    assert share <= (0 if name in BLURS else 1e-3), f"level {level}: {share:.2%} differ by more than a level"
    assert (difference > 0).mean() <= TIES[name], f"level {level}: {(difference > 0).mean():.2%} differ"
