"""Answers of several origins in one study: refused or marked by select_noc.py, tools.tables and tools.report."""

import json

import numpy as np
import pytest

from analysis import answers
from analysis.overlap.study import read_study
from analysis.report import inputs
from analysis.report.document import warnings
from corruptions.core.code import code_digest
from runtime import artifacts, files
from tests.refusing import refuses
from tests.tools import report_studies

NAMES = ("noc/border", "noc/hue", "imagenet_c/fog")
SHOWN = {"images": {"images": "a" * 64, "labels": "b" * 64}}
DRAWN = SHOWN | {"seed": 0, "prng": "threefry2x32, partitionable: True", "options": {}}


def change(workdir, stem, shown=None, origin=None, about=None):
    path = workdir / "answers" / f"{stem}.npz"
    by_model, record = answers.read_file(path)
    answers.write(path.parent, by_model, record._replace(shown=shown or record.shown, origin=origin or record.origin))


def made_by(name, code=None, library="1" * 64):
    return {"corruption": name, "code": code or code_digest((), name), "recorded": {"library": library}}


@pytest.fixture
def workdir(tmp_path):
    """A study whose answers record everything, of today's code."""
    report_studies.write(tmp_path / "work", NAMES, number=60)
    change(tmp_path / "work", "clean-0", SHOWN)
    for name in NAMES:
        change(tmp_path / "work", f"{name.replace('/', '.')}-random", DRAWN, made_by(name))
    return tmp_path / "work"


@pytest.mark.parametrize("stem", ["clean-0", "noc.hue-random"])
def test_answers_to_other_images_are_refused(workdir, stem):
    read_study(workdir)
    shown = SHOWN if stem == "clean-0" else DRAWN
    change(workdir, stem, shown | {"images": {"images": "c" * 64, "labels": "b" * 64}})
    for read in (read_study, inputs.read):
        with pytest.raises(ValueError, match=r"images: stored (aaa|ccc).*run overlap.py again"):
            read(workdir)


@pytest.mark.parametrize(
    ("field", "value"),
    [("seed", 1), ("generator", "rbg, partitionable: True"), ("options", {"range": [0.1, 0.2]})],
)
def test_answers_under_other_draws_or_options_are_refused(workdir, field, value):
    change(workdir, "noc.hue-random", DRAWN | {"prng" if field == "generator" else field: value})
    with pytest.raises(ValueError, match=rf"noc\.hue-random.*{field}.*stored.*requested") as refused:
        read_study(workdir)
    assert "\n" not in str(refused.value)


def test_options_of_the_settings_are_no_other_ones(workdir):
    path = workdir / "config.json"
    config = json.loads(path.read_text())
    config["train"]["corruption_options"] = {"noc/hue": {"range": [0.1, 0.2]}}
    path.write_text(json.dumps(config))
    refuses(lambda: read_study(workdir), "options")
    change(workdir, "noc.hue-random", DRAWN | {"options": {"range": [0.1, 0.2]}})
    read_study(workdir)


def test_images_of_other_code_are_marked_until_a_probe_agrees(workdir, caplog):
    marked = lambda: [text for _, text in warnings(inputs.read(workdir)) if "other code" in text]  # noqa: E731
    assert marked() == []
    other = made_by("noc/hue", code="2" * 64)
    change(workdir, "noc.hue-random", origin=other)
    (line,) = marked()
    assert "noc/hue" in line and "overlap.py" in line and "\n" not in line
    read_study(workdir)
    assert "images of noc/hue that other code corrupted" in caplog.text
    agreed = {artifacts.digest(["noc.hue-random", other]): code_digest((), "noc/hue")}
    files.write_json(workdir / "answers" / answers.ACCEPTED, agreed)
    assert marked() == []


def test_a_study_of_one_earlier_version_is_not_marked_but_one_of_two_is(workdir):
    for name in NAMES:
        change(workdir, f"{name.replace('/', '.')}-random", origin=made_by(name, code="2" * 64))
    assert not inputs.read(workdir).other_code
    change(workdir, "noc.border-random", origin=made_by("noc/border", code="2" * 64, library="3" * 64))
    assert "noc/border" in inputs.read(workdir).other_code
    path = workdir / "answers" / "noc.border-random.npz"  # before the library's digest was recorded
    by_model, record = answers.read_file(path)
    answers.write(path.parent, by_model, record._replace(origin={**record.origin, "recorded": {}}))
    assert not inputs.read(workdir).other_code and all(np.any(bits) for bits in by_model.values())
