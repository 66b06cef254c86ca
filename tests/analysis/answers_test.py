"""Answers: what is written is read; damage, other conditions and models of before are named."""

import os

import numpy as np
import pytest

from analysis import answers, trained
from analysis.answers import Answers, Record
from runtime import artifacts, workdirs
from runtime.files import DamagedFileError
from tests.refusing import refuses
from tests.tools import report_studies

NAMES = ("cbar/lines", "cbar/ripple", "noc/hue")
SEEDS = (0, 1)
NUMBER = 203  # not whole bytes


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """(workdir, answers bool [seeds, models, conditions, N]) of a made-up study."""
    workdir = tmp_path_factory.mktemp("answers") / "work"
    return workdir, report_studies.write(workdir, NAMES, SEEDS, number=NUMBER)


@pytest.mark.parametrize(
    ("condition", "stem"),
    [
        (("clean", 0), "clean-0"),
        (("noc/border", 0.5), "noc.border-0.5"),
        (("noc/rain", 1e-05), "noc.rain-1e-05"),
        (("cbar/lines", "random", (1, 4, 10)), "cbar.lines-random-1-4-10"),
        (("mine/a-b", 2), "mine.a-b-2"),
    ],
)
def test_a_file_is_named_by_its_condition(condition, stem):
    assert answers.file_stem(*condition) == stem


def test_what_is_written_is_read(tmp_path):
    given = {("standard", 0): np.arange(11) % 3 == 0, ("augmix=a|b", 12): np.ones(11, bool)}
    record = Record("noc/hue", 0.5, None, 11, {"seed": 0}, {"dataset": "shapes"}, {("standard", 0): "ab"})
    answers.write(tmp_path, given, record)
    found, read = answers.read_file(tmp_path / "noc.hue-0.5.npz")
    assert read == record and list(found) == list(given)
    for key, bits in given.items():
        np.testing.assert_array_equal(found[key], bits)
    with np.load(tmp_path / "noc.hue-0.5.npz") as file:  # the format: other programs read it
        np.testing.assert_array_equal(file["standard|0"], [0b10010010, 0b01000000])


def sealed(folder, arrays, **changed):
    """Writes an artifact with a good digest and a wrong content."""
    record = {**Record("clean", 0, None, 11, {})._asdict(), **changed}
    artifacts.write(folder / "clean-0.npz", arrays, record)


GOOD = {"standard|0": np.zeros(2, np.uint8)}


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda f: sealed(f, {"standard|0": np.zeros(3, np.uint8)}), r"answers to 11 images, found uint8\[3\]"),
        (lambda f: sealed(f, {"standard|0": np.zeros(2, np.int8)}), r"found int8\[2\] for standard\|0"),
        (lambda f: sealed(f, {"standard": np.zeros(2, np.uint8)}), r"arrays called model\|seed, found 'standard'"),
        (lambda f: sealed(f, GOOD, corruption="noc/hue"), "answers under clean-0, found noc.hue-0"),
        (lambda f: sealed(f, GOOD, number="11"), "expected a whole number as number"),
        (lambda f: sealed(f, GOOD, models={"standard": "ab"}), r"model\|seed, found 'standard'"),
        (lambda f: sealed(f, GOOD, models=3), "expected an object as models"),
        (lambda f: np.savez(f / "clean-0.npz", **GOOD), "a record of what they were made from, found none"),
        (lambda f: (f / "clean-0.npz").write_bytes(b"PK"), "cannot be read"),
    ],
)
def test_damaged_files_are_named(tmp_path, harm, message):
    harm(tmp_path)
    with pytest.raises(DamagedFileError, match=rf"clean-0\.npz: .*{message}.*; remove it to evaluate"):
        answers.read_file(tmp_path / "clean-0.npz")


def test_a_study_is_read_back(study):
    workdir, bits = study
    read = answers.read(workdir)
    for names, models, seeds in ((NAMES, [0, 1, 2, 3], [0, 1]), (NAMES[1:], [0, 2, 3], [0, 1])):
        found, found_seeds = read.study(names)
        assert found_seeds == SEEDS
        np.testing.assert_array_equal(found, bits[seeds][:, models][:, :, models])
    refuses(lambda: read.study((*NAMES, "noc/rain")), "seed 1 lacks 9", "overlap")


def test_counts_follow_from_answers(study):
    workdir, bits = study
    counts = answers.read(workdir).counts
    assert [count[:2] for _, count in counts[:: 2 * 4]] == [("clean", 0), *((name, "random") for name in NAMES)]
    assert sum(count.correct for _, count in counts) == bits.sum() and {count.total for _, count in counts} == {NUMBER}


def made_up(*files):
    return Answers([(Record(c, s, levels, 4, shown), by_model) for c, s, levels, shown, by_model in files])


LINES = ("cbar/lines", "random")


@pytest.mark.parametrize(
    ("serials", "correct"),
    [({None: 1, (1, 2): 2}, 2), ({None: 2, (1, 2): 1}, 0), ({None: 0, (1, 2): 0}, 2), ({(1, 2): 0, (1, 3): 0}, 2)]
    + [({None: 1, (1, 2): 0}, 0), ({None: 3, (1, 2): 2, (1, 3): 2}, 0)],
)
def test_of_several_sets_of_levels_those_asked_for_last_count(tmp_path, serials, correct):
    """Whatever the times of the files are; of files of earlier versions (serial 0) a selected set before all levels."""
    right = {None: 0, (1, 2): 2, (1, 3): 3}
    bits = {levels: {("standard", 0): np.arange(4) < number} for levels, number in right.items()}
    answers.write(tmp_path / "answers", bits[None], Record("clean", 0, None, 4, {}, serial=1))
    for levels, serial in serials.items():
        answers.write(tmp_path / "answers", bits[levels], Record(*LINES, levels, 4, {}, serial=serial))
    for now in (sorted, lambda paths: sorted(paths, reverse=True)):
        for place, path in enumerate(now(tmp_path.glob("answers/*.npz"))):
            os.utime(path, (place, place))
        counts = {count.corruption: count.correct for _, count in answers.read(tmp_path).counts}
        assert counts == {"clean": 0, "cbar/lines": correct}


def test_answers_of_an_earlier_version_to_imagenet_of_tfds_are_not_those_to_imagenet_c(tmp_path, caplog):
    source = {"source": {"source": "/data/imagenet2012_corrupted", "format": "tfds array_record", "version": "3.1.0"}}
    right = {("m", 0): np.ones(4, bool)}
    for name, shown in (
        ("clean", {}),
        ("imagenet_c/fog", source),
        ("imagenet2012_corrupted/fog", source),
        ("imagenet_c/snow", {"source": {"source": "/data/ImageNet-C"}}),
    ):
        answers.write(tmp_path / "answers", right, Record(name, 0 if name == "clean" else 1, None, 4, shown))
    found = answers.read(tmp_path)
    assert [count.corruption for _, count in found.counts] == ["clean", "imagenet2012_corrupted/fog", "imagenet_c/snow"]
    assert "imagenet_c.fog-1" in caplog.text


def test_two_sets_of_levels_with_one_serial_number_are_refused_until_one_is_asked_for(tmp_path):
    folder, bits = tmp_path / "answers", {("standard", 0): np.ones(4, bool)}
    answers.write(folder, bits, Record("clean", 0, None, 4, {}, serial=1))
    records = [Record(*LINES, levels, 4, {}, serial=2) for levels in (None, (1, 2))]
    for record in records:
        answers.write(folder, bits, record)
    refuses(lambda: answers.read(tmp_path), "cbar.lines-random.npz and cbar.lines-random-1-2.npz")
    answers.write(folder, bits, records[0]._replace(serial=answers.next_serial(folder, records[0])))
    assert answers.read(tmp_path).record(("standard", 0, *LINES)).levels is None


def test_answers_of_a_study_are_those_at_all_levels():
    some, more = {("standard", 0): np.array([1, 0, 0, 0], bool)}, {("standard", 0): np.array([1, 1, 1, 0], bool)}
    files = [
        ("clean", 0, None, {}, some),
        ("cbar/lines", "random", None, {}, some),
        ("cbar/lines", "random", (1, 2), {}, more),
        ("noc/hue", "random", None, {}, some),
    ]
    found = made_up(*files)
    assert [count.correct for _, count in found.at_all_levels().counts] == [1, 1, 1]
    with pytest.raises(ValueError, match="seed 0 lacks"):
        found.study(["cbar/lines"])  # no model was trained on it; the levels are not taken for all


def test_models_without_answers_to_clean_images_have_no_counts():
    found = made_up(("clean", 0, None, {}, {("standard", 0): np.ones(4, bool)}),
                    ("noc/hue", 0.5, None, {"seed": 1}, {("other", 0): np.ones(4, bool)}))  # fmt: skip
    assert [key[0] for key, _ in found.counts] == ["standard"]


def test_conditions_come_from_the_answers_to_each_corruption():
    names = {"dataset": "shapes", "classes": 10, "image_shape": [32, 32, 3], "preprocessing": "none"}
    bits = {("standard", 0): np.ones(4, bool)}
    found = Answers([
        (Record("clean", 0, None, 4, {}, names), bits),
        (Record("noc/hue", 1, None, 4, {}, names | {"described": {"range": [0, 1]}, "imports": ["json"]}), bits),
    ])  # fmt: skip
    assert found.conditions == names | {"corruptions": {"noc/hue": {"range": [0, 1]}}}
    assert found.imports == ("json",) and not found.stored
    assert found.shown(("standard", 0, "clean", 0)) == artifacts.digest({})


@pytest.mark.parametrize("inside", ["", "stored/CIFAR-10-C", "superclasses/mean"])
def test_answers_of_a_model_that_was_trained_again_are_left_out(inside, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(answers.log, "propagate", True)
    names = (
        "standard",
        "standard+enhance=nlm:h=1e-3",
        "standard+train=clahe+enhance=nlm",
        "standard+bn=test:16",
        "other",
    )
    for folder, digest in ((tmp_path, "first"), (tmp_path / "train=clahe", "second")):
        model = folder / "models" / "standard" / "seed0"
        workdirs.write_final(model, step=1, digest=digest, num_classes=10)
    assert [trained.trained_digest(tmp_path, name, 0) for name in names] == ["first", "first", "second", "first", ""]
    bits = {(name, 0): np.ones(4, bool) for name in names}
    for digest, left in (("first", {names[0], names[1], names[3], "other"}), ("second", {names[2], "other"})):
        record = Record("clean", 0, None, 4, {}, {}, dict.fromkeys(bits, digest))
        (tmp_path / inside).mkdir(parents=True, exist_ok=True)
        answers.write(tmp_path / inside / "answers", bits, record)
        assert {key[0] for key, _ in answers.read(tmp_path / inside).counts} == left
    assert "3 answers in" in caplog.text and "left out until they are evaluated again" in caplog.text
