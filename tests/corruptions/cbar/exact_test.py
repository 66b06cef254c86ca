"""C-bar candidates, given their draws, equal an independent NumPy reference in float64. What they give at no
strength and of grey images, and what splines give, is known by hand.
"""

import functools

import jax
import numpy as np
import pytest
import scipy.ndimage
import scipy.stats

from corruptions import cbar
from corruptions.primitives import spline
from corruptions.primitives.special import arctangent2, sine_cosine
from tests.corruptions.comparing import compiled
from tests.reference.cbar import blur_definitions, definitions, warp_definitions
from tests.reference.photographs import photograph

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


def assert_agrees(name, image, seed, level, **options):
    params, found = compiled(f"cbar/{name}", image.shape, **options)(jax.random.key(seed), image, level)
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


WRAPPED = ("bleach_bypass", "technicolor", "pseudocolor")
PIXELWISE = (*WRAPPED, "hue_shift", "color_balance")
CASES = [(name, (32, 32, 3) if name in PIXELWISE else (38, 24, 3)) for name in NAMES + WARPS]
CASES += [(name, shape) for name in BLURS for shape in ((38, 25, 3), (17, 40, 3))]
AT_224 = [(name, (7,)) for name in NAMES if name not in PIXELWISE]
AT_224 += [(name, (2, 9)) for name in WARPS] + [(name, (1, 9)) for name in BLURS]


@pytest.mark.parametrize(("name", "shape"), CASES, ids=[f"{n}-{s[0]}x{s[1]}" for n, s in CASES])
def test_equals_the_reference(name, shape):
    for level in (1, 2, 5, 8, 10):
        assert_agrees(name, photograph(*shape[:2], seed=level), level, level)


@pytest.mark.parametrize(("name", "levels"), AT_224, ids=[name for name, _ in AT_224])
def test_equals_the_reference_at_224(name, levels):
    for level in levels:
        one = name in NAMES
        assert_agrees(name, photograph(224, 224, seed=0 if one or name in BLURS else level), 1 if one else level, level)


@pytest.mark.parametrize("name", [*BLURS, "color_dither"])
def test_equals_the_reference_on_noise(name):
    """Values jump from pixel to pixel, up to both ends: splines and carried errors overshoot, and every tap counts."""
    noise = np.random.default_rng(3).integers(0, 2 if name in BLURS else 256, (38, 25, 3), np.uint8)
    noise = noise * np.uint8(255) if name in BLURS else noise
    for level in (1, 6):
        assert_agrees(name, noise, 5, level)


VARIANTS = [(name, (17, 33), {}) for name in ("voronoi_noise", "perlin_noise", "checkerboard_cutout", "lines")]
VARIANTS += [(name, (17, 33), {"table": "imagenet"}) for name in ("pinch_and_twirl", "fish_eye", "scatter")]
VARIANTS += [(name, (32, 32), {"wrap": False}) for name in WRAPPED]


@pytest.mark.parametrize(("name", "shape", "options"), VARIANTS)
def test_odd_sides_the_other_table_and_without_overflow(name, shape, options):
    for level in (3, 10):
        assert_agrees(name, photograph(*shape, seed=5), level, level, **options)


def test_sine_cosine():
    x = np.concatenate([np.linspace(-20000, 20000, 100001), np.linspace(-7, 7, 10001)]).astype(np.float32)
    sine, cosine = jax.jit(sine_cosine)(x)
    assert np.abs(sine - np.sin(x.astype(np.float64))).max() < 2e-7
    assert np.abs(cosine - np.cos(x.astype(np.float64))).max() < 2e-7


def test_arctangent2():
    rng = np.random.default_rng(0)
    y, x = rng.normal(size=(2, 100_000)) * 10 ** rng.uniform(-3, 3, (2, 100_000))
    sides = np.array([[0, 0, 1, -1, 1, -1, 1, -1, 0], [1, -1, 0, 0, 1, 1, -1, -1, 0]], np.float64)  # the last: no angle
    y, x = np.concatenate([[y, x], sides], axis=1).astype(np.float32)
    found = np.asarray(jax.jit(arctangent2)(y, x))
    assert np.abs(found - np.arctan2(y.astype(np.float64), x)).max() < 5e-7


# Supplement D: sides of the two enlargements at levels 1 to 10.
SIZES = {
    32: "33,34 34,35 34,37 35,38 36,40 37,42 38,43 38,45 39,46 40,48",
    224: "230,235 235,246 241,258 246,269 252,280 258,291 263,302 269,314 274,325 280,336",
}


@pytest.mark.parametrize("side", SIZES)
def test_published_sizes(side):
    sample = jax.jit(functools.partial(cbar.transverse_chromatic_aberration.sample, shape=(side, side, 3)))
    for level, expected in enumerate(SIZES[side].split(), 1):
        sizes = np.asarray(sample(jax.random.key(level), severity=level)["sizes"])
        assert np.array_equal(sizes[:, 0], sizes[:, 1])
        assert sorted(map(int, sizes[:, 0])) == [side, *map(int, expected.split(","))]


def test_every_channel_takes_every_size():
    sample = functools.partial(cbar.transverse_chromatic_aberration.sample, shape=(32, 32, 3), severity=10)
    sizes = np.asarray(jax.vmap(lambda key: sample(key)["sizes"])(jax.random.split(jax.random.key(0), 600)))[..., 0]
    orders, counts = np.unique(sizes, axis=0, return_counts=True)
    assert len(orders) == 6 and scipy.stats.chisquare(counts).pvalue > 1e-3


def test_published_angles():
    angles = [float(cbar.circular_motion_blur.sample(jax.random.key(0), (32, 32, 3), k)["angle"]) for k in (1, 2, 10)]
    assert np.allclose(angles, (4.2, 5.4, 15))


def test_shifts_point_anywhere():
    sample = functools.partial(cbar.chromatic_aberration.sample, shape=(40, 32, 3), severity=10)
    shifts = np.asarray(jax.vmap(lambda key: sample(key)["shifts"])(jax.random.split(jax.random.key(1), 500)))
    assert np.allclose(np.hypot(shifts[..., 0], shifts[..., 1]), 0.07 * 32, rtol=1e-5)
    turns = np.arctan2(shifts[..., 1], shifts[..., 0]) / (2 * np.pi) % 1
    for channel in turns.T:
        assert scipy.stats.kstest(channel, "uniform").pvalue > 1e-3


def test_lines_take_random_parameters_of_numpy_in_a_jit_of_ones_own():
    image = np.full((17, 33, 3), 0.3, np.float32)
    params = jax.tree.map(np.asarray, cbar.lines.sample(jax.random.key(0), image.shape, 5))
    for gradient in (None, "straight_through"):
        apply = functools.partial(cbar.lines.apply, params=params, gradient=gradient)
        np.testing.assert_allclose(jax.jit(lambda x, apply=apply: apply(x))(image), apply(image), atol=1e-6)


def test_splines():
    rng = np.random.default_rng(0)
    samples = rng.uniform(size=19)
    image = rng.uniform(size=(19, 16, 2)).astype(np.float32)
    expected = np.stack([scipy.ndimage.spline_filter(channel, 3, mode="mirror") for channel in image.T], -1)
    assert np.allclose(spline.coefficients(image), expected.swapaxes(0, 1), atol=2e-6)
    grey = np.full((19, 16, 2), np.float32(0.7))
    assert np.array_equal(spline.coefficients(grey), grey)  # to the last bit
    positions = np.float32([0, 0.3, 1, 7.25, 17.9, 18, -0.01, 18.01])
    found = spline.sampling_matrix(19, positions) @ samples.astype(np.float32)
    expected = scipy.ndimage.map_coordinates(samples, [positions], order=3, mode="constant", prefilter=False)
    assert np.allclose(found, expected, atol=1e-6) and found[-1] == found[-2] == 0


@pytest.mark.parametrize("name", ["perspective_no_bars", "quadrilateral_no_bars"])
def test_no_bars(name):
    """Grey stays grey to the bit; every pixel shows the image, its own where the view is outside."""
    grey = np.full((32, 32, 3), 77, np.uint8)
    for level in (1, 10):
        assert np.all(compiled(name, grey.shape)(jax.random.key(level), grey, level)[1] == 77)
