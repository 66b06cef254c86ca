"""A finished model is read from the checkpoint that final.json names, or not at all; the same
command repairs it.
"""

import json
import shutil

import pytest

import data
from runtime import meshes, workdirs
from runtime.files import DamagedFileError
from tests.training import tiny
from training import loop, study
from training.checkpoint import CheckpointError, digest


@pytest.fixture(scope="module")
def dataset():
    return data.load("shapes", train_limit=64, test_limit=10)


@pytest.fixture(scope="module")
def mesh():
    return meshes.data_mesh()


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


def lose(step):
    shutil.rmtree(step)


def flip_a_bit(step):
    path = max((p for p in (step / "state").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def take_the_one_before(step):
    """The folder of the last step holds the checkpoint of the step before, undamaged."""
    before = min(step.parent.glob("[0-9]*"), key=lambda p: int(p.name))
    shutil.rmtree(step)
    shutil.copytree(before, step)


def take_anothers(step):
    """The folder of the last step holds the last state of another run, undamaged and complete."""
    content = json.loads((step.parents[1] / "final.json").read_text())
    (step.parents[1] / "final.json").write_text(json.dumps(content | {"digest": "0" * 64}))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lose, "found [2]"),
        (flip_a_bit, "is damaged"),
        (take_the_one_before, "holds the state of step 2"),
        (take_anothers, "with the digest"),
    ],
)
def test_no_earlier_state_is_taken_for_the_finished_model(config, mesh, finished, tmp_path, damage, reason):
    workdir = shutil.copytree(finished, tmp_path / "work")
    damage(workdir / "checkpoints" / "4")
    before = sorted(p.relative_to(workdir) for p in workdir.rglob("*"))
    with pytest.raises(CheckpointError) as refused:
        loop.read_back(config, 32, 10, workdir, mesh=mesh)
    command = json.loads((workdir / "provenance.json").read_text())["command"]
    assert reason in str(refused.value) and str(workdir) in str(refused.value) and command in str(refused.value)
    assert sorted(p.relative_to(workdir) for p in workdir.rglob("*")) == before  # reading deletes nothing


def test_the_command_given_again_trains_what_is_missing(config, dataset, mesh, finished, tmp_path):
    workdir = shutil.copytree(finished, tmp_path / "work")
    lose(workdir / "checkpoints" / "4")
    train(config, dataset, workdir, mesh)
    assert (workdir / "final.json").read_text() == (finished / "final.json").read_text()
    assert int(loop.read_back(config, 32, 10, workdir, mesh=mesh)[1].step) == 4


@pytest.mark.parametrize("damage", [take_the_one_before, take_anothers])
def test_training_takes_no_other_state_for_the_last(config, dataset, mesh, finished, tmp_path, damage):
    """As overlap.py reads its stored models: through training, which finds them finished."""
    workdir = shutil.copytree(finished, tmp_path / "work")
    damage(workdir / "checkpoints" / "4")
    state = train(config, dataset, workdir, mesh)[1]
    expected = json.loads((finished / "final.json").read_text())
    assert {"step": int(state.step), "digest": digest(state), "num_classes": 10} == expected
    assert json.loads((workdir / "final.json").read_text()) == expected
    assert digest(loop.read_back(config, 32, 10, workdir, mesh=mesh)[1]) == expected["digest"]


@pytest.mark.parametrize(
    "content",
    ["[]", "{}", '{"step": "4", "digest": "0"}', '{"step": 4}', "{", '{"step": 4, "digest": "0", "num_classes": "10"}'],
)
def test_a_damaged_mark_is_named(config, mesh, finished, tmp_path, content):
    workdir = shutil.copytree(finished, tmp_path / "work")
    (workdir / "final.json").write_text(content)
    with pytest.raises(DamagedFileError, match=r"final\.json: expected"):
        loop.read_back(config, 32, 10, workdir, mesh=mesh)
