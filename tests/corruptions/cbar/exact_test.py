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
from corruptions.cbar import displacement, lenses
from corruptions.primitives import spline
from corruptions.primitives.special import arctangent2, sine_cosine
from corruptions.primitives.textures import caustic
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
    assert compiled(f"cbar/{name}", shape)._cache_size() == 1, "one compile must serve all levels"


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


CAUSTIC = jax.jit(caustic, static_argnums=0)


def test_caustic_precision():
    for seed in range(5):
        time, scale = np.random.default_rng(seed).uniform([0.5, 24], [2, 40])
        expected = definitions.caustic((32, 48), np.float32(time).item(), np.float32(scale).item())
        assert np.abs(CAUSTIC((32, 48), np.float32(time), np.float32(scale)) - expected).max() < 1e-4


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


def without_strength(name, image):
    """Parameters as drawn, those that grow with severity put where nothing happens."""
    params, _ = compiled(name, image.shape)(jax.random.key(1), image, 5)
    neutral = {"lens": 0, "light": 0, "angle": 0, "exponent": 0, "index": 1, "amplitude": 0, "reach": 0}
    neutral |= {"shears": 0, "shifts": 0, "scales": 1, "tilt": 0}
    neutral["corners"] = np.array([(0, 0), (0, 32), (32, 32), (32, 0)])
    return {k: np.broadcast_to(np.float32(neutral.get(k, v)), np.shape(v)) for k, v in params.items()}


@pytest.mark.parametrize("name", WARPS)
def test_no_strength_no_change(name):
    image = photograph(32, 32)
    params, image = without_strength(name, image), np.float32(image / 255)
    found = jax.jit(getattr(cbar, name).apply)(image, params)
    assert np.abs(found - image).max() <= 2e-5
    if name not in ("quadrilateral_no_bars", "water_drop"):  # positions come out with a rounding there
        assert np.array_equal(found, image)


@pytest.mark.parametrize("name", ["perspective_no_bars", "quadrilateral_no_bars"])
def test_no_bars(name):
    """Grey stays grey to the bit; every pixel shows the image, its own where the view is outside."""
    grey = np.full((32, 32, 3), 77, np.uint8)
    for level in (1, 10):
        assert np.all(compiled(name, grey.shape)(jax.random.key(level), grey, level)[1] == 77)


def test_hash():
    """The two fields are those of float64, swapped axes of one another, and as good as uniform and independent."""
    hashes = jax.jit(displacement._hashes, static_argnums=0)
    for k in (0.37, 3.3, 7.1):
        seed = np.float32(k)
        down, right = (np.asarray(v) for v in hashes((48, 64), seed))
        y, x = np.mgrid[:48, :64].astype(np.float64)
        for found, (u, v) in ((down, (y, x)), (right, (x, y))):
            inner = 12.9898 * np.sin(float(seed) * u) + 78.233 * np.cos(float(seed) * v)
            gap = np.abs(found - np.mod(43758.5453 * np.sin(inner), 1))
            assert np.minimum(gap, 1 - gap).max() < 1e-6
        assert np.array_equal(down[:, :48], right[:, :48].T)
        assert down.dtype == np.float32 and scipy.stats.kstest(down.ravel(), "uniform").pvalue > 1e-4
        assert abs(np.corrcoef(down[:, 1:].ravel(), down[:, :-1].ravel())[0, 1]) < 0.08


def test_a_blurred_grey_darkens_in_the_corners_only():
    grey = np.full((64, 64, 3), 0.5, np.float32)
    found = np.asarray(cbar.circular_motion_blur.apply(grey, {"angle": np.float32(15)}))
    y, x = np.mgrid[:64, :64] - 31.5
    inside = np.hypot(y, x) <= 31.5
    assert np.allclose(found[inside], 0.5, atol=1e-5)
    corner = found[0, 0, 0]  # only the rotation by nothing leaves a corner inside
    assert np.isclose(corner, 0.5 / np.exp(-2 * (np.arange(-10, 11) / 10) ** 2).sum(), atol=1e-4)


def test_zero_outside():
    """A white image fades at the border only, where ripples reach over it."""
    white = np.full((32, 32, 3), 255, np.uint8)
    darkest = np.full((32, 32), 255)
    for seed in range(8):
        found = compiled("ripple", white.shape)(jax.random.key(seed), white, 10)[1]
        darkest = np.minimum(darkest, np.asarray(found).min(-1))
    assert np.all(darkest[1:-1, 1:-1] == 255) and darkest[0].max() < 255 and darkest[:, -1].max() < 255


def test_what_the_cells_leave_does_not_turn():
    image = photograph(32, 32)
    found = np.asarray(compiled("pinch_and_twirl", image.shape)(jax.random.key(0), image, 10)[1])
    changed = np.any(found != image, axis=-1)
    assert not changed[30:].any() and not changed[:, 30:].any()
    middles = 10 * np.arange(3) + 5
    assert not changed[np.ix_(middles, middles)].any()  # the middle of a cell stays
    assert all(changed[middles[i] - 2, middles[j] + 1] for i in range(3) for j in range(3))


def test_lenses_see_what_earlier_ones_left():
    image = photograph(32, 32).astype(np.float32) / 255
    apply = jax.jit(lenses.fish_eye.apply)

    def seen(*centres):
        return np.asarray(apply(image, {"index": np.float32(1.8), "centres": np.array(centres, np.float32)}))

    near, other, far = (10.3, 10.2), (11.8, 11.9), (24.4, 25.1)
    assert np.array_equal(seen(near, far), seen(far, near))
    assert np.abs(seen(near, other) - seen(other, near)).max() > 0.01
    once, twice = seen(near, near), seen(near, far)
    assert np.abs(once - twice)[6:15, 6:15].max() > 0.01  # seen through twice, not once
    changed = np.any(seen(near, near) != image, -1)
    y, x = np.nonzero(changed)
    assert changed.any() and np.all(np.hypot(y - near[0], x - near[1]) < 3)
