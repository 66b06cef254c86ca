"""Streamed images: the same batches, parameters and answers as from device memory, bit for bit."""

import dataclasses
import json
import os
import random
import signal
import time

import jax
import numpy as np
import pytest

from corruptions.scoring.conditions import Condition
from data.dataset import ShardedImages, Split
from evaluation import correctness
from evaluation.shown import Shown
from runtime import workdirs
from tests.training import tiny
from tests.training.running import start
from training import batches, loop, stream, study
from training.batches import Plan


@pytest.fixture(scope="module")
def sharded(dataset):
    """The same training images in shards of unequal length."""
    cuts = np.split(dataset.train.images, [3, 70, 71, 140])
    images = ShardedImages(cuts, dataset.image_shape)
    return Split(images, dataset.train.labels, dataset.train.index)


def orders(plan):
    return lambda epoch: batches.epoch_order(jax.random.fold_in(jax.random.key(5), epoch), plan.views)


def all_blocks(config, split, mesh, begin=0):
    """Images and labels of every block of a run, on the host."""
    plan = Plan(config.train, split.images.shape)
    keys = batches.Keys(*(jax.random.key(k) for k in (6, 7, 8, 9)))
    found = []
    with stream.source(split, plan, orders(plan), begin, mesh) as source:
        for step in range(begin, plan.total_steps, plan.block_steps):
            epoch, _ = plan.place(step)
            block = batches.block(plan, source, orders(plan)(epoch), step, keys, mesh)
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
    with stream.source(dataset.train, plan, orders(plan), 0, mesh) as source:
        with pytest.raises(ValueError, match="expected the block at step 0, which comes next, found 5"):
            source.take(5)


def test_blocks_are_read_ahead_and_not_all_at_once(dataset, mesh, monkeypatch):
    monkeypatch.setattr("training.batches._CPU_BLOCK_STEPS", 1)
    seen = []

    class Images(ShardedImages):
        def __getitem__(self, key):
            seen.append(len(key))
            return super().__getitem__(key)

    split = Split(Images([dataset.train.images], dataset.image_shape), dataset.train.labels, dataset.train.index)
    config = tiny.config(epochs=40)
    plan = Plan(config.train, split.images.shape)
    with stream.source(split, plan, orders(plan), 0, mesh) as source:
        source.take(0)
        deadline = time.monotonic() + 10
        while len(seen) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        assert 2 <= len(seen) <= 6  # of 200 steps


def train(config, split, folder, mesh):
    folder.mkdir()
    single = study.model_config(config, config.train.corruption, config.seed)
    return loop.train(single, split, 10, folder, mesh=mesh)


def test_training_and_evaluation_are_bit_identical(dataset, sharded, mesh, tmp_path, monkeypatch):
    config = tiny.config(corruption="noc/border", batch_size=32, epochs=1)
    resident = train(config, dataset.train.to_device(), tmp_path / "resident", mesh)
    streamed = train(config, sharded, tmp_path / "streamed", mesh)
    first, second = (json.loads((tmp_path / name / "final.json").read_text()) for name in ("resident", "streamed"))
    assert first == second  # step, and sha256 of all parameters

    host = Split(ShardedImages([dataset.test.images], dataset.image_shape), dataset.test.labels, dataset.test.index)
    device = dataset.test.to_device()
    conditions = Condition("clean", "0"), Condition("imagenet_c/gaussian_noise", "3")

    def answers(split):
        shown = Shown(split, mesh, 20)
        return [correctness.of_models({"a": resident, "b": streamed}, shown.under(one)) for one in conditions]

    whole = answers(device)
    assert [len(part) for part in stream.pieces(device, 20, mesh)] == [70]
    monkeypatch.setattr(stream, "_PIECE_BYTES", 40 * 32 * 32 * 3)  # two batches
    for split in (host, device):
        assert [len(part) for part in stream.pieces(split, 20, mesh)] == [40, 30]
        for found, expected in zip(answers(split), whole, strict=True):
            for key in ("a", "b"):
                assert expected[key].shape == (70,)
                np.testing.assert_array_equal(found[key], expected["a"])


def test_where_splits_go(dataset, mesh, monkeypatch):
    dataset = dataclasses.replace(dataset, train=dataset.test, test=dataset.train)
    size = dataset.train.images.nbytes, dataset.test.images.nbytes
    assert size[0] < size[1]

    def placed(placement, free, **names):
        monkeypatch.setattr(stream, "_free_bytes", lambda mesh: free)
        return [stream.on_device(split) for split in stream.place_splits(dataset, placement, mesh, **names)]

    assert placed("device", 0) == [True, True] and placed("stream", 1e12) == [False, False]
    assert placed("auto", size[0] + 2 * size[1]) == [True, True]
    assert placed("auto", 2 * size[0]) == [True, False]  # what is left does not do for the test images
    assert placed("auto", 2 * size[0] - 2) == [False, False]
    assert placed("device", 0, placed=("test",)) == [False, True]
    dataset = dataclasses.replace(dataset, train=dataset.test, test=dataset.train)
    assert placed("auto", 2 * size[0]) == [False, True]
    with pytest.raises(ValueError, match="auto, device or stream, found 'host'"):
        placed("host", 0)


def test_free_memory_of_devices(mesh):
    class Device:
        process_index = 0

        def __init__(self, stats):
            self.memory_stats = lambda: stats

    @dataclasses.dataclass
    class Mesh:
        devices: np.ndarray

        @property
        def local_devices(self):
            return list(self.devices.flat)

    gpu = Mesh(np.array([[Device({"bytes_limit": 100, "bytes_in_use": 30})] * 2]))
    assert stream._free_bytes(gpu) == 70
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert stream._free_bytes(Mesh(np.array([[Device(None)] * 2]))) == memory / 2


def test_placement_may_change_between_runs(tmp_path):
    for placement in ("stream", "device"):
        config = tiny.config()
        config.dataset.placement = placement
        with workdirs.open_workdir(tmp_path, study.model_config(config, "standard", 0).to_dict(), free=study.FREE):
            pass


@pytest.mark.slow
def test_a_killed_stream_continues_to_the_parameters_of_a_resident_run(tmp_path):
    whole = start(tmp_path / "whole", "--config.dataset.placement=device")
    output, _ = whole.communicate(timeout=250)
    assert whole.returncode == 0, output
    process = start(tmp_path / "killed", "--config.dataset.placement=stream")
    while process.poll() is None and not list((tmp_path / "killed").glob("checkpoints/*5")):
        time.sleep(0.01)
    time.sleep(random.Random(1).uniform(0, 0.2))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "final.json").exists()
    last = start(tmp_path / "killed", "--config.dataset.placement=stream")
    output, _ = last.communicate(timeout=250)
    assert last.returncode == 0 and "are streamed from the host" in output, output
    for name in ("final.json", "clean.json"):
        assert (tmp_path / "killed" / name).read_text() == (tmp_path / "whole" / name).read_text()
