"""Look-ups in small tables."""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import tables


def test_an_entry_for_each_pixel_through_one_axis():
    table, index = np.float32([0.5, 2, 3, 5]), np.int32([[0, 3], [2, 2], [1, 0]])
    assert np.array_equal(tables.look_up(table, index), table[index])
    traced = str(jax.make_jaxpr(jax.vmap(tables.look_up))(jnp.stack([table, table]), jnp.stack([index, index])))
    assert "f32[2,6] = gather" in traced  # one axis for each of two images
