"""Checkpoints come back bit for bit; a damaged one gives way to the one before.

A finished model is read from the checkpoint that final.json names, or not at all; the same command repairs it.
"""

import contextlib
import errno
import io
import json
import os
import shutil
import tarfile
import zipfile

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from corruptions import remote
from runtime import distributed, files, workdirs
from runtime.files import DamagedFileError
from tests.refusing import refuses
from tests.training import tiny
from training import loop, study
from training.checkpoints import CheckpointError, Checkpoints, digest
from training.states import TrainState


def state(step):
    key = jax.random.key(step)
    params = {"kernel": jax.random.normal(key, (64, 33)), "bias": jnp.arange(5.0)}
    return TrainState(jnp.asarray(step, jnp.int32), params, {"mean": jnp.ones(3) * step}, (jnp.zeros(2),))


def save(directory, steps, keep=2):
    checkpoints = Checkpoints(directory, keep)
    for step in steps:
        checkpoints.save(state(step))
    checkpoints.close()


def restore(directory):
    checkpoints = Checkpoints(directory)
    try:
        return checkpoints.restore(jax.tree.map(jnp.zeros_like, state(0)))
    finally:
        checkpoints.close()


def largest_file(directory):
    return max((p for p in directory.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)


def test_round_trip(tmp_path):
    assert restore(tmp_path) is None
    save(tmp_path, [1, 2])
    found = restore(tmp_path)
    chex.assert_trees_all_equal(found, state(2))
    assert digest(found) == digest(state(2)) != digest(state(1))


def test_an_older_state_is_not_dropped_without_a_word(tmp_path):
    save(tmp_path, [5])
    refuses(lambda: save(tmp_path, [3]), "step 5", kind=CheckpointError)
    chex.assert_trees_all_equal(restore(tmp_path), state(5))


@pytest.mark.parametrize("of", [np.asarray, jnp.asarray])
def test_arrays_of_other_shapes_are_refused(tmp_path, of):
    """Orbax gave a NumPy array of the stored shape, whatever was asked for."""
    stored = jax.tree.map(of, state(1))
    with contextlib.closing(Checkpoints(tmp_path)) as checkpoints:
        checkpoints.save(stored)
        chex.assert_trees_all_equal(checkpoints.restore(jax.tree.map(np.zeros_like, stored)), stored)
        params = stored.params | {"kernel": of(np.zeros((64, 32), np.float32))}
        refuses(lambda: checkpoints.restore(stored._replace(params=params)), "(64, 32)", kind=CheckpointError)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"kernel": jnp.zeros((64, 32)), "bias": jnp.zeros(5)}, "params/kernel"),
        ({"kernel": jnp.zeros((64, 33), jnp.bfloat16), "bias": jnp.zeros(5)}, "bfloat16"),
        ({"kernel": jnp.zeros((64, 33))}, "params/bias"),
        ({"kernel": jnp.zeros((64, 33)), "bias": jnp.zeros(5), "more": jnp.zeros(3)}, "params/more"),
    ],
)
def test_a_checkpoint_of_another_network_is_called_so_and_stays(params, said, tmp_path, caplog):
    """Not damaged, not to be removed, and no word of Orbax's options."""
    save(tmp_path, [1, 2])
    with contextlib.closing(Checkpoints(tmp_path)) as checkpoints:
        with pytest.raises(CheckpointError, match=f"another network.*{said}") as refused:
            checkpoints.restore(state(0)._replace(params=params))
        with pytest.raises(CheckpointError, match=f"another network.*{said}"):
            checkpoints.read(state(0)._replace(params=params), 2, "")
    for word in ("strict", "damaged", "remove"):
        assert word not in str(refused.value) + caplog.text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (FULL, True),
        (ValueError(f"RESOURCE_EXHAUSTED: Error writing: {os.strerror(errno.EDQUOT)}"), True),
        (ExceptionGroup("several", [FULL]), True),
        (PermissionError(errno.EACCES, os.strerror(errno.EACCES)), False),
        (TimeoutError("no answer"), False),
    ],
)
def test_room_is_advised_where_a_disk_is_full(error, full, tmp_path, monkeypatch):
    with contextlib.closing(Checkpoints(tmp_path)) as checkpoints:
        monkeypatch.setattr(checkpoints._manager, "save", lambda *_, **__: (_ for _ in ()).throw(error))
        with pytest.raises(CheckpointError, match="the same command continues") as told:
            checkpoints.save(state(1))
    assert ("make room" in str(told.value)) == full


def test_a_checkpoint_too_many_goes(tmp_path):
    """Makes the checkpoints that a kill leaves between writing one and removing another."""
    save(tmp_path, [1, 2, 3, 4], keep=4)
    chex.assert_trees_all_equal(restore(tmp_path), state(4))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3", "4"]


def truncate(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [truncate, flip_a_bit])
def test_damaged_checkpoint_falls_back_and_says_so(tmp_path, damage, caplog):
    save(tmp_path, [1, 2])
    damage(largest_file(tmp_path / "2" / "state"))
    found = restore(tmp_path)
    chex.assert_trees_all_equal(found, state(1))
    assert "2 is damaged" in caplog.text
    save(tmp_path, [2])  # the same step can be written again
    chex.assert_trees_all_equal(restore(tmp_path), state(2))


def test_nothing_readable_is_an_error_that_says_what_to_do(tmp_path):
    save(tmp_path, [1, 2])
    for step in ("1", "2"):
        truncate(largest_file(tmp_path / step / "state"))
    refuses(lambda: restore(tmp_path), "folder to train again", kind=CheckpointError)
    assert (tmp_path / "2").exists()


@pytest.fixture(scope="module")
def config():
    return study.model_config(tiny.config(), "standard", 0)


def train(config, dataset, workdir, mesh):
    with workdirs.open_workdir(workdir, config.to_dict()) as path:
        return loop.train(config, dataset.train.to_device(), dataset.num_classes, path, mesh=mesh)


@pytest.fixture(scope="module")
def finished(config, dataset, mesh, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("run") / "work"
    train(config, dataset, workdir, mesh)
    return workdir


lose = shutil.rmtree


def take_the_one_before(step):
    """The folder of the last step holds the checkpoint of the step before, undamaged."""
    before = min(step.parent.glob("[0-9]*"), key=lambda p: int(p.name))
    shutil.rmtree(step)
    shutil.copytree(before, step)


def take_anothers(step):
    """The folder of the last step holds the last state of another run, undamaged and complete."""
    workdirs.write_final(step.parents[1], **workdirs.read_final(step.parents[1]) | {"digest": "0" * 64})


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lose, "found [5]"),
        (lambda step: flip_a_bit(largest_file(step / "state")), "is damaged"),
        (take_the_one_before, "holds the state of step 5"),
        (take_anothers, "with the digest"),
    ],
)
def test_no_earlier_state_is_taken_for_the_finished_model(config, mesh, finished, tmp_path, damage, reason):
    workdir = shutil.copytree(finished, tmp_path / "work")
    damage(workdir / "checkpoints" / "10")
    before = sorted(p.relative_to(workdir) for p in workdir.rglob("*"))
    with pytest.raises(CheckpointError) as refused:
        loop.read_back(config, 32, 10, workdir, mesh=mesh)
    command = json.loads((workdir / "provenance.json").read_text())["command"]
    assert reason in str(refused.value) and str(workdir) in str(refused.value) and command in str(refused.value)
    assert sorted(p.relative_to(workdir) for p in workdir.rglob("*")) == before  # reading deletes nothing


@pytest.mark.parametrize("damage", [lose, take_the_one_before, take_anothers])
def test_the_command_given_again_trains_what_is_missing(config, dataset, mesh, finished, tmp_path, damage):
    """No other state is taken for the last. It is read as overlap.py reads stored models: training finds them."""
    workdir = shutil.copytree(finished, tmp_path / "work")
    damage(workdir / "checkpoints" / "10")
    state, expected = train(config, dataset, workdir, mesh)[1], workdirs.read_final(finished)
    assert {"step": int(state.step), "digest": digest(state), "num_classes": 10} == expected
    assert workdirs.read_final(workdir) == expected
    assert digest(loop.read_back(config, 32, 10, workdir, mesh=mesh)[1]) == expected["digest"]


@pytest.fixture(scope="module")
def of_another_seed(config, dataset, mesh, tmp_path_factory):
    another = config.copy_and_resolve_references()
    another.seed = 1
    workdir = tmp_path_factory.mktemp("seed1") / "work"
    train(another, dataset, workdir, mesh)
    return workdir


def test_state_of_another_seed_is_refused(config, dataset, mesh, finished, of_another_seed, tmp_path):
    """Copied into a finished workdir: all of it, the checkpoints alone, and into a workdir before its end."""
    both, one, begun = (shutil.copytree(finished, tmp_path / name) for name in ("both", "one", "begun"))
    for workdir in (both, one, begun):
        shutil.rmtree(workdir / "checkpoints")
        shutil.copytree(of_another_seed / "checkpoints", workdir / "checkpoints")
    shutil.copy(of_another_seed / "final.json", both)
    (begun / "final.json").unlink()
    of_another = r"expected state of the model of config\.json \(standard, seed 0, .*found .*\(standard, seed 1, "
    for read in (
        lambda path: loop.read_back(config, 32, 10, path, mesh=mesh),
        lambda path: train(config, dataset, path, mesh),
    ):
        with pytest.raises(DamagedFileError, match=rf"final\.json: {of_another}"):
            read(both)
        with pytest.raises(CheckpointError, match=of_another):
            read(one)
    with pytest.raises(CheckpointError, match=rf"(?s)remove the folder to train again:\n  step 10 .*{of_another}"):
        train(config, dataset, begun, mesh)
    assert (begun / "checkpoints" / "10").is_dir()


def test_a_damaged_mark_is_named(config, mesh, finished, tmp_path):
    workdir = shutil.copytree(finished, tmp_path / "work")
    whole = {"step": 4, "digest": "0", "num_classes": 10}
    damaged = ([], {}, whole | {"step": "4"}, {"step": 4}, whole | {"num_classes": "10"})
    for content in ("{", *map(json.dumps, damaged)):
        (workdir / "final.json").write_text(content)
        with pytest.raises(DamagedFileError, match=r"final\.json: expected"):
            loop.read_back(config, 32, 10, workdir, mesh=mesh)


def test_checkpoints_in_a_bucket_come_back_on_another_machine(tmp_path, monkeypatch):
    """Each is one object, of release 0.2 a .tar; a damaged one gives way to the one before, and leaves the bucket. Many
    processes, which could not read them, are refused.
    """
    bucket = MemoryFileSystem()
    objects = lambda: sorted(bucket.find("checkpoints/run/checkpoints"))  # noqa: E731

    def on(machine, function, *args):
        monkeypatch.setattr(remote, "copies", {})
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / machine))
        with workdirs.open_workdir(files.local("memory://checkpoints/run", use="hold"), {"seed": 1}) as workdir:
            return function(workdir / "checkpoints", *args)

    on("first", save, [1, 2, 3])
    kept = [f"/checkpoints/run/checkpoints/{step}.zip" for step in (2, 3)]
    assert objects() == kept
    chex.assert_trees_all_equal(on("second", restore), state(3))
    with zipfile.ZipFile(io.BytesIO(bucket.cat_file(kept[1]))) as archive:
        archive.extractall(tmp_path / "3")
    with tarfile.open(tmp_path / "3.tar", "w") as archive:
        archive.add(tmp_path / "3", arcname=".")
    bucket.rm_file(kept[1])
    bucket.put_file(tmp_path / "3.tar", kept[1].replace(".zip", ".tar"))
    chex.assert_trees_all_equal(on("second", restore), state(3))
    content = bucket.cat_file(kept[0])
    bucket.pipe_file(kept[0], content[: len(content) // 2])
    on("first", save, [4])
    assert objects() == [kept[1].replace(".zip", ".tar"), kept[1].replace("3.zip", "4.zip")]
    bucket.pipe_file(kept[1].replace("3.zip", "4.zip"), content[: len(content) // 2])
    chex.assert_trees_all_equal(on("third", restore), state(3))
    assert objects() == [kept[1].replace(".zip", ".tar")]

    def continued_by_many_processes(folder):
        with monkeypatch.context() as patch, pytest.raises(CheckpointError, match="continue it in one process"):
            patch.setattr(distributed, "several", lambda: True)
            patch.setattr(files.copy_of(folder), "address", "gs://checkpoints/run")
            Checkpoints(folder)

    on("fourth", continued_by_many_processes)
