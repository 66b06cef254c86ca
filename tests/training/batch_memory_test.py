"""A batch that does not fit a device's memory is refused before the first step, with one that does."""

import contextlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import data
from benchmarks.compiled import programs
from configs import default
from runtime import meshes, workdirs
from runtime.settings import SettingsError
from tests.training import tiny
from training import loop, rows, states, stream, study
from training.checkpoint import Checkpoints
from training.run import MetricsLog

MIB = 2**20
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
        monkeypatch.setattr(stream, "free_bytes", lambda mesh: free)
        rows.check_memory(mesh, lower, images, labels, parts)

    return check


def needed():
    """What a block of batches of 32 needs, by its compiler, with the images of the next."""
    images, labels = jax.ShapeDtypeStruct((2, 32, SIDE, SIDE, 3), np.uint8), jax.ShapeDtypeStruct((2, 32), np.int32)
    return rows.beyond_arguments(block.lower(images, labels).compile()) + images.size


def test_what_fits_passes_and_what_does_not_names_the_largest_batch(checked):
    whole = needed()
    assert whole > 64 * 4 * 2 * 32 * SIDE * SIDE * 3
    checked(whole)
    with pytest.raises(SettingsError, match=r"config\.train\.batch_size: expected .* free on cpu, found 32, ") as error:
        checked(whole * 0.7)
    largest, compiled = map(int, re.search(r"is about (\d+) \((\d+) need", str(error.value)).groups())
    assert compiled == 16 and 20 <= largest <= 22  # .7 of 32 is 22.4; what does not grow makes it less
    with pytest.raises(SettingsError, match="no batch fits"):
        checked(10)


def test_only_batches_that_split_evenly_are_named(checked):
    with pytest.raises(SettingsError, match=r"about 16 \(16 need"):
        checked(needed() * 0.7, parts=8)


def test_a_compiler_that_refuses_is_asked_about_smaller_batches(checked):
    def lower(images, labels):
        if images.shape[1] > 8:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm")
        return block.lower(images, labels)

    with pytest.raises(SettingsError, match=r"found 32, which its compiler has no room for; .* about 15 \(8 need"):
        checked(100 * MIB, lower)

    def fail(images, labels):
        raise jax.errors.JaxRuntimeError("INTERNAL")

    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        checked(100 * MIB, fail)


def test_processes_name_a_batch_that_fits_all_of_them(checked, monkeypatch):
    another = iter([True, True, False])  # has less free: 16 do not fit there
    monkeypatch.setattr(rows.distributed, "anyone", lambda flag: next(another) or flag)
    with pytest.raises(SettingsError, match=r"\(8 need"):
        checked(needed() * 0.7)


def test_what_a_refused_run_has_opened_does_not_bind_its_workdir(tmp_path):
    for size in (32, 16):
        with contextlib.ExitStack() as stack:
            stack.enter_context(workdirs.open_workdir(tmp_path, {"train": {"batch_size": size}}))
            stack.enter_context(contextlib.closing(Checkpoints(tmp_path / "checkpoints")))
            stack.enter_context(contextlib.closing(MetricsLog(tmp_path / "metrics.jsonl", 0)))
    assert workdirs.read_config(tmp_path)["train"]["batch_size"] == 16


def test_devices_that_do_not_tell_are_not_asked(monkeypatch):
    assert stream.free_bytes(meshes.data_mesh()) is None  # a CPU
    rows.check_memory(meshes.data_mesh(), None, None, None, 1)


@pytest.fixture(scope="module")
def dataset():
    return data.load("shapes", train_limit=160, test_limit=70)


def train(dataset, workdir):
    mesh = meshes.data_mesh(32)
    config = study.model_config(tiny.config(epochs=1), "standard", 0)
    with workdirs.open_workdir(workdir, config.to_dict()):
        return loop.train(config, dataset.train.to_device(), dataset.num_classes, workdir, mesh=mesh)


@pytest.mark.slow
def test_training_asks_before_its_first_step_and_compiles_once(dataset, tmp_path, monkeypatch):
    needed, own = [], rows._needed
    monkeypatch.setattr(rows, "_needed", lambda *given: needed.append(own(*given)) or needed[-1])
    monkeypatch.setattr(stream, "free_bytes", lambda mesh: 2**40)
    with meshes.counting_compiles() as compiled:
        train(dataset, tmp_path / "fits")
    assert compiled["train_models_block"] == 1
    monkeypatch.setattr(stream, "free_bytes", lambda mesh: needed[0] * 0.7)
    with pytest.raises(SettingsError, match=r"config\.train\.batch_size: .* found 32, whose steps need .* \(16 need"):
        train(dataset, tmp_path / "does_not")
    assert not (tmp_path / "does_not" / "final.json").exists()
    with workdirs.open_workdir(tmp_path / "does_not", {"train": {"batch_size": 16}}):
        pass


@pytest.mark.slow
def test_the_state_is_donated_whole():
    """Of a block's arguments the state, and nothing else, gives its memory to the results."""
    network = states.abstract_model(study.model_config(tiny.config(), "standard", 0), 10, 32)
    optimizer = states.make_optimizer(default.get_config().train, 5)
    shown = jax.ShapeDtypeStruct((5, 32, 32, 32, 3), np.uint8)
    found = programs.training(network, optimizer, shown, meshes.data_mesh(1)).lower().compile().memory_analysis()
    leaves = jax.tree.leaves(programs.first_state(network, optimizer)[1])
    state = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
    assert found.alias_size_in_bytes == state
