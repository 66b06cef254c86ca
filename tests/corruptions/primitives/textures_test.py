"""Pieces of textures; values are compared in tests/corruptions/cbar and imagenet_c."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from corruptions.imagenet_c.fog import diamond_square
from corruptions.primitives import textures
from corruptions.primitives.textures import OCTAVES, turbulence


def test_looks_all_octaves_up_at_once_along_one_axis():
    # A TPU's compiler takes seconds for each look-up, more where the indices have two axes.
    arguments = jnp.zeros((256, 2)), jnp.zeros(256, jnp.int32)
    traced = str(jax.make_jaxpr(lambda *a: turbulence(*a, (16, 20), 7 / 16))(*arguments))
    assert traced.count("name=_take") == 5
    assert traced.count(" = dot_general") == 2 * len(OCTAVES)


def test_points_by_products_are_points_by_index():
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 1, (14, 18, 2)).astype(np.float32)
    y, x = (np.arange(n, dtype=np.float32) / np.float32(1.7) + 1 for n in (20, 27))

    def nearest(*args):
        return [textures._nearest(look_up, *args) for look_up in (textures._taken, textures._products)]

    expected, found = jax.jit(nearest)(points, y, x)
    assert expected.shape == (20, 27) and np.ptp(expected) > 0.5
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_on_a_tpu_no_point_is_looked_up():
    distances = jax.vmap(lambda seed, scale: textures.voronoi_distance((16, 20, 3), seed, scale, 1.6))
    numbers = jax.ShapeDtypeStruct((2,), np.float32)
    traced = jax.jit(distances).trace(numbers, numbers)
    lowered = {p: traced.lower(lowering_platforms=(p,)).as_text() for p in ("cpu", "tpu")}
    assert "gather" in lowered["cpu"] and "gather" not in lowered["tpu"]


def test_wrong_number_of_displacements_is_named():
    with pytest.raises(ValueError, match=r"4\^K - 1 uniforms"):
        diamond_square(jnp.zeros(100), 2.0)
