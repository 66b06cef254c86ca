"""The answers' files: what is written is read, levels are found, damage and disagreement are
named.
"""

import shutil

import numpy as np
import pytest

from analysis import answers, tables
from runtime.files import DamagedFileError
from tests.tools import report_studies

NAMES = ("cbar/lines", "cbar/ripple", "noc/hue")
SEEDS = (0, 1)
NUMBER = 203  # not whole bytes


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """(workdir, answers bool [seeds, models, conditions, N], counts) of a made-up study."""
    workdir = tmp_path_factory.mktemp("answers") / "work"
    bits = report_studies.write(workdir, NAMES, SEEDS, number=NUMBER)
    return workdir, bits, tables.read_counts(workdir / "counts.csv")


@pytest.fixture
def study(written, tmp_path):
    """The same, its files free to change."""
    workdir, bits, counts = written
    return shutil.copytree(workdir / "answers", tmp_path / "answers"), bits, counts


def test_a_file_is_named_by_its_condition():
    assert answers.file_stem("clean", 0) == "clean-0"
    assert answers.file_stem("noc/border", 0.5) == "noc.border-0.5"
    assert answers.file_stem("cbar/lines", "random", (1, 4, 10)) == "cbar.lines-random-1-4-10"


def test_what_is_written_is_read(tmp_path):
    given = {("standard", 0): np.arange(11) % 3 == 0, ("augmix=a|b", 12): np.ones(11, bool)}
    answers.write(tmp_path / "a.npz", given)
    found = answers.read(tmp_path / "a.npz", 11)
    assert list(found) == list(given)
    for key, bits in given.items():
        np.testing.assert_array_equal(found[key], bits)
    with np.load(tmp_path / "a.npz") as file:  # the format: other programs read it
        np.testing.assert_array_equal(file["standard|0"], [0b10010010, 0b01000000])


def test_a_study_is_read_back(study):
    folder, bits, counts = study
    np.testing.assert_array_equal(answers.read_study(folder, counts, NAMES, SEEDS), bits)
    some = answers.read_study(folder, counts, NAMES[1:], (1,))
    np.testing.assert_array_equal(some, bits[1:, [0, 2, 3]][:, :, [0, 2, 3]])


def test_what_was_not_kept_is_none(study):
    folder, _, counts = study
    assert answers.read_study(folder / "nothing", counts, NAMES, SEEDS) is None
    more = [count._replace(seed=7) for count in counts if count.seed == 0]
    assert answers.read_study(folder, counts + more, NAMES, (0, 7)) is None


def test_random_severities_of_selected_levels_are_found(study):
    """Their file has the levels in its name, which tables do not have: it is not missing."""
    folder, bits, counts = study
    path = folder / "cbar.lines-random.npz"
    answers.write(folder / "cbar.lines-random-1-4-7-9-10.npz", answers.read(path, NUMBER))
    path.unlink()
    np.testing.assert_array_equal(answers.read_study(folder, counts, NAMES, SEEDS), bits)


def test_of_two_selections_the_one_that_was_counted_is_read(study):
    folder, bits, counts = study
    path = folder / "cbar.lines-random.npz"
    kept = answers.read(path, NUMBER)
    answers.write(folder / "cbar.lines-random-2-3.npz", kept)
    answers.write(path, {key: ~one for key, one in kept.items()})
    answers.write(folder / "cbar.lines-random-1.npz", {("standard", 0): kept["standard", 0]})  # of another command
    np.testing.assert_array_equal(answers.read_study(folder, counts, NAMES, SEEDS), bits)
    (folder / "cbar.lines-random-2-3.npz").unlink()
    with pytest.raises(ValueError, match=r"cbar\.lines-random\.npz: expected \d+ correct answers of standard, seed 0"):
        answers.read_study(folder, counts, NAMES, SEEDS)


def test_answers_that_do_not_fit_the_counts_are_refused(study):
    folder, _, counts = study
    counts = [counts[0]._replace(correct=counts[0].correct + 1), *counts[1:]]
    with pytest.raises(ValueError, match=r"correct answers of .* as counts.csv says"):
        answers.read_study(folder, counts, NAMES, SEEDS)


def test_a_damaged_file_is_named(study):
    folder, _, counts = study
    path = folder / "noc.hue-random.npz"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DamagedFileError, match=r"noc\.hue-random\.npz.*remove it to evaluate this condition again"):
        answers.read_study(folder, counts, NAMES, SEEDS)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"standard": np.zeros(2, np.uint8)}, r"expected arrays called model\|seed, found 'standard'"),
        ({"standard|x": np.zeros(2, np.uint8)}, "expected arrays called"),
        ({"standard|0": np.zeros(3, np.uint8)}, r"answers to 11 images, found uint8\[3\] for standard\|0"),
        ({"standard|0": np.zeros(2)}, r"found float64\[2\]"),
    ],
)
def test_other_contents_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DamagedFileError, match=message):
        answers.read(tmp_path / "a.npz", 11)
