"""Levels and luma."""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import batch
from corruptions.primitives import color
from corruptions.primitives.color import from_levels, luma


def test_levels_survive_the_way_to_the_unit_interval_and_truncation():
    levels = np.arange(256, dtype=np.float32)
    np.testing.assert_array_equal(jax.jit(from_levels)(levels), levels / np.float32(255))
    there_and_back = jax.jit(lambda x: batch.from_float(from_levels(x), jnp.uint8, "truncate"))
    np.testing.assert_array_equal(there_and_back(levels), np.arange(256))


def test_luma_weighs_the_channels_as_bt_601():
    image = jnp.eye(3)[None]
    np.testing.assert_allclose(luma(image), [[0.299, 0.587, 0.114]], rtol=1e-6)


def test_means_of_channels_are_exact_for_whole_levels_of_any_number_of_pixels():
    """Nine million white pixels sum to more than 2^31; sums of floats are compared with float64."""
    white = np.full((3000, 3000, 1), 255, np.float32)
    white[0, :3] = 0
    expected = (9_000_000 - 3) * 255 / 9_000_000
    np.testing.assert_allclose(
        color.channel_means(white, {}).ravel(), [expected], rtol=2.0**-23
    )  # a unit in the last place
    levels = np.random.default_rng(0).uniform(0, 255, (40, 56, 3)).astype(np.float32)
    means = levels.astype(np.float64).mean((0, 1))
    np.testing.assert_allclose(color.channel_means(levels, {}).ravel(), means, rtol=1e-6)
    whole = np.round(levels)
    exact = (whole.astype(np.int64).sum((0, 1)).astype(np.float32)) / np.float32(40 * 56)
    np.testing.assert_array_equal(color.channel_means(whole, {}).ravel(), exact)
