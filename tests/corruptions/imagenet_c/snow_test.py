import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from corruptions.imagenet_c.snow import flake_levels, snow, streak_levels
from tests.reference.imagenet_c.snow import LARGE, LEVELS, reference_composite, reference_flakes, reference_streaks
from tests.reference.photographs import photograph


@pytest.mark.parametrize("shape", [(32, 32), (64, 64), (224, 224), (299, 299), (40, 57)])
def test_matches_the_original_given_noise_and_angle(shape):
    image = photograph(*shape)
    sample, apply = jax.jit(snow.sample, static_argnums=1), jax.jit(snow.apply)
    flakes_of = jax.jit(lambda p: flake_levels(p["zoom_rows"] @ p["noise"] @ p["zoom_columns"].T, p["threshold"]))
    for severity, (mean, deviation, factor, threshold, radius, sigma, mix) in enumerate(
        LEVELS.get(shape[0], LEVELS[32]), 1
    ):
        params = sample(jax.random.key(severity), (*shape, 3), severity)
        noise, angle = np.asarray(params["noise"], np.float64), float(params["angle"])
        assert abs(noise.mean() - mean) < 5 * deviation / np.sqrt(noise.size)
        assert abs(noise.std() / deviation - 1) < 5 / np.sqrt(noise.size)
        flakes = reference_flakes(noise, factor, threshold)
        found = np.asarray(flakes_of(params))
        # A level or the threshold may fall the other way in float32, for a few pixels in a million.
        assert (found != flakes).mean() <= 5e-5 + 1 / noise.size
        streaks = reference_streaks(found, radius, sigma, angle)
        blurred = np.asarray(jax.jit(streak_levels)(jnp.asarray(found), params["weights"], params["angle"]))
        assert abs(blurred - streaks).max() <= 1 and (blurred != streaks).mean() < 1e-4
        ours = 255 * np.asarray(apply(jnp.asarray(image, jnp.float32) / 255, params), np.float64)
        expected = reference_composite(image, reference_streaks(flakes, radius, sigma, angle), mix)
        off = abs(ours - expected)
        assert (off > 2e-3).mean() < 1e-3, f"severity {severity}"
        assert flakes.any() and off.max() < 3


@pytest.mark.parametrize("angle", [-135.0, -90.0, -89.9, -60.0, -45.0])
def test_streaks_trail_downwards(angle):
    flakes = np.zeros((40, 40), np.int32)
    flakes[10, 20] = 255
    weights = np.full(17, 1 / 17, np.float32)
    found = np.asarray(streak_levels(jnp.asarray(flakes), jnp.asarray(weights), jnp.float32(angle)))
    rows, _ = np.nonzero(found)
    assert rows.min() == 10 and rows.max() >= 10 + 11
    assert found.sum() == 17 * 15


def test_constant_layers_stay_constant():
    params = snow.sample(jax.random.key(0), (32, 32, 3), 3)
    for level in (0, 1, 100, 255):
        flat = jnp.full((32, 32), level, jnp.int32)
        np.testing.assert_array_equal(streak_levels(flat, params["weights"], params["angle"]), flat)


def test_angles_are_uniform_and_independent_of_the_noise():
    params = jax.jit(jax.vmap(lambda i: snow.sample(jax.random.key(i), (16, 16, 3), 1)))(jnp.arange(1000))
    angles = np.asarray(params["angle"])
    assert stats.kstest(angles, stats.uniform(-135, 90).cdf).pvalue > 1e-4
    assert abs(np.corrcoef(angles, np.asarray(params["noise"]).mean((1, 2)))[0, 1]) < 4 / np.sqrt(1000)


def test_coverage():
    """Share of pixels with snow before the blur, per cent, measured on the original at 224."""
    sample = jax.jit(snow.sample, static_argnums=1)
    for severity, expected in enumerate((2.5, 7, 4, 6, 7), 1):
        share = []
        for seed in range(6):
            params = sample(jax.random.key(seed), (224, 224, 3), severity)
            noise = np.asarray(params["noise"], np.float64)
            share.append((reference_flakes(noise, LARGE[severity - 1][2], LARGE[severity - 1][3]) > 0).mean())
        assert abs(100 * np.mean(share) - expected) < 0.5 + 0.15 * expected
