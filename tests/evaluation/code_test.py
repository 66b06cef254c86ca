"""Answers are bound to the code that corrupted the images: where that changed, a probe of the first images decides."""

import importlib
import json
import os
import shutil
import sys

import pytest

import eval as evaluation
from analysis import answers
from analysis.answers import PLAIN
from corruptions import code
from evaluation import correctness
from evaluation import evaluate as engine
from runtime import artifacts
from tests.training import tiny
from tools import check

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
    assert len({row.key for row in counts}) == len(counts)
    return {
        row.key: answers.read(folder).confidence(row.corruption, row.severity)["standard", 0, PLAIN].loss.tolist()
        for row in counts
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

    with monkeypatch.context() as patch:  # only a comment was edited: nothing is evaluated again, nor probed twice
        written(".05  # a share of each level", 1)
        patch.setattr(correctness, "network_logits", lambda *given: pytest.fail("evaluated again"))
        assert run(work, severity) == before and not said.text
        assert check.check(work).problems == []
        patch.setattr(engine, "probe", lambda *given: pytest.fail("probed again"))
        assert run(work, severity) == before

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
