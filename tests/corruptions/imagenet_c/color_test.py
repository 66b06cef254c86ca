import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions.batch
from corruptions.imagenet_c import color
from corruptions.primitives.color import from_levels, luma
from tests.corruptions import goldens
from tests.reference.imagenet_c.color import ADDED, CASES
from tests.reference.photographs import photograph


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
    corruption, (reference, parameters) = getattr(color, name), CASES[name]
    image = scene()
    corrupt = jax.jit(lambda x, severity: corruption(jax.random.key(0), x, severity, table=table))
    for severity in range(1, 6):
        found = 255 * np.asarray(corrupt(image.astype(np.float32) / np.float32(255), severity), np.float64)
        expected = reference(image, parameters[table][severity - 1])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_8_bit_results_differ_by_at_most_one_level(name):
    corruption, (reference, parameters) = getattr(color, name), CASES[name]
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
    corruption = getattr(color, name)
    image = jax.random.uniform(jax.random.key(0), (16, 24, 3))
    one, other = (corruption(jax.random.key(seed), image, 3) for seed in (1, 2))
    np.testing.assert_array_equal(one, other)
    assert one.shape == image.shape and one.dtype == jnp.float32


def test_levels_survive_the_way_to_the_unit_interval_and_truncation():
    levels = np.arange(256, dtype=np.float32)
    np.testing.assert_array_equal(jax.jit(from_levels)(levels), levels / np.float32(255))
    there_and_back = jax.jit(lambda x: corruptions.batch.from_float(from_levels(x), jnp.uint8, "truncate"))
    np.testing.assert_array_equal(there_and_back(levels), np.arange(256))


def test_luma_weighs_the_channels_as_bt_601():
    image = jnp.eye(3)[None]
    np.testing.assert_allclose(luma(image), [[0.299, 0.587, 0.114]], rtol=1e-6)


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
    goldens.assert_pixels(shared, getattr(color, name), size, BUDGET[name, size])


def test_saturate_by_planes_is_saturate():
    levels = jnp.asarray(np.random.default_rng(0).integers(0, 256, (16, 16, 3)), jnp.float32)
    levels = levels.at[:4].set(levels[:4, :, :1])  # greys, of them one black and one white
    levels = levels.at[0, 0].set(0).at[0, 1].set(255)
    expected = jax.jit(color._saturate)(levels, 5.0, 0.1)
    found = jax.jit(color._saturate_by_planes)(levels, 5.0, 0.1)
    np.testing.assert_allclose(found, expected, atol=1e-7)
