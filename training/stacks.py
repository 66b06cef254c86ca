"""Arrays of several models, a row of the mesh each, put together from the rows' arrays uncopied.

States are stacked along a new first axis, [M, ...]. Blocks of batches and metrics, whose first axis
is the step, lie one after another, [M K, ...]. Either way 'model' splits the first axis, and a
device holds nothing but its own model's part.
"""

from collections.abc import Sequence

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from runtime import meshes
from training.states import TrainState


def stack_states(mesh: Mesh, state: TrainState) -> TrainState:
    """Makes leaves [M, ...] of the leaves [...] of a state: a copy of it in every row."""
    sharding, rows = meshes.by_model(mesh), mesh.devices.shape[0]

    def stack(leaf):
        pieces = [_copy(leaf[None], device) for device in sharding.addressable_devices]
        return jax.make_array_from_single_device_arrays((rows, *leaf.shape), sharding, pieces)

    return jax.tree.map(stack, _host(state))


def put_state(mesh: Mesh, stacked: TrainState, row: int, state: TrainState) -> TrainState:
    """Puts a copy of `state` into a row of `stacked`; the other rows stay where they are."""
    chex.assert_trees_all_equal_dtypes(stacked, state)

    def put(leaf, new):
        chex.assert_shape(new, leaf.shape[1:])
        pieces = {shard.device: shard.data for shard in leaf.addressable_shards}
        pieces |= {device: _copy(new[None], device) for device in mesh.devices[row] if device in pieces}
        return jax.make_array_from_single_device_arrays(leaf.shape, leaf.sharding, list(pieces.values()))

    return jax.tree.map(put, stacked, _host(state))


def take_state(mesh: Mesh, stacked: TrainState, row: int, target: Mesh) -> TrainState:
    """Copies the state of a row to every device of the mesh `target`, once it is computed."""
    devices = set(mesh.devices[row])

    def take(leaf):
        piece = next(shard.data for shard in leaf.addressable_shards if shard.device in devices)
        return np.array(piece)[0]  # a copy: the stacked state is donated to the next block of steps

    return meshes.place_tree(jax.tree.map(take, stacked), meshes.replicated(target))


def _copy(array, device):
    return jax.device_put(np.array(array), device)  # on a CPU device_put may share memory, and states are donated


def _host(state):
    return jax.tree.map(lambda leaf: np.asarray(leaf.addressable_data(0)), state)  # of any device: all have the same


def join_batches(mesh: Mesh, blocks: Sequence[jax.Array]) -> jax.Array:
    """Joins the rows' blocks [K, B, ...], batches split over 'data', to one array [M K, B, ...]."""
    chex.assert_equal_shape(blocks)
    first = blocks[0]
    pieces = [shard.data for block in blocks for shard in block.addressable_shards]
    shape = (len(blocks) * first.shape[0], *first.shape[1:])
    return jax.make_array_from_single_device_arrays(shape, meshes.by_model(mesh, "data"), pieces)


def idle_batches(row: Mesh, like: jax.Array) -> jax.Array:
    """Makes a block for a row without a model, shaped as another row's: zeros, read by nobody."""
    return jnp.zeros(like.shape, like.dtype, device=meshes.batch_sharding(row, axis=1))


def stack_keys(mesh: Mesh, keys: Sequence[jax.Array]) -> jax.Array:
    """Makes an array [M] of typed keys, one for each row."""
    return meshes.place_tree(jnp.stack(keys), meshes.by_model(mesh))
