"""Checks of blocks of steps and of whole runs on eight devices; tests/runtime/meshes_test.py runs each in a process."""

import contextlib
import functools
import os
import pathlib
import re
import signal
import tempfile
from unittest import mock

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import corruptions
from data.dataset import Split
from models.layers import Options
from models.norms import BatchNorm
from models.resnet import SmallResNet
from runtime import meshes
from tests.checks import run_named
from tests.training import tiny
from training import augmentation, loop, run, states, steps, study

STEPS, BATCH, SIDE = 3, 32, 16
OPTIMIZER = optax.chain(optax.add_decayed_weights(1e-3), optax.sgd(0.05, momentum=0.9))


def network(seed=0):
    model = SmallResNet(10, Options(np.random.default_rng(seed), jnp.float32), stem=8, widths=(16,))
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
    join = lambda array: loop.join_batches(  # noqa: E731
        mesh, [jax.device_put(array, meshes.batch_sharding(row, axis=1)) for row in meshes.rows(mesh)]
    )
    keys = loop.stack_keys(mesh, [jax.random.key(0)] * mesh.shape["model"])
    return loop.stack_states(mesh, state), join(images), join(labels), keys


def trained(mesh, norm_groups=1):
    """(state, losses) of one model after a block on a mesh with one row."""
    graphdef, state = network()
    arguments = placed(mesh, state, *batches())
    states_, metrics = steps.train_models_block(mesh, graphdef, OPTIMIZER, *arguments, norm_groups=norm_groups)
    return loop.take_state(mesh, states_, 0, mesh), np.asarray(metrics["loss"])


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
        with pytest.raises(ValueError, match=r"config\.study\.parallel from 0 to the 8 devices"):
            meshes.training_mesh(one, parallel, 20, 32)


def no_copy_for_a_row():
    """Arrays that are replicated over all devices already lie on every row."""
    whole = Split(*(jax.device_put(np.arange(n), meshes.replicated(grid(1, 8))) for n in (3, 4, 5)))
    (row,) = meshes.rows(grid(1, 2))
    part = meshes.local_copy(whole, row)
    assert part.images.sharding.device_set == set(jax.devices()[:2])
    for one, other in zip(part.images.addressable_shards, whole.images.addressable_shards):
        assert one.data.unsafe_buffer_pointer() == other.data.unsafe_buffer_pointer()


@functools.cache
def communication(mesh, norm_groups=1):
    """Lists the collectives of the compiled block, [(operation, its line)], without those of branches.

    Branches are second passes of BatchNorm, for activations far from zero.
    """
    graphdef, state = network()
    arguments = placed(mesh, state, *batches())
    lowered = steps.train_models_block.lower(mesh, graphdef, OPTIMIZER, *arguments, norm_groups=norm_groups)
    operation = (
        r"\b(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast)(?:-start)?\("
    )
    lines = [line for line in lowered.compile().as_text().splitlines() if "/cond/branch_" not in line]
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
    """Counts collectives: those of synchronised statistics and one for the gradients; only the latter if devices keep their own."""
    graphdef, state = network()
    modules = nnx.iter_graph(nnx.merge(graphdef, state.params, state.statistics))
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


@contextlib.contextmanager
def counted_rounds():
    """Counts calls of the training program, and checks that each gives every device one model's work."""
    calls, original = [], steps.train_models_block

    def call(mesh, graphdef, optimizer, stacked, images, *rest, **options):
        rows, columns = mesh.devices.shape
        for shard in images.addressable_shards:
            assert shard.data.shape == (images.shape[0] // rows, images.shape[1] // columns, *images.shape[2:])
        calls.append(mesh.devices.shape)
        return original(mesh, graphdef, optimizer, stacked, images, *rest, **options)

    call._cache_size = original._cache_size
    with mock.patch.object(steps, "train_models_block", call):
        yield calls


class Setting:
    """Jobs of the smallest possible study: 5 steps an epoch, 2 epochs."""

    def __init__(self, root):
        rng = np.random.default_rng(0)
        images = rng.integers(0, 256, (160, SIDE, SIDE, 3)).astype(np.uint8)
        labels = np.arange(160, dtype=np.int32) % 10
        self.target = meshes.data_mesh()
        self.split = Split(images, labels, np.arange(160, dtype=np.int32)).to_device(meshes.replicated(self.target))
        self.root = pathlib.Path(root)

    def train(self, folder, members, mesh, **train):
        jobs = []
        for corruption, seed in members:
            config = tiny.config(corruption=corruption, **train)
            config.seed = seed
            path = self.root / folder / f"{corruption.replace('/', '.')}{seed}"
            path.mkdir(parents=True, exist_ok=True)
            one = study.model_config(config, corruption, seed)
            jobs.append(run.Job(states.Spec.of(one), lambda path=path: contextlib.nullcontext(path)))
        found = loop.train_jobs(jobs, self.split, 10, mesh=mesh, target=self.target)
        return {member: state for member, (_, state) in zip(members, found)}


MEMBERS = [("standard", 0), ("noc/border", 0), ("standard", 1), ("noc/border", 1), ("standard", 2), ("standard", 3)]


def rows_share_the_work_and_one_program():
    """Six models take six runs' rounds in one row and two in four rows, compile once, and come out the same."""
    with tempfile.TemporaryDirectory() as root:
        setting = Setting(root)
        found, at_the_end = {}, {"checkpoint_epochs": 2}
        for rows in (1, 4):
            with counted_rounds() as rounds, meshes.counting_compiles() as compiled:
                found[rows] = setting.train(f"rows{rows}", MEMBERS, grid(rows, 1), **at_the_end)
            alone = 2  # blocks of one model: an epoch each
            assert len(rounds) == -(-len(MEMBERS) // rows) * alone, rounds
            assert compiled["train_models_block"] == 1, compiled
            # The same jobs again, the other way round: nothing is left to do.
            with counted_rounds() as rounds:
                again = setting.train(f"rows{rows}", MEMBERS[::-1], grid(rows, 1), **at_the_end)
            chex.assert_trees_all_equal(again, found[rows])
            assert rounds == []
        close(found[4], found[1])  # bits may differ: two programs
        first, other = (jax.tree.leaves(found[4]["standard", seed].params)[0] for seed in (0, 1))
        assert not np.array_equal(first, other)
        # Neither the row nor the neighbours of a model matter.
        few = [MEMBERS[k] for k in (5, 1, 3)]
        again = setting.train("few", few, grid(4, 1), **at_the_end)
        chex.assert_trees_all_equal(again, {member: found[4][member] for member in few})


def a_study_continues_with_more_or_fewer_rows():
    with tempfile.TemporaryDirectory() as root:
        setting = Setting(root)
        whole = setting.train("whole", MEMBERS, grid(1, 1))
        for before, after in ((1, 4), (4, 1)):
            with ended_after(3) as saved:
                setting.train(f"from{before}", MEMBERS, grid(before, 1))
            assert saved == ([5, 10, 5] if before == 1 else [5, 5, 5])
            close(setting.train(f"from{before}", MEMBERS, grid(after, 1)), whole)


@contextlib.contextmanager
def ended_after(number):
    """Ends training instead of writing the checkpoint after `number` others; yields the steps of the written ones."""
    save, steps_saved = run.Checkpoints.save, []

    def stop(self, state):
        if len(steps_saved) == number:
            raise KeyboardInterrupt
        steps_saved.append(int(state.step))
        save(self, state)

    with mock.patch.object(run.Checkpoints, "save", stop), contextlib.suppress(KeyboardInterrupt):
        yield steps_saved


def stopped_between_the_checkpoints_of_two_models():
    """Killed when one model of a group is saved and the next is not, then continued: the bits of a study never stopped."""
    with tempfile.TemporaryDirectory() as root:
        setting = Setting(root)
        members = MEMBERS[:3]
        whole = setting.train("whole", members, grid(3, 2))
        with ended_after(2) as saved:
            setting.train("halves", members, grid(3, 2))
        assert saved == [5, 5]
        continued = setting.train("halves", members, grid(3, 2))
        chex.assert_trees_all_equal(continued, whole)
        for path in (setting.root / "whole").iterdir():
            losses = [tiny.metrics(setting.root / run / path.name, "loss") for run in ("whole", "halves")]
            assert losses[0] == losses[1] and len(losses[0]) == 2
        terminated_in_a_group(setting, members, whole)


def terminated_in_a_group(setting, members, whole):
    """SIGTERM in the first epoch: every model is saved, before its checkpoint is due, and continues to the same bits."""
    at = grid(3, 2)
    send = steps.train_models_block

    def terminate(*arguments, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        return send(*arguments, **options)

    with mock.patch.object(steps, "train_models_block", terminate), pytest.raises(SystemExit) as end:
        setting.train("terminated", members, at, checkpoint_epochs=2)
    assert end.value.code == 143
    assert sorted(path.name for path in setting.root.glob("terminated/*/checkpoints/[0-9]*")) == ["5", "5", "5"]
    chex.assert_trees_all_equal(setting.train("terminated", members, at, checkpoint_epochs=2), whole)


def finetuned_models_wait_for_their_standard_model():
    import data
    from tests.training import study_test

    config = study_test.finetuned()
    config.study.parallel = 4
    mesh = meshes.study_mesh(32, 4)
    dataset = data.load("shapes", train_limit=160, test_limit=70)
    split = dataset.train.to_device(meshes.replicated(mesh))
    with tempfile.TemporaryDirectory() as root, counted_rounds() as rounds:
        found = study.Trainings(config, ("standard", "noc/border"), (0, 1), root, dataset, split, mesh).train()
    assert [key for key in found] == [("standard", 0), ("noc/border", 0), ("standard", 1), ("noc/border", 1)]
    assert rounds == [(2, 4)] * 3  # two epochs of both standard models, one of both others
    for seed in (0, 1):
        standard, border = found["standard", seed][1], found["noc/border", seed][1]
        assert (int(standard.step), int(border.step)) == (10, 5)
        chex.assert_trees_all_equal(standard.params, border.params)  # at learning rate 0


def uneven_images_are_shared():
    """Twelve images on eight devices: each makes two, and the pixels are those of one device."""
    images = np.random.default_rng(0).integers(0, 256, (12, SIDE, SIDE, 3), np.uint8)
    key, index, options = jax.random.key(3), jnp.arange(12) + 5, {"range": [1, 3]}
    with mock.patch.object(augmentation, "_corrupted", wraps=augmentation._corrupted) as made:
        found = augmentation.corrupt_on_mesh(
            meshes.data_mesh(), key, images, "imagenet_c/gaussian_noise", None, index, options
        )
    (call,) = made.call_args_list
    assert call.args[2].shape == (2, SIDE, SIDE, 3)
    alone = corruptions.corrupt(key, images, "imagenet_c/gaussian_noise", index=index, range=(1, 3))
    np.testing.assert_array_equal(found, alone)


if __name__ == "__main__":
    # Whole blocks, as on accelerators; loop_test.py has the pieces.
    loop.in_pieces = lambda mesh: False
    run_named(globals())
