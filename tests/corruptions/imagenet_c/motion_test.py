import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from corruptions.imagenet_c import motion
from tests.corruptions import goldens
from tests.reference.imagenet_c.motion import TABLES, imagemagick
from tests.reference.photographs import photograph

# Degrees; the range of motion_blur and that of snow. At multiples of 30 offsets are exact halves,
# decided by the last bit of the sine, so the test stays beside them.
ANGLES = (0.0, 0.3, 13.7, 44.9, 45.0, -17.2, -45.0, -60.7, -90.0, -91.3, -133.3)


@pytest.mark.parametrize("table", TABLES)
def test_is_imagemagicks_motion_blur(table):
    rows = TABLES[table]
    largest = max(radius for radius, _ in rows)

    @jax.jit
    def blur(image, radius, sigma, angle):
        return motion.motion_blur_levels(image, motion.taps(radius, sigma, largest), angle)

    image = photograph(33, 40)
    image[5:9, 5:20] = np.random.default_rng(0).integers(0, 256, (4, 15, 3))
    wrong = []
    for radius, sigma in rows:
        for degrees in ANGLES:
            found = np.asarray(blur(image, float(radius), float(sigma), np.float32(np.deg2rad(degrees))))
            difference = np.abs(found - imagemagick(image, radius, sigma, degrees))
            assert difference.max() <= 1
            wrong.append((difference > 0).mean())
    # The exact sums lie on the 16-bit border of two levels with probability about 1e-4 of float32
    # rounding.
    assert np.mean(wrong) < 2e-4


def test_constant_images_stay_exactly_constant():
    blur = jax.jit(lambda image, r, s, a: motion.motion_blur_levels(image, motion.taps(r, s, 20), a))
    for level in (0, 1, 77, 254, 255):
        image = np.full((16, 24, 3), level, np.uint8)
        for (radius, sigma), angle in zip(TABLES["imagenet"], (0.0, 0.2, -0.7, 0.5, 0.1), strict=True):
            np.testing.assert_array_equal(blur(image, float(radius), float(sigma), angle), image)


def test_one_channel_and_small_images_under_wide_blurs():
    image = photograph(16, 17)[..., :1]
    found = motion.motion_blur_levels(image, motion.taps(20, 15, 20), np.float32(np.deg2rad(-100.0)))
    assert found.shape == image.shape
    assert np.abs(np.asarray(found) - imagemagick(image, 20, 15, -100.0)).max() <= 1


def test_a_cpu_makes_no_matrices_of_a_tpu():
    weights = motion.taps(6, 1, 6)
    traced = jax.make_jaxpr(lambda x: motion.motion_blur_levels(x, weights, 0.3))(jnp.zeros((60, 80, 3)))
    assert sum(np.size(constant) for constant in traced.consts) < 2 * (60 + 80)


@pytest.mark.parametrize("table", TABLES)
def test_corruption_blurs_along_the_drawn_angle(table):
    image = photograph(24, 36)
    x = jnp.asarray(image / 255.0, jnp.float32)
    sample = jax.jit(lambda key, severity: motion.motion_blur.sample(key, x.shape, severity, table=table))
    apply = jax.jit(motion.motion_blur.apply)
    for severity, (radius, sigma) in enumerate(TABLES[table], 1):
        params = sample(jax.random.key(severity), severity)
        found = np.asarray(jnp.floor(apply(x, params) * 255)).astype(int)
        difference = np.abs(found - imagemagick(image, radius, sigma, float(params["angle"])))
        assert difference.max() <= 1 and (difference > 0).mean() < 2e-3


def test_angles_are_uniform():
    keys = jax.random.split(jax.random.key(0), 4000)
    angles = jax.jit(jax.vmap(lambda key: motion.motion_blur.sample(key, (32, 32, 3), 1)["angle"]))(keys)
    assert stats.kstest(np.asarray(angles), "uniform", (-45, 90)).pvalue > 1e-3


def test_real_severities_interpolate_the_taps():
    key = jax.random.key(0)
    weights = motion.motion_blur.sample(key, (224, 224, 3), 1.5, interpolate=True)["weights"]
    expected = np.exp(-(np.arange(27) ** 2) / (2 * 4.0**2))  # radius 12.5, standard deviation 4
    np.testing.assert_allclose(weights, np.pad(expected / expected.sum(), (0, 14)), atol=1e-6)


@pytest.mark.parametrize("size", [32, 224])
def test_features_match_the_original(shared, size):
    goldens.assert_features(shared, motion.motion_blur, size)


def test_the_form_for_tpus_is_the_same_blur():
    image = photograph(24, 28)
    image[5:9, 5:20] = np.random.default_rng(0).integers(0, 256, (4, 15, 3))
    even = np.full((24, 28, 3), 77, np.uint8)
    weights = motion.taps(20.0, 15.0, 20)
    sums = jax.jit(lambda *args: (motion._sum_of_slices(*args), motion._sum_in_frequencies(*args)))
    i = np.arange(weights.size)
    for angle in np.deg2rad(ANGLES):
        offsets = (np.ceil(i * wave(angle) - 0.5).astype(np.int32) for wave in (np.sin, np.cos))
        rows, columns = map(jnp.asarray, offsets)
        expected, found = sums(image.astype(np.float32), weights, rows, columns)
        # A unit of the 16 bits to which both are rounded is 1 / 257 of a level.
        np.testing.assert_allclose(found, expected, atol=5e-4)
        _, found = sums(even.astype(np.float32), weights, rows, columns)
        np.testing.assert_array_equal(np.floor(257 * np.asarray(found) + 0.5) // 257, even)


def test_on_a_tpu_nothing_is_looked_up_at_a_place_of_each_images_own():
    blur = jax.vmap(lambda image, angle: motion.motion_blur_levels(image, motion.taps(6.0, 1.0, 6), angle))
    shapes = jax.ShapeDtypeStruct((2, 16, 20, 3), np.uint8), jax.ShapeDtypeStruct((2,), np.float32)
    lowered = {p: jax.jit(blur).trace(*shapes).lower(lowering_platforms=(p,)).as_text() for p in ("cpu", "tpu")}
    assert "gather" in lowered["cpu"] and "gather" not in lowered["tpu"]
