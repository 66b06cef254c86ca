import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage, stats

from corruptions.imagenet_c.snow import flake_levels, snow, streak_levels
from tests.corruptions.photographs import photograph

# (mean, deviation, zoom, threshold, radius, sigma, mix) as published.
SMALL = (
    (0.1, 0.2, 1, 0.6, 8, 3),
    (0.1, 0.2, 1, 0.5, 10, 4),
    (0.15, 0.3, 1.75, 0.55, 10, 4),
    (0.25, 0.3, 2.25, 0.6, 12, 6),
    (0.3, 0.3, 1.25, 0.65, 14, 12),
)
LARGE = (
    (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
    (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
    (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
)
LEVELS = {
    32: tuple((*row, mix) for row, mix in zip(SMALL, (0.95, 0.9, 0.9, 0.85, 0.8))),
    64: tuple((*row, mix) for row, mix in zip(SMALL, (0.8, 0.8, 0.7, 0.65, 0.6))),
    224: LARGE,
    299: LARGE,
}


def reference_zoom(noise, factor):
    """Central crop, SciPy's linear zoom, central trim; sides one by one, so that images need not be square."""
    height, width = noise.shape
    crop_height, crop_width = math.ceil(height / factor), math.ceil(width / factor)
    top, left = (height - crop_height) // 2, (width - crop_width) // 2
    out = ndimage.zoom(noise[top : top + crop_height, left : left + crop_width], factor, order=1)
    top, left = (out.shape[0] - height) // 2, (out.shape[1] - width) // 2
    return out[top : top + height, left : left + width]


def reference_flakes(noise, factor, threshold):
    layer = reference_zoom(noise, factor)
    layer[layer < threshold] = 0
    return np.floor(255 * np.clip(layer, 0, 1)).astype(int)


def reference_streaks(flakes, radius, sigma, angle):
    """ImageMagick's motion blur of an 8-bit plane, tap by tap in float64 with its rounding to 16 bits."""
    count = 2 * math.ceil(radius) + 1
    weights = np.exp(-(np.arange(count) ** 2) / (2 * sigma**2))
    weights /= weights.sum()
    y, x = np.indices(flakes.shape)
    total = np.zeros(flakes.shape)
    for i, weight in enumerate(weights):
        dy = math.ceil(i * math.sin(math.radians(angle)) - 0.5)
        dx = math.ceil(i * math.cos(math.radians(angle)) - 0.5)
        total += weight * flakes[np.clip(y + dy, 0, y.max()), np.clip(x + dx, 0, x.max())]
    return np.floor(257 * total + 0.5).astype(int) // 257


def reference_composite(image, streaks, mix):
    x = image / 255
    grey = x @ np.array([0.299, 0.587, 0.114])
    x = mix * x + (1 - mix) * np.maximum(x, grey[..., None] * 1.5 + 0.5)
    snow_layer = streaks[..., None] / 255
    return 255 * np.clip(x + snow_layer + np.rot90(snow_layer, 2), 0, 1)


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
