"""The inputs of a report: broken workdirs, damaged records, and numbers that follow from answers alone."""

import copy
import json
import re
import shutil

import numpy as np
import pytest

from analysis.report import inputs
from runtime import artifacts, workdirs
from runtime.files import DamagedFileError, mismatch, read_json
from tests.tools import report_studies

CONTENTS = {  # file -> an example that fits its shape
    "provenance.json": report_studies.PROVENANCE | {"continued": [{"device": "gpu"}]},
    "benchmark.json": {"threshold": 0.2, "strict": False, "written": "2026-01-01T00:00:00"},
    "coverage.json": {"benchmark": ["noc/hue"]},
    "comparison.json": {"first": "one", "threshold": 0.1, "workdirs": ["a", "b"], "training_seconds": [1.0, 2.0]},
    "evaluation.json": {"eval": {"reference": "", "reference_mismatch": "refuse"}},
    "ranges.json": {"corruptions": {"noc/hue": report_studies.RANGE}},
    "timing.json": {"training_seconds": {"standard|0": 100.0}},
    "section.json": {
        "title": "t",
        "facts": ["f"],
        "header": ["shift", "r"],
        "rows": [["s", "0.5"]],
        "figures": ["lines"],
    },
}
DELETED = object()


def break_file(name, change):
    def broken(workdir):
        path = workdir / name
        path.write_text(change(path.read_text() if path.exists() else ""))

    return broken


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda workdir: shutil.rmtree(workdir), "found no folder"),
        (lambda workdir: (workdir / "config.json").unlink(), "without config.json"),
        (lambda workdir: shutil.rmtree(workdir / "answers"), "found no answers"),
        (lambda workdir: (workdir / "answers" / "clean-0.npz").unlink(), "without corruptions of a study"),
        (lambda workdir: (workdir / "answers" / "noc.hue-random.npz").write_bytes(b"PK"), "noc.hue-random.npz"),
        (break_file("config.json", lambda text: text[:-5]), "config.json: expected valid JSON"),
        (
            break_file("config.json", lambda text: text.replace('"threshold": 0.1', '"threshold": "a"')),
            "study.threshold",
        ),
        (break_file("provenance.json", lambda text: "[]"), "expected a JSON object, found list"),
        (break_file("coverage.json", lambda _: '{"benchmark": ["noc/who"]}'), "found noc/who; test the coverage again"),
        (break_file("benchmark.json", lambda _: "{}"), "benchmark.json: expected threshold"),
        (break_file("timing.json", lambda _: "[" * 100_000), "timing.json: expected valid JSON"),
    ],
)
def test_broken_workdirs_are_refused_with_a_reason(small, damage, message):
    damage(small)
    with pytest.raises((ValueError, OSError), match=re.escape(message)):
        inputs.read(small)


def places(value, path=()):
    """The paths to all values within, the first of each list standing for the others."""
    items = value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def damaged(value, path, new):
    value = at = copy.deepcopy(value)
    for key in path[:-1]:
        at = at[key]
    if new is DELETED:
        del at[path[-1]]
    else:
        at[path[-1]] = new
    return value


@pytest.mark.parametrize("name", CONTENTS)
def test_damage_anywhere_is_refused_by_name_or_shown(small, page, name):
    content, shape = CONTENTS[name], inputs.SHAPES[name]
    assert mismatch(content, shape) is None
    others = [
        damaged(content, path, new) for path in places(content) for new in (DELETED, None, [], [[]], {}, "text", 3)
    ]
    accepted = [other for other in others if not mismatch(other, shape)]
    assert len(others) - len(accepted) >= 3
    (small / "project").mkdir()
    path = small / "project" / name if name == "section.json" else small / name
    refused = [other for other in others if mismatch(other, shape)]
    for other in (refused[0], refused[-1]):
        path.write_text(json.dumps(other))
        with pytest.raises(ValueError, match=re.escape(name)):
            inputs.read(small)
    for other in accepted[:1] + accepted[-1:]:
        path.write_text(json.dumps(other))
        try:
            page(small)
        except ValueError as error:
            assert name in str(error), error


@pytest.mark.parametrize(
    "value, shape, expected",
    [
        ([], {"a": int}, "expected an object, found a list"),
        ({}, {"a": int}, "expected a, found nothing of that name"),
        ({"a": {"b": [1, "x"]}}, {"a": {"b": [float]}}, "expected a number as a.b.1, found 'x'"),
        ({"a": [1]}, {"a": (int, int)}, "expected 2 items as a, found 1"),
        ({"a": True}, {"a": float}, "expected a number as a, found True"),
        ({"a": 1.5}, {"a": int}, "expected a whole number as a, found 1.5"),
    ],
)
def test_the_place_of_the_damage_is_named(tmp_path, value, shape, expected):
    assert mismatch(value, shape) == expected
    path = tmp_path / "file.json"
    path.write_text(json.dumps(value))
    with pytest.raises(DamagedFileError) as caught:
        read_json(path, kind=None, shape=shape, remedy="make it again")
    assert str(caught.value) == f"{path}: {expected}; make it again"


def test_tables_are_never_read(small, page):
    """Numbers of the page follow from answers; a file of results says what was chosen, no more."""
    for name in ("counts", "overlap", "overlap_long", "scores", "errors_summary", "mixtures"):
        (small / f"{name}.csv").write_text("nonsense")
    (small / "stability.json").write_text("nonsense")
    (small / "benchmark.json").write_text(json.dumps({"threshold": 0.2, "strict": True, "members": ["noc/who"]}))
    study = inputs.read(small)
    assert (study.threshold, study.selection.strict) == (0.2, True)
    assert study.selection == inputs.select(study.overlap.overlap, study.names, 0.2, True, study.overlap.unclipped)
    assert study.stability.resamples == 1000 and study.coverage.keys() | {*study.selection.members} == {*study.names}
    assert not [name for name, _, _ in study.files if name.endswith(".csv")]
    assert "noc/who" not in page(small).text("main")


def test_distances_of_an_earlier_standard_model_are_not_shown(small, page):
    distances = {"noc/hue|1": np.array([[0.25], [1.0]]), "noc/rain|1": np.array([[0.75], [3.0]])}
    made_from = {"scheme": "augmix", "model": "the first"}
    artifacts.write(small / "msd" / "schemes" / "augmix.npz", distances, made_from)
    standard = small / "models" / "standard" / "seed0"
    standard.mkdir(parents=True)
    for digest, shown in (("the first", True), ("the second", False)):
        workdirs.write_final(standard, step=1, digest=digest, num_classes=10)
        found = page(small)
        text = found.text("section", id="further")
        assert ("0.500" in text) == bool(re.search(r"noc/hue 0\.250\s*noc/rain 0\.750", text)) == shown  # nearest first
        sentence = f"measured in an earlier model, which was trained again since: run python -m tools.msd --config=configs/msd.py --workdir={small} again"
        assert (sentence in found.text("section", id="warnings")) != shown


def test_a_comparison_is_computed_again_or_says_what_to_run(small, page, tmp_path):
    other = shutil.copytree(small, tmp_path / "other")
    chosen = {"first": "other", "threshold": 0.1, "workdirs": [str(other), "gone"], "training_seconds": [100.0, 50.0]}
    (small / "comparison.json").write_text(json.dumps(chosen))
    text = page(small).text("section", id="further")
    assert "other compared with small" in text and "3 pairs of corruptions: Spearman 1.00" in text
    assert "Training took 100 s and 50 s" in text
    shutil.rmtree(other)
    found = page(small)
    assert "compared with small" not in found.text("section", id="further")
    assert "--table=overlaps with its present place" in found.text("section", id="warnings")
