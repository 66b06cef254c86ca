"""Checks of a block of steps on eight devices; tests/runtime/meshes_test.py runs each in a process.
Every one ends or raises.
"""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from data.dataset import Split
from models.layers import BatchNorm
from models.small_resnet import SmallResNet
from runtime import meshes
from tests.checks import run_named
from training import rows, states, steps

STEPS, BATCH, SIDE = 3, 32, 16
OPTIMIZER = optax.chain(optax.add_decayed_weights(1e-3), optax.sgd(0.05, momentum=0.9))


def network(seed=0):
    model = SmallResNet(10, rng=np.random.default_rng(seed), dtype=jnp.float32, stem=8, widths=(16,))
    graphdef, params, statistics = nnx.split(model, nnx.Param, ...)
    return graphdef, states.initial_state(params, statistics, OPTIMIZER)


def batches(seed=0):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (STEPS, BATCH, SIDE, SIDE, 3)).astype(np.uint8)
    return images, rng.integers(0, 10, (STEPS, BATCH)).astype(np.int32)


def grid(rows, columns):
    return jax.sharding.Mesh(np.asarray(jax.devices()[: rows * columns]).reshape(rows, columns), ("model", "data"))


def placed(mesh, state, images, labels):
    """Arguments of a block of one model, the same in every row."""
    join = lambda array: rows.join_batches(  # noqa: E731
        mesh, [jax.device_put(array, meshes.batch_sharding(row, axis=1)) for row in meshes.rows(mesh)]
    )
    keys = rows.stack_keys(mesh, [jax.random.key(0)] * mesh.shape["model"])
    return rows.stack_states(mesh, state), join(images), join(labels), keys


def trained(mesh, norm_groups=1):
    """(state, losses) of one model after a block on a mesh with one row."""
    graphdef, state = network()
    arguments = placed(mesh, state, *batches())
    states_, metrics = steps.train_models_block(mesh, graphdef, OPTIMIZER, *arguments, norm_groups=norm_groups)
    return rows.take_state(mesh, states_, 0, mesh), np.asarray(metrics["loss"])


def close(one, other, rtol=1e-4):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * max(1e-3, np.abs(b).max()))


def shapes_of_meshes():
    one = meshes.data_mesh()

    def shape(parallel, models, batch_size):
        mesh = meshes.training_mesh(one, parallel, models, batch_size)
        assert list(mesh.devices.flat) == jax.devices()[: mesh.devices.size]
        return mesh.devices.shape

    assert one.devices.shape == (1, 8) and meshes.data_mesh(12).devices.shape == (1, 6)
    assert meshes.study_mesh(12, 1).devices.shape == (1, 6) and meshes.study_mesh(12, 3).devices.shape == (1, 8)
    assert shape(1, 5, 32) == (1, 8) and shape(0, 5, 32) == (1, 8)  # a CPU's cores work on one model
    assert shape(8, 20, 32) == (8, 1) and shape(4, 20, 32) == (4, 2) and shape(3, 3, 32) == (3, 2)
    assert shape(8, 2, 32) == (2, 4)  # no more rows than models
    assert shape(2, 5, 6) == (2, 3)  # on a CPU a row's devices divide the batch
    for parallel in (-1, 9):
        try:
            meshes.training_mesh(one, parallel, 20, 32)
        except ValueError as error:
            assert "config.study.parallel from 0 to the 8 devices" in str(error)
        else:
            raise AssertionError(parallel)


def no_copy_for_a_row():
    """What is replicated over all devices lies on a row already."""
    whole = Split(*(jax.device_put(np.arange(n), meshes.replicated(grid(1, 8))) for n in (3, 4, 5)))
    (row,) = meshes.rows(grid(1, 2))
    part = meshes.local_copy(whole, row)
    assert part.images.sharding.device_set == set(jax.devices()[:2])
    for one, other in zip(part.images.addressable_shards, whole.images.addressable_shards):
        assert one.data.unsafe_buffer_pointer() == other.data.unsafe_buffer_pointer()


@functools.cache
def communication(mesh, norm_groups=1):
    """What communicates in the compiled block, [(operation, its line)]."""
    graphdef, state = network()
    arguments = placed(mesh, state, *batches())
    lowered = steps.train_models_block.lower(mesh, graphdef, OPTIMIZER, *arguments, norm_groups=norm_groups)
    operation = (
        r"\b(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast)(?:-start)?\("
    )
    lines = lowered.compile().as_text().splitlines()
    return [(match[1], line) for line in lines if (match := re.search(operation, line))]


def groups(line):
    """The groups of devices that communicate, [[device, ...], ...]."""
    if explicit := re.search(r"replica_groups=\{(\{[\d,{}]*\})\}", line):
        return [[int(i) for i in group.split(",")] for group in re.findall(r"\{([\d,]+)\}", explicit[1])]
    # [2,4]<=[8]: 0..7 in two rows of four; any other spelling is an error here
    iota = re.search(r"replica_groups=\[(\d+),(\d+)\]<=\[(\d+)\](?=[,\s]|$)", line)
    number, size, total = (int(iota[k]) for k in (1, 2, 3))
    return np.arange(total).reshape(number, size).tolist()


def no_communication_between_rows():
    assert communication(grid(4, 1)) == []
    found = communication(grid(2, 4))
    assert any(name == "all-reduce" for name, _ in found)
    for name, line in found:
        assert all(len({device // 4 for device in group}) == 1 for group in groups(line)), (name, line)


def one_collective_a_layer_and_direction():
    """Of synchronised statistics, and one for the gradients; where devices keep their own, only the latter."""
    graphdef, state = network()
    modules = nnx.iter_modules(nnx.merge(graphdef, state.params, state.statistics))
    layers = sum(isinstance(module, BatchNorm) for _, module in modules)
    assert layers == 4 and len(communication(grid(2, 4))) <= 2 * layers + 1
    assert [name for name, _ in communication(grid(1, 4), norm_groups=4)] == ["all-reduce"]


def any_number_of_devices_trains_alike():
    graphdef, state = network()
    images, labels = batches()
    train_block = jax.jit(steps.train_block, static_argnums=(0, 1))
    reference, metrics = train_block(graphdef, OPTIMIZER, state, images, labels, jax.random.key(0))
    losses = np.asarray(metrics["loss"])
    for devices in (1, 2, 4, 8):
        found, found_losses = trained(grid(1, devices))
        np.testing.assert_allclose(found_losses, losses, rtol=1e-5, err_msg=f"{devices} devices")
        close(found, reference)


def split_by_hand(parts):
    """Three steps of SGD with each part of a batch in a forward and backward pass of its own."""
    graphdef, state = network()
    params, statistics, optimizer = state.params, state.statistics, state.optimizer
    losses = []

    @jax.jit
    def of_part(params, statistics, images, labels):
        def loss_fn(params):
            model = nnx.merge(graphdef, params, statistics, copy=True)
            logits, _ = model(images, train=True)
            log_p = jax.nn.log_softmax(logits)
            _, _, moved = nnx.split(model, nnx.Param, ...)
            return -log_p[jnp.arange(len(labels)), labels].mean(), moved

        return jax.value_and_grad(loss_fn, has_aux=True)(params)

    for images, labels in zip(*batches()):
        found = [
            of_part(params, statistics, *part)
            for part in zip(np.split(images, parts), np.split(labels, parts), strict=True)
        ]
        mean = lambda trees: jax.tree.map(lambda *leaves: sum(leaves) / parts, *trees)  # noqa: E731
        losses.append(np.mean([loss for (loss, _), _ in found]))
        statistics = mean([moved for (_, moved), _ in found])
        updates, optimizer = OPTIMIZER.update(mean([gradient for _, gradient in found]), optimizer, params)
        params = optax.apply_updates(params, updates)
    return params, statistics, np.array(losses)


def statistics_per_device():
    params, statistics, losses = split_by_hand(4)
    for devices in (1, 4):
        state, found = trained(grid(1, devices), norm_groups=4)
        np.testing.assert_allclose(found, losses, rtol=1e-5, err_msg=f"{devices} devices")
        close((state.params, state.statistics), (params, statistics))
    synchronised = split_by_hand(1)[2]
    assert np.abs(synchronised / losses - 1).max() > 1e-3  # the two are not the same thing


if __name__ == "__main__":
    run_named(globals())
