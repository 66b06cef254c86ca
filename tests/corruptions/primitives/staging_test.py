import jax
import jax.numpy as jnp
import numpy as np

from corruptions import devices


def test_a_batch_shares_its_largest_count():
    def twice(count):
        return 2 * devices.largest(count)

    counts = jnp.array([[3, 1], [0, 7]], jnp.int32)
    assert int(jax.jit(twice)(counts[1, 0])) == 0
    np.testing.assert_array_equal(jax.jit(jax.vmap(twice))(counts[0]), [6, 6])
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.vmap(twice)))(counts), np.full((2, 2), 14))
    assert jax.vmap(twice)(counts[0, :0]).shape == (0,)


def test_what_none_of_a_batch_needs_is_a_branch_that_is_not_run():
    def corrupt(count, x):
        return jax.lax.cond(devices.largest(count) > 0, jnp.sin, lambda x: x, x)

    found = jax.make_jaxpr(jax.vmap(corrupt))(jnp.zeros(2, jnp.int32), jnp.zeros(2))
    # With a count per image `cond` would run both branches and choose between the results.
    assert "cond[" in str(found) and "select_n" not in str(found)


def test_an_entry_for_each_pixel_through_one_axis():
    table, index = np.float32([0.5, 2, 3, 5]), np.int32([[0, 3], [2, 2], [1, 0]])
    assert np.array_equal(devices.look_up(table, index), table[index])
    traced = str(jax.make_jaxpr(jax.vmap(devices.look_up))(jnp.stack([table, table]), jnp.stack([index, index])))
    assert "f32[2,6] = gather" in traced  # one axis for each of two images
