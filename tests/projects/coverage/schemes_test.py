"""The tables of docs/results/subsets_cifar10_cpu.md follow from the committed answers and distances."""

import shutil

import pandas as pd
import pytest

from analysis import answers, schemes
from analysis.errors import joint
from analysis.errors.reference import REFUSE, choose
from analysis.errors.summary import score
from configs import scheme_study
from tests.pages import ROOT
from training import augmentation

OF_ERRORS = {"schemes": ["scheme"], "scheme_corruptions": ["scheme", "corruption"]}


@pytest.mark.parametrize(
    ("distances", "tables"),
    [
        ("none", OF_ERRORS),
        pytest.param("msd", OF_ERRORS | {"correlations": ["corruption"]}, marks=pytest.mark.slow),
    ],
)
def test_the_tables_follow_from_the_committed_answers_and_distances(distances, tables, tmp_path):
    folder = shutil.copytree(ROOT / "projects" / "coverage" / "schemes", tmp_path / "work")
    names = list(augmentation.expand_schemes(scheme_study.get_config("cpu").study.schemes))
    evaluated = joint.read(folder, "")
    reference = choose("", REFUSE, evaluated.conditions)
    _, summaries = score(evaluated.errors, reference, evaluated.conditions)
    schemes.write_results(
        folder, summaries, answers.read(folder).counts, names, folder / distances, "committed answers"
    )
    for table, key in tables.items():
        written = ROOT / "docs" / "results" / "subsets_cifar10_cpu"
        expected, found = (pd.read_csv(of / f"{table}.csv").set_index(key).sort_index() for of in (written, folder))
        assert len(expected)
        pd.testing.assert_frame_equal(found, expected, rtol=1e-9)
