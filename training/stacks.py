"""Arrays of several models, one row of the mesh each, put together from the rows' own arrays without copying them.

States are stacked along a new first axis, [M, ...]. Blocks of batches and metrics, whose first axis is the step, lie
one after another, [M K, ...]. Either way 'model' splits the first axis, and a device holds nothing but its own model's
part.
"""

import jax
import jax.numpy as jnp
import numpy as np

from runtime import meshes


def stack_states(mesh, state):
    """Leaves [...] of a TrainState as leaves [M, ...]: a copy of the state in every row."""
    sharding, rows = meshes.by_model(mesh), mesh.devices.shape[0]

    def stack(leaf):
        pieces = [_copy(leaf[None], device) for device in sharding.addressable_devices]
        return jax.make_array_from_single_device_arrays((rows, *leaf.shape), sharding, pieces)

    return jax.tree.map(stack, _host(state))


def put_state(mesh, stacked, place, state):
    """`stacked` with a copy of `state` in row `place`; the other rows stay where they are."""

    def put(leaf, new):
        pieces = {shard.device: shard.data for shard in leaf.addressable_shards}
        pieces |= {device: _copy(new[None], device) for device in mesh.devices[place] if device in pieces}
        return jax.make_array_from_single_device_arrays(leaf.shape, leaf.sharding, list(pieces.values()))

    return jax.tree.map(put, stacked, _host(state))


def take_state(mesh, stacked, place, target):
    """The state of row `place`, copied to every device of the mesh `target`; waits until it is computed."""
    row = set(mesh.devices[place])

    def take(leaf):
        piece = next(shard.data for shard in leaf.addressable_shards if shard.device in row)
        return np.array(piece)[0]  # a copy: the stacked state is donated to the next block of steps

    return meshes.place(jax.tree.map(take, stacked), meshes.replicated(target))


def _copy(array, device):
    return jax.device_put(np.array(array), device)  # on a CPU device_put may share memory, and states are donated


def _host(state):
    return jax.tree.map(lambda leaf: np.asarray(leaf.addressable_data(0)), state)  # of any device: all have the same


def join_batches(mesh, blocks):
    """Blocks [K, B, ...] of the rows, batches split over 'data', as one array [M K, B, ...]."""
    first = blocks[0]
    pieces = [shard.data for block in blocks for shard in block.addressable_shards]
    shape = (len(blocks) * first.shape[0], *first.shape[1:])
    return jax.make_array_from_single_device_arrays(shape, meshes.by_model(mesh, "data"), pieces)


def idle_batches(row, like):
    """A block for a row without a model, in the shape and type of another row's: zeros, whose results nobody reads."""
    return jnp.zeros(like.shape, like.dtype, device=meshes.batch_sharding(row, axis=1))


def stack_keys(mesh, keys):
    """Typed keys, one for each row, as an array [M]."""
    return meshes.place(jnp.stack(keys), meshes.by_model(mesh))
