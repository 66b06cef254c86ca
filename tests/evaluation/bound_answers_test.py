"""Answers are bound to the models and images they come from; tables follow from answers, whatever
was edited in them.
"""

import json
import shutil

import numpy as np
import pytest

import data
import eval as evaluation
from analysis import answers, derived, tables
from configs import default
from evaluation import correctness
from evaluation.any_classifier import evaluate
from evaluation.conditions import list_conditions
from evaluation.evaluate import evaluate_models
from evaluation.shown import Shown
from runtime import meshes
from runtime.files import DamagedFileError
from runtime.workdirs import WorkdirError
from tests.training import tiny
from training import states, study
from training.checkpoint import digest

BORDER = ("standard", 0, "noc/border", "random")
IMAGES, LABELS = np.arange(16 * 16 * 3 * 20, dtype=np.uint32).astype(np.uint8).reshape(20, 16, 16, 3), np.arange(20) % 5


def brightness(images):
    return -np.abs(np.asarray(images, np.float64).mean((1, 2, 3))[:, None] * 5 - np.arange(5))


def measure(workdir, corruptions=("noc/border",), **changed):
    given = {"batch_size": 20, "severity": "random", "dtype": "uint8", "progress": False} | changed
    predict = lambda images: brightness(np.asarray(images) / 255)  # noqa: E731
    return evaluate(predict, IMAGES, LABELS, corruptions=corruptions, workdir=workdir, **given)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured") / "work"
    return folder, measure(folder)


@pytest.fixture
def study_folder(measured, tmp_path):
    return shutil.copytree(measured[0], tmp_path / "work")


@pytest.fixture
def warnings(caplog, monkeypatch):
    monkeypatch.setattr(derived.log, "propagate", True)
    return caplog


def edit(path, seal):
    """The clean row says 1 of 20: R of everything else becomes many times what it is."""
    first, *lines = path.read_text().splitlines(True)
    lines = [line.rpartition(",")[0].rpartition(",")[0] + ",1,20\n" if ",clean," in line else line for line in lines]
    path.write_text("".join([first, *lines] if seal else lines))


@pytest.mark.parametrize("seal", [True, False])
@pytest.mark.parametrize("asked", [("noc/border",), ()])
def test_an_edited_table_changes_no_result(study_folder, measured, warnings, seal, asked):
    before = {path.name: path.read_text().partition("\n")[2] for path in study_folder.glob("*.csv")}
    assert len(before) == 4
    for name in before:
        edit(study_folder / name, seal)
    with pytest.raises(ValueError, match=r"counts\.csv: expected .* (edited|correct answers of standard)"):
        derived.read_counts(study_folder / "counts.csv")
    measure(study_folder, asked)
    assert (
        tables.read_counts(study_folder / "counts.csv")
        == measured[1]
        == derived.read_counts(study_folder / "counts.csv")
    )
    assert {path.name: path.read_text().partition("\n")[2] for path in study_folder.glob("*.csv")} == before
    assert "counts.csv said otherwise than the answers in 1 rows" in warnings.text
    assert ("scores.csv was edited" in warnings.text) == seal


def test_a_table_that_cannot_be_read_is_written_again(study_folder, measured, warnings):
    path = study_folder / "counts.csv"
    path.write_text(path.read_text()[:-5])
    measure(study_folder, ())
    assert tables.read_counts(path) == measured[1] and "found the file cut off" in warnings.text


def test_rows_without_answers_are_kept_unless_the_table_was_edited(study_folder, measured, warnings):
    (study_folder / "answers" / "noc.border-random.npz").unlink()
    measure(study_folder, ())
    assert tables.read_counts(study_folder / "counts.csv") == measured[1]
    assert "The answers behind 1 rows of" in warnings.text
    edit(study_folder / "counts.csv", seal=True)
    with pytest.raises(ValueError, match=r"counts\.csv was edited, and the answers behind 1 of its rows are gone"):
        measure(study_folder, ())
    measure(study_folder)  # what is evaluated again needs no answers
    assert tables.read_counts(study_folder / "counts.csv") == measured[1]


def test_answers_to_other_images_are_not_used(study_folder, measured, warnings):
    """draws.json was removed, and the answers of another seed stayed."""
    (study_folder / "config.json").unlink(), (study_folder / "provenance.json").unlink()
    for path in study_folder.glob("*.*"):
        path.unlink()
    (study_folder / "answers" / "draws.json").unlink()
    shutil.move(study_folder / "answers", study_folder.with_name("kept"))
    measure(study_folder, (), seed=3)
    shutil.copy(study_folder.with_name("kept") / "noc.border-random.npz", study_folder / "answers")
    again = measure(study_folder, seed=3)
    assert "noc.border-random.npz holds answers to other images than these: they are evaluated again." in warnings.text
    assert again == measure(study_folder.with_name("fresh"), seed=3)


@pytest.mark.parametrize(
    ("stem", "condition"),
    [
        ("clean-0", ("clean", 0)),
        ("noc.border-random", ("noc/border", "random")),
        ("cbar.lines-random-1-4-7", ("cbar/lines", "random")),
        ("noc.rain-0.25", ("noc/rain", 0.25)),
        ("noc.rain-1e-05", ("noc/rain", 1e-05)),
        ("imagenet_c.fog-3", ("imagenet_c/fog", 3)),
        ("mine.a-b-2", ("mine/a-b", 2)),
        ("notes", None),
    ],
)
def test_files_tell_their_condition(stem, condition):
    assert derived.condition_of(stem) == condition
    if condition:
        levels = (1, 4, 7) if stem.endswith("-7") else None
        assert answers.file_stem(*condition, levels) == stem


def test_of_two_selections_the_table_tells_which(tmp_path):
    bits = np.arange(20) < 7
    for stem, correct in (("clean-0", bits), ("cbar.lines-random", bits), ("cbar.lines-random-1-2", ~bits)):
        answers.write(tmp_path / "answers" / f"{stem}.npz", {("standard", 0): correct})
    for correct in (7, 13):
        rows = [("standard", 0, "clean", 0, 7, 20), ("standard", 0, "cbar/lines", "random", correct, 20)]
        tables.write_counts(tmp_path / "counts.csv", rows, "by hand")
        assert derived.recount(tmp_path, (), {}) == rows == derived.read_counts(tmp_path / "counts.csv")


# A trained workdir: of a network that saw no training.


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tiny.untrained_workdir(tmp_path_factory.mktemp("trained") / "work", tiny.config())
    run(folder, ("noc/border",))
    return folder


def run(folder, corruptions):
    config = default.get_config()
    config.eval.update({"corruptions": corruptions, "batch_size": 32})
    return {row.key: row for row in evaluation.run(config, folder)}


def test_a_model_that_was_trained_again_is_evaluated_again(trained, tmp_path, warnings):
    folder = shutil.copytree(trained, tmp_path / "work")
    before = {row.key: row for row in tables.read_counts(folder / "counts.csv")}
    tiny.train_again(folder, tiny.config())
    with pytest.raises(ValueError, match="of an earlier one, which was trained again since"):
        derived.read_counts(folder / "counts.csv")  # as set_means, join_scan, msd and the report read it
    after = run(folder, ())
    assert (
        list(after) == [("standard", 0, "clean", 0)]
        and "clean-0.npz holds answers of standard, seed 0" in warnings.text
    )
    assert "1 conditions were answered by models that have been trained again since" in warnings.text
    after = run(folder, ("noc/border",))
    assert after.keys() == before.keys() and after != before
    fresh = shutil.copytree(folder, tmp_path / "fresh", ignore=shutil.ignore_patterns("answers", "*.csv"))
    assert run(fresh, ("noc/border",)) == after


def test_answers_without_digests_are_accepted_and_bound_when_written(trained, tmp_path, monkeypatch):
    folder = shutil.copytree(trained, tmp_path / "work")
    path = folder / "answers" / "noc.border-random.npz"
    packed, made_from = answers.read_packed(path)
    assert made_from.models == {("standard", 0): json.loads((folder / "final.json").read_text())["digest"]}
    np.savez(path, **{"standard|0": packed["standard", 0], "other|0": packed["standard", 0]})
    draws = json.loads((folder / "answers" / "draws.json").read_text())
    assert draws.pop("images").keys() == {"images", "labels", "index"}
    (folder / "answers" / "draws.json").write_text(json.dumps(draws))
    monkeypatch.setattr(correctness, "of_model", lambda *args: pytest.fail("evaluated again"))
    assert run(folder, ("noc/border",))[BORDER] == tables.read_counts(trained / "counts.csv")[1]
    assert "images" in json.loads((folder / "answers" / "draws.json").read_text())
    monkeypatch.undo()
    config = study.model_config(tiny.config(), "standard", 0)
    graphdef, params, statistics = states.build_model(config, 10, 32)
    state = states.initial_state(params, statistics, states.make_optimizer(config.train, 1))
    dataset = data.load("shapes", train_limit=10, test_limit=70)
    shown = Shown.of(tiny.config(), dataset.test.to_device(), meshes.data_mesh(), dataset.provenance)
    models = {("standard", 0): (graphdef, state), ("third", 0): (graphdef, state)}
    evaluate_models(models, shown, list_conditions(["noc/border"], "random"), folder)
    assert answers.read_packed(path)[1].models == {key: digest(state) for key in models}
    assert answers.read(path, 70).keys() == {*models, ("other", 0)}


def test_other_test_images_are_refused(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "work")
    path = folder / "answers" / "draws.json"
    draws = json.loads(path.read_text())
    draws["images"]["images"] = "0" * 64
    path.write_text(json.dumps(draws))
    with pytest.raises(WorkdirError, match=r"other corrupted images.*\n.*images\.images: stored '0000"):
        run(folder, ())


def test_answers_to_one_condition_are_not_taken_for_another(study_folder):
    """As after the files were swapped or renamed."""
    clean, other = study_folder / "answers" / "clean-0.npz", study_folder / "answers" / "noc.border-random.npz"
    assert other.exists()
    shutil.copy(other, clean)
    with pytest.raises(
        DamagedFileError, match=r"clean-0\.npz: expected answers under clean-0, found noc\.border-random"
    ):
        measure(study_folder)
