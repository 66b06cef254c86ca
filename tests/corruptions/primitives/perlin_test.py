"""What Perlin's turbulence is made of; its values are compared in tests/corruptions/cbar."""

import jax
import jax.numpy as jnp

from corruptions.primitives.textures.perlin import OCTAVES, turbulence


def test_looks_all_octaves_up_at_once_along_one_axis():
    # A TPU's compiler takes seconds for each look-up, more where the indices have two axes.
    arguments = jnp.zeros((256, 2)), jnp.zeros(256, jnp.int32)
    traced = str(jax.make_jaxpr(lambda *a: turbulence(*a, (16, 20), 7 / 16))(*arguments))
    assert traced.count("name=_take") == 5
    assert traced.count(" = dot_general") == 2 * len(OCTAVES)
