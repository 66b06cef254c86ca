"""Levels and luma."""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import batch
from corruptions.primitives.color import from_levels, luma


def test_levels_survive_the_way_to_the_unit_interval_and_truncation():
    levels = np.arange(256, dtype=np.float32)
    np.testing.assert_array_equal(jax.jit(from_levels)(levels), levels / np.float32(255))
    there_and_back = jax.jit(lambda x: batch.from_float(from_levels(x), jnp.uint8, "truncate"))
    np.testing.assert_array_equal(there_and_back(levels), np.arange(256))


def test_luma_weighs_the_channels_as_bt_601():
    image = jnp.eye(3)[None]
    np.testing.assert_allclose(luma(image), [[0.299, 0.587, 0.114]], rtol=1e-6)
