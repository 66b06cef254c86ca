"""JSON files of a study, damaged at every place: refused by name, or shown; never an error of
another kind.
"""

import copy
import json

import pytest

from analysis import shapes
from analysis.report import benchmark, inputs
from analysis.report.document import document
from runtime.files import DamagedFileError, read_json
from runtime.json_shapes import mismatch
from tests.tools import report_studies

NAMES = ("x/a", "x/b", "x/c")
_ENTRY = {
    "range": [1, 2.5],
    "unit": "pixels",
    "robustness": [0.95, 0.5],
    "robustness_se": [0.01, None],
    "mean_robustness": 0.7,
    "mean_robustness_se": 0.01,
    "monotone": True,
    "capped": [False, True],
}
_MATRICES = dict.fromkeys(("spearman", "pearson", "mean_difference", "standardised"), 0.5)
_BENCHMARKS = {"threshold": 0.1, "first": ["x/a"], "second": ["x/a"], "shared": ["x/a"], "jaccard": 1.0}
_COVERED = {"overlap": 0.5, "se": None, "member": "x/a", "p": 0.01, "verdict": "covered"}
CONTENTS = {  # field of Study -> what the file holds, its shape
    "config": (
        {
            "dataset": {"name": "shapes", "image_size": 32},
            "model": {"name": "small_resnet"},
            "train": {"schedule": "step", "milestones": [1], "corruption_options": {"x/a": {"range": [1, 2]}}},
            "study": {"threshold": 0.2},
        },
        shapes.CONFIG,
    ),
    "provenance": (
        {"git_revision": "0" * 40, "device": "cpu", "versions": {"jax": "1"}, "continued": [{"device": "gpu"}]},
        shapes.PROVENANCE,
    ),
    "benchmark": (
        {
            "members": ["x/a", "x/b"],
            "threshold": 0.1,
            "strict": False,
            "mean_overlap": 0.01,
            "summary": "two of three",
            "number_of_ties": 1,
            "winner_is_exact": True,
            "dropped": ["x/c"],
            "inputs": {"overlap.csv": "0"},
            "written": "2026-01-01T00:00:00",
            "coverage": {"benchmark": ["x/a"], "corruptions": {"x/c": _COVERED}},
            "categories": [["x/a"], ["x/b", "x/c"]],
        },
        shapes.BENCHMARK,
    ),
    "coverage": (
        {"benchmark": ["x/a"], "corruptions": {"x/c": _COVERED}, "inputs": {"overlap.csv": "0"}},
        shapes.COVERAGE,
    ),
    "stability": (
        {"members": {"x/a": 1.0}, "sets": [[["x/a", "x/b"], 0.9]], "resamples": 40, "sizes": {"2": 0.9}},
        shapes.STABILITY,
    ),
    "ranges": ({"corruptions": {"x/a": _ENTRY}}, shapes.RANGES),
    "comparison": (
        {
            "first": "one",
            "second": "other",
            "threshold": 0.1,
            "matrices": {"pairs": 3, "spearman_interval": [0.1, None], **_MATRICES},
            "benchmarks": [_BENCHMARKS],
            "training_seconds": [1.0, 2.0],
            "inputs": {"overlap.csv": "0"},
        },
        shapes.COMPARISON,
    ),
    "sections": (
        {"title": "t", "facts": ["f"], "header": ["shift", "r"], "rows": [["s", "0.5"]], "figures": ["lines"]},
        shapes.SECTION,
    ),
    "timing": ({"training_seconds": {"standard|0": 100.0}}, shapes.TIMING),
}
DELETED = object()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("damaged") / "work"
    report_studies.write(workdir, NAMES, number=60, resamples=2)
    found = inputs.read(workdir)
    return replaced(found, **{field: content for field, (content, _) in CONTENTS.items()})


def replaced(study, **contents):
    """The study with the contents of other JSON files."""
    if "sections" in contents:
        contents["sections"] = ((contents["sections"], {}),)
    return study._replace(**contents)


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


@pytest.mark.parametrize("field", CONTENTS)
def test_damage_anywhere_is_refused_by_name_or_harmless(study, field):
    content, shape = CONTENTS[field]
    assert mismatch(content, shape) is None
    refused, shown = 0, []
    for path in places(content):
        for new in (DELETED, None, [], [[]], {}, "text", 3):
            other = damaged(content, path, new)
            if mismatch(other, shape):
                refused += 1
            elif new is DELETED or len(shown) < 3:
                shown.append(other)
    assert refused >= 3
    for other in shown:
        try:
            other_study = replaced(study, **{field: other})
            document(other_study, benchmark.sweep(other_study), "No pictures.")
        except ValueError:  # the reason is said
            pass


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


def test_json_that_is_nested_without_end_is_damaged(tmp_path):
    (tmp_path / "file.json").write_text("[" * 100_000)
    with pytest.raises(DamagedFileError, match=r"file\.json: expected valid JSON"):
        read_json(tmp_path / "file.json")
