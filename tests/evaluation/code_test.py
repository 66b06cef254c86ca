"""Answers are bound to the code that corrupted the images: where that changed, a probe of the first images decides."""

import functools
import importlib
import json
import os
import shutil
import sys

import numpy as np
import pytest
from ml_collections import ConfigDict

import data
import eval as evaluation
import models
from analysis import answers
from analysis.answers import PLAIN
from corruptions.core import code
from corruptions.scoring.conditions import Condition
from evaluation import correctness
from evaluation import evaluate as engine
from evaluation.distances import centres, features, sampling
from evaluation.shown import Shown
from evaluation.streams import orders, shown
from evaluation.streams import run as run_of_streams
from runtime import artifacts, meshes
from runtime.workdirs import Workdir
from tests.analysis.made_up import cell_of
from tests.corruptions.write.datasets import register_mine
from tests.evaluation import known
from tests.tools.streams_test import given
from tests.training import tiny
from tools import check, streams

DIM = """
from corruptions import Levels, registrar
import {helper}

def sample(key, shape, severity):
    return {{"by": severity * {helper}.SCALE}}

@registrar("mine", Levels(3), "nearest", "a test", replace=True)("noise", sample, {{"by": "unit"}})
def dim(image, params):
    return image * (1 - params["by"])
"""


@pytest.fixture
def written(tmp_path, monkeypatch, own_registry):
    """Writes the modules of a corruption `mine/dim` and imports them, as a process does that starts after an edit."""

    def write(scale, number):
        folder, names = tmp_path / f"code{number}", ("mine_of_code_test", "helper_of_code_test")
        folder.mkdir()
        (folder / f"{names[0]}.py").write_text(DIM.format(helper=names[1]))
        (folder / f"{names[1]}.py").write_text(f"SCALE = {scale}\n")
        for name in names:
            os.utime(folder / f"{name}.py", (1, 1))  # before this process loaded the library
            monkeypatch.delitem(sys.modules, name, raising=False)
        with monkeypatch.context() as patch:
            patch.syspath_prepend(folder)
            importlib.import_module(names[0])

    return write


@pytest.fixture
def said(caplog, monkeypatch):
    monkeypatch.setattr(engine.log, "propagate", True)
    return caplog


def run(folder, severity):
    config = tiny.config()
    config.eval.update({"corruptions": ("mine/dim", "noc/hue"), "severity": severity})
    counts = evaluation.run(config, folder)
    assert len(set(map(cell_of, counts))) == len(counts)
    return {
        cell_of(row): answers.read(folder).confidence(*row[1][:2])["standard", 0, PLAIN].loss.tolist() for row in counts
    }


@pytest.mark.parametrize("severity", ["levels", "random"])
def test_answers_to_images_of_an_edited_corruption_are_evaluated_again(written, tmp_path, said, severity, monkeypatch):
    work = tiny.untrained_workdir(tmp_path / "work", tiny.config())
    (tmp_path / "work").rename(tmp_path / "fresh")
    work = shutil.copytree(tmp_path / "fresh", work)
    written(".05", 0)
    monkeypatch.setattr(artifacts, "git_revision", lambda: "a" * 40)
    before = run(work, severity)
    assert "answers of" not in json.loads((work / "provenance.json").read_text())["files"]["counts.csv"]["origin"]

    with monkeypatch.context() as patch:  # only a comment was edited: nothing is evaluated again
        written(".05  # a share of each level", 1)
        patch.setattr(correctness, "network_logits", lambda *given: pytest.fail("evaluated again"))
        assert run(work, severity) == before and not said.text
        assert check.check(work).problems == []

    written(".3", 2)
    problems = check.check(work).problems
    assert all("mine.dim-" in line and "code" in line for line in problems)
    assert len(problems) == (3 if severity == "levels" else 1)
    monkeypatch.setattr(artifacts, "git_revision", lambda: "b" * 40)
    after = run(work, severity)
    assert f"under {len(problems)} conditions" in said.text and "mine/dim" in said.text
    assert after == run(tmp_path / "fresh", severity) and after != before
    assert check.check(work).problems == []
    found = answers.read(work)
    by_revision = {cell[2]: set(found.record(cell).revisions.values()) for cell in found}
    assert by_revision == {"clean": {"a" * 40}, "noc/hue": {"a" * 40}, "mine/dim": {"b" * 40}}
    assert "a" * 12 in found.credit("b" * 40) and "b" * 12 not in found.credit("b" * 40)
    assert "answers of" in json.loads((work / "provenance.json").read_text())["files"]["counts.csv"]["origin"]


def test_answers_to_images_of_a_data_file_that_changed_are_evaluated_again(written, tmp_path, said):
    scale = tmp_path / "scale.npy"
    np.save(scale, np.float32(0.05))
    written(f"__import__('numpy').load({str(scale)!r})", 0)
    work = tiny.untrained_workdir(tmp_path / "work", tiny.config())
    before = run(work, "random")
    assert run(work, "random") == before and check.check(work).problems == [] and not said.text
    np.save(scale, np.float32(0.3))
    written(f"__import__('numpy').load({str(scale)!r})", 1)  # as a new process reads it
    assert "mine.dim-" in str(check.check(work).problems)
    assert run(work, "random") != before and "evaluated again" in said.text


def test_answers_of_an_earlier_version_are_taken_and_an_edit_of_the_library_is_probed(tmp_path, said, monkeypatch):
    work = tiny.untrained_workdir(tmp_path / "work", tiny.config())
    config = tiny.config()
    config.eval.corruptions = ("noc/hue",)
    evaluation.run(config, work)
    probed = []
    monkeypatch.setattr(engine, "probe", lambda *given: probed.append(given) or {"images": 1, "values": ""})
    evaluation.run(config, work)
    assert not probed
    monkeypatch.setattr(code, "_of_library", lambda: "edited")
    config.eval.corruptions = ("noc/hue",)
    path = work / "answers" / "noc.hue-random.npz"
    known, record = answers.read_answered(path)
    answers.write(path.parent, known, record._replace(origin={}, revisions={}))
    evaluation.run(config, work)
    assert not probed and not said.text and "earlier version" in answers.read(work).credit("here")
    answers.write(path.parent, known, record)
    evaluation.run(config, work)
    assert len(probed) == 1 and "evaluated again" in said.text


def test_an_evaluation_tells_a_later_version_of_the_pixels(own_registry, tmp_path, capsys):
    work, config = tiny.untrained_workdir(tmp_path / "work", tiny.config()), tiny.config()
    config.eval.update({"corruptions": ("mine/darker", "noc/hue"), "severity": "1"})
    for version, said in ((1, False), (2, True)):
        register_mine(10, version=version)
        evaluation.run(config, work)
        assert ("mine/darker 2" in capsys.readouterr().out) == said
        origin = json.loads((work / "provenance.json").read_text())["files"]["counts.csv"]["origin"]
        assert ("later version: mine/darker 2" in origin) == said


IMAGES = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3)).astype(np.uint8)


def exits(folder):
    images = IMAGES.copy()
    images[:, 0, 0, 0] = 15, 20, 25, 32, 40
    split = data.Split(images, np.zeros(5, np.int32), np.arange(5, dtype=np.int32))
    shown = Shown(split.to_device(), meshes.data_mesh(), 4, condition=Condition("mine/dim", "2"))
    found = correctness.kept_exits(folder / "exits" / "a.npz", known.split(known.Known(True)), "of it", shown)
    return [found.confidence.tolist(), found.correct.tolist()]


def measured(folder, draws):
    asked = ConfigDict({"seed": 3, "chunk": 0, "draws": draws, "halves": 0, "transforms": 6})
    network = known.split(models.build("small_resnet", 10, seed=0))
    extractor = features.Extractor(meshes.data_mesh(1), *network, IMAGES, np.ones((1, 5), np.float32) / 5, 2)
    return centres.Measured(asked, extractor, None, folder / f"msd{draws}", {})


def joint(folder):
    return sampling.centre(measured(folder, 0), Condition("mine/dim", "2")).tolist()


def distances(folder):
    """Distances of corruptions, at severities of their own, to the centre of one."""
    of, at = measured(folder, 2), Condition("mine/dim", "2")
    found = [of.centre(at).tolist(), of.features(at).tolist()]
    for scheme in features.find(["mine/dim", "augmix=posterize"]):
        found.append(of.scheme_distances(scheme, {("mine/dim", 2): of.centre(at)})["mine/dim", 2].tolist())
        found.append(sampling.pool_distances(of, scheme, 3, of.centre(at)).tolist())
    return found


def predicted(images):
    """A network's answers to a stream."""
    return np.concatenate([np.asarray(piece)[:, 0, 0, 0] for piece in images])


def stream(folder):
    split = data.Split(IMAGES, np.zeros(5, np.int32), np.arange(5, dtype=np.int32))
    of, drawn = (
        orders.continual(split.labels, ("mine/dim",), 2.0),
        {"seed": 0, "mesh": meshes.data_mesh(), "options": {}},
    )
    probe = functools.partial(shown.probe, split, **drawn)
    asked = streams.Asked(
        None, 4, Shown(split, drawn["mesh"], 4), Workdir(folder).folder("streams"), "", {}, None, probe
    )
    return asked.kept({}, lambda: predicted(shown.pieces(split, of, 4, **drawn)), of.segments, "a").tolist()


def command(folder):
    """Predictions of tools.streams."""
    if not folder.exists():
        tiny.untrained_workdir(folder, tiny.config())
    streams.measure(tiny.config(), folder, given(corruptions=["mine/dim"], severity=2.0, methods=["source"]))
    (path,) = (folder / "streams").glob("*.npz")
    return artifacts.read(path).arrays["predictions"].tolist()


@pytest.mark.parametrize(
    ("measure", "measuring"),
    [
        (stream, (sys.modules[__name__], "predicted")),
        pytest.param(command, (run_of_streams, "predictions"), marks=pytest.mark.slow),
        (exits, (correctness, "of_exits")),
        (joint, (sampling, "mean_feature")),
        (distances, (features.Extractor, "stream")),
    ],
)
def test_what_was_measured_on_images_of_an_edited_corruption_is_measured_again(
    written, tmp_path, said, measure, measuring, monkeypatch
):
    written(".05", 0)
    before = measure(tmp_path / "work")

    with monkeypatch.context() as patch:  # only a comment was edited: nothing is measured again
        patch.setattr(*measuring, lambda *given, **more: pytest.fail("measured again"))
        written(".05  # a share of each level", 1)
        assert measure(tmp_path / "work") == before and not said.text

    written(".3", 2)
    after = measure(tmp_path / "work")
    assert said.text.count("measured again") == 1 and "mine/dim" in said.text
    assert after == measure(tmp_path / "fresh") and after != before

    for path in (tmp_path / "work").rglob("*.npz"):  # as an earlier version wrote it
        arrays, made_from = artifacts.read(path)
        artifacts.write(
            path, arrays, {name: value for name, value in made_from.items() if name not in ("origins", "centres")}
        )
    written(".6", 3)
    monkeypatch.setattr(*measuring, lambda *given, **more: pytest.fail("measured again"))
    assert measure(tmp_path / "work") == after
