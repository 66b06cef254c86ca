"""Streamed images equal those in device memory, bit for bit; a batch that does not fit is refused before the first step."""

import contextlib
import dataclasses
import json
import os
import random
import re
import signal
import time
import types

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.compiled import programs
from configs import default
from corruptions.scoring.conditions import Condition
from data.dataset import ShardedImages, Split
from evaluation import correctness
from evaluation.shown import Shown
from runtime import meshes, workdirs
from runtime.settings import SettingsError
from tests.refusing import refuses
from tests.training import tiny
from training import batches, loop, memory, states, study
from training.batches import Plan
from training.checkpoints import Checkpoints
from training.run import MetricsLog


@pytest.fixture(scope="module")
def sharded(dataset):
    """The same training images in shards of unequal length."""
    cuts = np.split(dataset.train.images, [3, 70, 71, 140])
    images = ShardedImages(cuts, dataset.image_shape)
    return Split(images, dataset.train.labels, dataset.train.index)


def orders(plan):
    return lambda epoch: batches.epoch_order(jax.random.fold_in(jax.random.key(5), epoch), plan.images_per_epoch)


def all_blocks(config, split, mesh, begin=0):
    """Images and labels of every block of a run, on the host."""
    plan = Plan(config.train, split.images.shape)
    found = []
    with memory.source(split, plan, orders(plan), begin, mesh) as source:
        for step in range(begin, plan.total_steps, plan.block_steps):
            epoch, _ = plan.place(step)
            block = batches.block(plan, source, orders(plan)(epoch), step, tiny.KEYS, mesh)
            found.append(jax.tree.map(np.asarray, block))
    return plan, found


def test_blocks_are_those_of_device_memory(dataset, sharded, mesh, monkeypatch):
    monkeypatch.setattr("training.batches._CPU_BLOCK_STEPS", 3)  # several blocks an epoch
    # In the code reading an epoch holds every image twice, and which copy it is matters.
    config = tiny.config(corruption="noc/border", reading="code", epochs=3, batch_size=32)
    plan, expected = all_blocks(config, dataset.train.to_device(), mesh)
    assert plan.block_steps < plan.steps_per_epoch
    _, found = all_blocks(config, sharded, mesh)
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    _, late = all_blocks(config, sharded, mesh, begin=5 * plan.block_steps)  # as after a restart
    jax.tree.map(np.testing.assert_array_equal, late, expected[5:])


def test_blocks_are_asked_for_in_order(dataset, mesh):
    config = tiny.config()
    plan = Plan(config.train, dataset.train.images.shape)
    with memory.source(dataset.train, plan, orders(plan), 0, mesh) as source:
        refuses(lambda: source.take(5), "expected the block at step")


@pytest.mark.parametrize("fit, least, most", [(3, 2, 6), (1000, 12, 24)])
def test_blocks_are_read_ahead_and_not_all_at_once(dataset, mesh, monkeypatch, fit, least, most):
    """Each block has one step. The stream reads as many steps ahead as fit in memory, at most one for each of 16 threads."""
    monkeypatch.setattr("training.batches._CPU_BLOCK_STEPS", 1)
    seen = []

    class Images(ShardedImages):
        def __getitem__(self, key):
            seen.append(len(key))
            return super().__getitem__(key)

    split = Split(Images([dataset.train.images], dataset.image_shape), dataset.train.labels, dataset.train.index)
    config = tiny.config(epochs=40)
    plan = Plan(config.train, split.images.shape)
    monkeypatch.setattr(memory, "_AHEAD_BYTES", fit * plan.step_bytes)
    with memory.source(split, plan, orders(plan), 0, mesh) as source:
        source.take(0)
        deadline = time.monotonic() + 10
        while len(seen) < least and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        assert least <= len(seen) <= most  # of 200 steps


def test_a_process_reads_the_images_of_its_own_devices(dataset, monkeypatch):
    """A block has two steps and lies on eight devices; the last three are this process's."""
    monkeypatch.setattr("training.batches._CPU_BLOCK_STEPS", 2)
    plan = Plan(tiny.config(batch_size=16).train, dataset.train.images.shape)
    rows = [(slice(4 * k, 4 * k + 4),) for k in (5, 6, 7)]
    sharding = types.SimpleNamespace(addressable_devices_indices_map=lambda shape: dict(enumerate(rows)))
    local = memory._local(sharding, 32).reshape(2, 16)
    assert plan.block_steps == 2 and local.sum(1).tolist() == [0, 12]
    whole = memory._Steps(dataset.train, plan, orders(plan), np.ones((2, 16), bool))
    shards = ShardedImages(np.split(dataset.train.images, 4), dataset.image_shape)
    part = memory._Steps(dataclasses.replace(dataset.train, images=shards), plan, orders(plan), local)
    for step in (0, 1, 6, 7):
        (images, *others), (own, *same) = whole[step], part[step]
        mine = local[step % 2]
        np.testing.assert_array_equal(own[mine], images[mine])
        assert not own[~mine].any()
        chex.assert_trees_all_equal(others, same)


def train(config, split, folder, mesh):
    single = study.model_config(config, config.train.corruption, config.seed)
    with workdirs.open_workdir(folder, single.to_dict()):
        return loop.train(single, split, 10, folder, mesh=mesh)


def test_training_and_evaluation_are_bit_identical(dataset, sharded, mesh, tmp_path, monkeypatch):
    config = tiny.config(corruption="noc/border", batch_size=32, epochs=1)
    resident = train(config, dataset.train.to_device(), tmp_path / "resident", mesh)
    streamed = train(config, sharded, tmp_path / "streamed", mesh)
    first, second = (json.loads((tmp_path / name / "final.json").read_text()) for name in ("resident", "streamed"))
    assert first == second  # step, and sha256 of all parameters
    assert {"dataset.placement", "dataset.data_dir"} < set(workdirs.PLACES)  # one run may continue with the other

    host = Split(ShardedImages([dataset.test.images], dataset.image_shape), dataset.test.labels, dataset.test.index)
    device = dataset.test.to_device()
    conditions = Condition("clean", "0"), Condition("imagenet_c/gaussian_noise", "3")

    def answers(split):
        shown = Shown(split, mesh, 20)
        return [correctness.of_models({"a": resident, "b": streamed}, shown.under(one)) for one in conditions]

    whole = answers(device)
    assert [len(part) for part in memory.pieces(device, 20, mesh)] == [70]
    monkeypatch.setattr(memory, "_PIECE_BYTES", 40 * 32 * 32 * 3)  # two batches
    for split in (host, device):
        assert [len(part) for part in memory.pieces(split, 20, mesh)] == [40, 30]
        for found, expected in zip(answers(split), whole, strict=True):
            for key in ("a", "b"):
                assert expected[key].shape == (70,)
                np.testing.assert_array_equal(found[key], expected["a"])


def test_where_splits_go(dataset, mesh, monkeypatch):
    dataset = dataclasses.replace(dataset, train=dataset.test, test=dataset.train)
    size = dataset.train.images.nbytes, dataset.test.images.nbytes
    assert size[0] < size[1]

    def placed(placement, free, **names):
        monkeypatch.setattr(memory, "_free_bytes", lambda mesh: free)
        return [memory.on_device(split) for split in memory.place_splits(dataset, placement, mesh, **names)]

    assert placed("device", 0) == [True, True] and placed("stream", 1e12) == [False, False]
    assert placed("auto", size[0] + 2 * size[1]) == [True, True]
    assert placed("auto", 2 * size[0]) == [True, False]  # the rest is too small for the test images
    assert placed("auto", 2 * size[0] - 2) == [False, False]
    assert placed("device", 0, placed=("test",)) == [False, True]
    dataset = dataclasses.replace(dataset, train=dataset.test, test=dataset.train)
    assert placed("auto", 2 * size[0]) == [False, True]


def test_free_memory_of_devices(mesh):
    def free(stats):
        devices = [types.SimpleNamespace(process_index=0, memory_stats=lambda: stats)] * 2
        return memory._free_bytes(types.SimpleNamespace(devices=np.array([devices]), local_devices=devices))

    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert free({"bytes_limit": 100, "bytes_in_use": 30}) == 70 and free(None) == installed / 2


@pytest.mark.slow
def test_a_killed_stream_continues_to_the_parameters_of_a_resident_run(tmp_path):
    tiny.end(tiny.start(tmp_path / "whole", "--config.dataset.placement=device"))
    process = tiny.start(tmp_path / "killed", "--config.dataset.placement=stream")
    tiny.wait_for(process, lambda: list((tmp_path / "killed").glob("checkpoints/*5")))
    time.sleep(random.Random(1).uniform(0, 0.2))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "final.json").exists()
    output = tiny.end(tiny.start(tmp_path / "killed", "--config.dataset.placement=stream"))
    assert "are streamed from the host" in output
    for name in ("final.json", "clean.json"):
        assert (tmp_path / "killed" / name).read_text() == (tmp_path / "whole" / name).read_text()


SIDE = 16


@jax.jit
def block(images, labels):
    """A step that holds 64 values for each of an image, all at once."""
    wide = jnp.sort(jnp.tile(images.astype(jnp.float32)[..., None], 64), axis=-1)
    return jnp.sort(wide, axis=2).sum() + labels.sum().astype(jnp.float32)


@pytest.fixture
def checked(monkeypatch):
    """Checks a block of batches of 32 on a device with so many MiB free, told by its own words."""
    mesh = meshes.data_mesh(1)
    images = jax.device_put(np.zeros((2, 32, SIDE, SIDE, 3), np.uint8), meshes.by_model(mesh, "data"))
    labels = jax.device_put(np.zeros((2, 32), np.int32), meshes.by_model(mesh, "data"))

    def check(free, lower=block.lower, parts=1):
        monkeypatch.setattr(memory, "free_bytes", lambda mesh: free)
        memory.check_memory(mesh, lower, images, labels, parts)

    return check


def needed():
    """Measures the need of a block of batches of 32, by its compiler, with the next block's images."""
    images, labels = jax.ShapeDtypeStruct((2, 32, SIDE, SIDE, 3), np.uint8), jax.ShapeDtypeStruct((2, 32), np.int32)
    return memory.beyond_arguments(block.lower(images, labels).compile()) + images.size


def test_what_fits_passes_and_what_does_not_names_the_largest_batch(checked):
    whole = needed()
    assert whole > 64 * 4 * 2 * 32 * SIDE * SIDE * 3
    checked(whole)
    with pytest.raises(SettingsError, match=r"config\.train\.batch_size: expected .* free on cpu, found 32, ") as error:
        checked(whole * 0.7)
    largest, compiled = map(int, re.search(r"is about (\d+) \((\d+) need", str(error.value)).groups())
    assert compiled == 16 and 20 <= largest <= 22  # .7 of 32 is 22.4; constant memory makes it less
    refuses(lambda: checked(10), "no batch fits", kind=SettingsError)
    refuses(lambda: checked(needed() * 0.7, parts=8), "about 16 (16 need", kind=SettingsError)


def test_a_compiler_that_refuses_is_asked_about_smaller_batches(checked):
    def lower(images, labels):
        if images.shape[1] > 8:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm")
        return block.lower(images, labels)

    refuses(lambda: checked(2**27, lower), "has no room for", "about 15 (8 need", kind=SettingsError)

    def fail(images, labels):
        raise jax.errors.JaxRuntimeError("INTERNAL")

    refuses(lambda: checked(2**27, fail), "INTERNAL", kind=jax.errors.JaxRuntimeError)


def test_processes_name_a_batch_that_fits_all_of_them(checked, monkeypatch):
    another = iter([True, True, False])  # has less free: 16 do not fit there
    monkeypatch.setattr(memory.distributed, "anyone", lambda flag: next(another) or flag)
    refuses(lambda: checked(needed() * 0.7), "(8 need", kind=SettingsError)


def test_what_a_refused_run_has_opened_does_not_bind_its_workdir(tmp_path):
    for size in (32, 16):
        with contextlib.ExitStack() as stack:
            stack.enter_context(workdirs.open_workdir(tmp_path, {"train": {"batch_size": size}}))
            stack.enter_context(contextlib.closing(Checkpoints(tmp_path / "checkpoints")))
            stack.enter_context(contextlib.closing(MetricsLog(tmp_path / "metrics.jsonl", 0)))
    assert workdirs.read_config(tmp_path)["train"]["batch_size"] == 16


def test_the_devices_of_a_cpu_share_what_the_machine_has_left(mesh, monkeypatch):
    monkeypatch.setattr(memory.machine, "free_memory", lambda: 100)
    assert memory.free_bytes(mesh) == 100 // len(mesh.local_devices)


def test_where_nothing_tells_the_free_memory_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(memory.machine, "free_memory", lambda: None)
    assert memory.free_bytes(meshes.data_mesh()) is None  # a CPU
    memory.check_memory(meshes.data_mesh(), None, None, None, 1)
    memory.check_images(2**40, (224, 224, 3), meshes.data_mesh())


@pytest.mark.slow
def test_training_asks_before_its_first_step_and_compiles_once(dataset, mesh, tmp_path, monkeypatch):
    needed, own = [], memory._needed
    monkeypatch.setattr(memory, "_needed", lambda *given: needed.append(own(*given)) or needed[-1])
    monkeypatch.setattr(memory, "free_bytes", lambda mesh: 2**40)
    config, split = tiny.config(epochs=1), dataset.train.to_device()
    with meshes.counting_compiles() as compiled:
        train(config, split, tmp_path / "fits", mesh)
    assert compiled["train_models_block"] == 1
    monkeypatch.setattr(memory, "free_bytes", lambda mesh: needed[0] * 0.7)
    refuses(lambda: train(config, split, tmp_path / "does_not", mesh), "config.train.batch_size", kind=SettingsError)
    assert not (tmp_path / "does_not" / "final.json").exists()
    with workdirs.open_workdir(tmp_path / "does_not", {"train": {"batch_size": 16}}):
        pass


@pytest.mark.slow
def test_the_state_is_donated_whole():
    """Only the state, among a block's arguments, gives its memory to the results."""
    network = states.abstract_model(study.model_config(tiny.config(), "standard", 0), 10, 32)
    optimizer = states.make_optimizer(default.get_config().train, 5)
    shown = jax.ShapeDtypeStruct((5, 32, 32, 32, 3), np.uint8)
    found = programs.training(network, optimizer, shown, meshes.data_mesh(1)).lower().compile().memory_analysis()
    leaves = jax.tree.leaves(programs.first_state(network, optimizer)[1])
    state = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
    assert found.alias_size_in_bytes == state
