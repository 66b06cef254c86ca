"""Workdirs of version 0.2, stopped and finished, still open: what users have is read, continued and evaluated further.

fixtures/workdir_0_2.tar.xz was made there by train.py with the settings of `settings`, then eval.py with severity=random on
noc/hue and cbar/lines, with severity=1 on cbar/lines, and with severity=random on cifar10_c_bar, of whose answers those to
cbar/lines stayed. The stopped one is the same after its first epoch.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import tarfile

import jax
import pytest

import train
from analysis import answers
from corruptions.core import dispatch
from evaluation import commands
from runtime import artifacts, workdirs
from runtime.log import log
from runtime.settings import WorkdirError
from tests.fixtures import small
from tests.training import tiny
from tools import check
from training import study

ARCHIVE = pathlib.Path(__file__).parent / "fixtures" / "workdir_0_2.tar.xz"
LINES = ("noc/border", 0, "cbar/lines", "random")


def settings():
    config = small.get_config("noc/border")
    config.dataset.update({"train_limit": 64, "test_limit": 40})
    config.train.update({"batch_size": 32, "epochs": 2})
    config.model.update({"stem": 4, "widths": (8,)})
    config.eval.batch_size = 40
    return config


@pytest.fixture
def said(caplog, monkeypatch):
    """What the commands say."""
    monkeypatch.setattr(log, "propagate", True)
    caplog.set_level("INFO", log.name)
    return caplog


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """The workdir; its images, which are drawn, count as the same here, where the lowest bits of some may differ."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    digests = answers.read_file(tmp_path / "finished" / "answers" / "clean-0.npz")[1].shown["images"]
    load = study.load_dataset

    def loaded(*given):
        dataset = load(*given)
        facts = dict(dataset.provenance["test"], sha256=digests)
        return dataclasses.replace(dataset, provenance={**dataset.provenance, "test": facts})

    monkeypatch.setattr(study, "load_dataset", loaded)
    return tmp_path / "finished"


def stopped(folder):
    for name in ("final.json", "clean.json", "classes.csv"):
        (folder / name).unlink()
    for name in ("answers", "checkpoints/4"):
        shutil.rmtree(folder / name)
    for path in folder.glob("*.csv"):
        path.unlink()
    metrics = folder / "metrics.jsonl"
    metrics.write_text(metrics.read_text().splitlines(keepends=True)[0])
    return folder


def test_a_finished_workdir_is_read_and_evaluated_further(finished, said):
    found = answers.read(finished)
    assert found.record(LINES).levels == (1, 2, 3, 4, 5)  # no record says which set was asked for last
    assert "cbar/lines" in said.text
    for place, path in enumerate(sorted(finished.glob("answers/*.npz"), reverse=True)):
        os.utime(path, (place, place))
    assert answers.read(finished).counts == found.counts
    config = settings()
    config.eval.update({"corruptions": ("cbar/lines", "noc/hue"), "severity": "random"})
    counts = commands.run(config, finished)
    assert [count.corruption for _, count in counts[:3]] == ["clean", "cbar/lines", "noc/hue"]
    said.clear()
    now = answers.read(finished)
    assert (
        now.record(LINES).levels is None and "cbar/lines" not in said.text
    )  # what was asked for last is known from now on
    assert {cell: now.correct(cell).tolist() for cell in now if cell != LINES} == {
        cell: found.correct(cell).tolist() for cell in found if cell != LINES
    }
    assert check.check(finished).problems == []


def test_a_finished_training_is_not_repeated(finished):
    before = (finished / "final.json").read_bytes()
    accuracy = json.loads((finished / "clean.json").read_text())["accuracy"]
    assert train.train_and_evaluate(settings(), finished) == pytest.approx(accuracy, abs=0.1)  # of 40 images
    assert (finished / "final.json").read_bytes() == before and len(tiny.metrics(finished, "step")) == 2


def test_a_stopped_training_continues(finished):
    first = tiny.metrics(stopped(finished), "step", "loss")
    train.train_and_evaluate(settings(), finished)
    assert json.loads((finished / "final.json").read_text())["step"] == 4
    steps = tiny.metrics(finished, "step", "loss")
    assert steps[:1] == first and [step for step, _ in steps] == [2, 4]


@pytest.mark.parametrize("old", [True, False])
def test_a_stopped_training_continues_with_the_generator_that_it_began_with(finished, old, said):
    """0.2 recorded none: its workdirs count as begun with JAX's default."""
    path = stopped(finished) / "provenance.json"
    if not old:
        with jax.threefry_partitionable(False):
            path.write_text(json.dumps(json.loads(path.read_text()) | {"generator": artifacts.generator()}))
    config = study.model_config(settings(), "noc/border", 0, 2).to_dict()
    for partitionable in (old, not old):
        with jax.threefry_partitionable(partitionable), contextlib.ExitStack() as stack:
            if partitionable is old:
                stack.enter_context(workdirs.open_workdir(finished, config))
                continue
            with pytest.raises(
                WorkdirError, match=rf"partitionable: {old}.*, found threefry2x32, partitionable: {not old}"
            ):
                stack.enter_context(workdirs.open_workdir(finished, config))
    assert ("names no random generator" in said.text) is old
    (finished / "final.json").write_text("{}")  # a finished model draws nothing
    with jax.threefry_partitionable(not old), workdirs.open_workdir(finished, config):
        pass


def test_another_number_of_cores_is_told_once_and_recorded(finished, said, monkeypatch):
    config = study.model_config(settings(), "noc/border", 0, 2).to_dict()
    for cores, told in ((2, False), (3, True), (3, False)):
        said.clear()
        monkeypatch.setattr(dispatch, "cpu_count", lambda cores=cores: cores)
        with workdirs.open_workdir(stopped(finished) if cores == 2 else finished, config):
            assert (f"continues on {cores} cores" in said.text) is told
    assert [run["cores"] for run in workdirs.read_json(finished / "provenance.json")["continued"]] == [2, 3]
