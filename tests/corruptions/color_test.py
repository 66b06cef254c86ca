import colorsys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions.batch
from corruptions.imagenet_c import color
from corruptions.primitives import color as primitives
from tests.corruptions import goldens
from tests.corruptions.photographs import photograph

ADDED = {
    "cifar": (0.05, 0.1, 0.15, 0.2, 0.3),
    "tiny": (0.1, 0.2, 0.3, 0.4, 0.5),
    "imagenet": (0.1, 0.2, 0.3, 0.4, 0.5),
    "inception": (0.1, 0.2, 0.3, 0.4, 0.5),
}
GAIN = {
    "cifar": (0.75, 0.5, 0.4, 0.3, 0.15),
    "tiny": (0.4, 0.3, 0.2, 0.1, 0.05),
    "imagenet": (0.4, 0.3, 0.2, 0.1, 0.05),
    "inception": (0.4, 0.3, 0.2, 0.1, 0.05),
}
SATURATION = {
    "cifar": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    "tiny": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
    "imagenet": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
    "inception": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
}


def through_hsv(image, change):
    """Float64 levels after `change(h, s, v)` of every pixel, by the standard library."""
    pixels = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*rgb))) for rgb in (image / 255.0).reshape(-1, 3)]
    return 255 * np.clip(np.array(pixels).reshape(image.shape), 0, 1)


def brighter(image, added):
    return through_hsv(image, lambda h, s, v: (h, s, min(v + added, 1)))


def lower_contrast(image, gain):
    x = image / 255.0
    mean = x.mean((0, 1))
    return 255 * np.clip((x - mean) * gain + mean, 0, 1)


def saturated(image, parameters):
    factor, added = parameters
    return through_hsv(image, lambda h, s, v: (h, min(s * factor + added, 1), v))


CASES = {
    "brightness": (color.brightness, brighter, ADDED),
    "contrast": (color.contrast, lower_contrast, GAIN),
    "saturate": (color.saturate, saturated, SATURATION),
}


def scene():
    """A photograph with black, grey, white and primary pixels, and almost-greys."""
    image = photograph(21, 30, 4)
    image[0] = np.arange(30)[:, None] * 8
    image[1, :8] = [[0, 0, 0], [255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0], [1, 0, 0], [0, 0, 1], [255] * 3]
    image[2] = np.arange(30)[:, None] * 7 + np.array([0, 1, 0])
    return image


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("table", ADDED)
def test_equals_the_definition_before_truncation(name, table):
    corruption, reference, parameters = CASES[name]
    image = scene()
    corrupt = jax.jit(lambda x, severity: corruption(jax.random.key(0), x, severity, table=table))
    for severity in range(1, 6):
        found = 255 * np.asarray(corrupt(image.astype(np.float32) / np.float32(255), severity), np.float64)
        expected = reference(image, parameters[table][severity - 1])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_8_bit_results_differ_by_at_most_one_level(name):
    corruption, reference, parameters = CASES[name]
    image = scene()
    for severity in range(1, 6):
        found = np.asarray(corruptions.batch.corrupt(jax.random.key(0), image[None], corruption, severity))[0]
        expected = np.floor(reference(image, parameters["cifar"][severity - 1]))
        assert np.abs(found - expected).max() <= 1


def test_greys_become_red_where_saturation_is_added():
    grey = jnp.full((16, 16, 3), 0.5)
    found = color.saturate(jax.random.key(0), grey, 5, table="cifar")
    np.testing.assert_allclose(found[3, 4], [0.5, 0.4, 0.4], atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_drawn(name):
    corruption = CASES[name][0]
    image = jax.random.uniform(jax.random.key(0), (16, 24, 3))
    one, other = (corruption(jax.random.key(seed), image, 3) for seed in (1, 2))
    np.testing.assert_array_equal(one, other)
    assert one.shape == image.shape and one.dtype == jnp.float32


def test_levels_survive_the_way_to_the_unit_interval_and_truncation():
    levels = np.arange(256, dtype=np.float32)
    np.testing.assert_array_equal(jax.jit(primitives.from_levels)(levels), levels / np.float32(255))
    there_and_back = jax.jit(lambda x: corruptions.batch.from_float(primitives.from_levels(x), jnp.uint8, "truncate"))
    np.testing.assert_array_equal(there_and_back(levels), np.arange(256))


def test_luma_weighs_the_channels_as_bt_601():
    image = jnp.eye(3)[None]
    np.testing.assert_allclose(primitives.luma(image), [[0.299, 0.587, 0.114]], rtol=1e-6)


# Largest fraction of levels that may be one off: results that are whole levels up to rounding
# errors, which float32 and the original's float64 truncate to either side (its own closed form in
# float64 differs from it about as often).
BUDGET = {
    ("brightness", 32): (0.002, 0.004, 0.004, 0.06, 0.01),
    ("brightness", 224): (0.01, 0.04, 0.01, 0.015, 0.015),
    ("contrast", 32): (1e-4,) * 5,
    ("contrast", 224): (1e-4,) * 5,
    ("saturate", 32): (0.015, 0.015, 0.12, 0.02, 0.02),
    ("saturate", 224): (0.02, 0.02, 0.04, 0.03, 0.03),
}


@pytest.mark.parametrize(("name", "size"), BUDGET)
def test_pixels_match_the_original(shared, name, size):
    goldens.assert_pixels(shared, CASES[name][0], size, BUDGET[name, size])
