"""Workdirs read back: answers are bound to their model and to the images of their condition, models to their folder."""

import json
import pathlib
import shutil

import numpy as np
import pytest

import eval as evaluation
from analysis import answers
from analysis.trained import trained_digest
from configs import default
from data import shapes
from evaluation import correctness, trained_models
from evaluation import evaluate as engine
from runtime import artifacts
from runtime.files import DamagedFileError
from runtime.settings import WorkdirError
from tests.analysis.made_up import cell_of, read_counts
from tests.evaluation.any_classifier import evaluate
from tests.refusing import refuses
from tests.training import tiny

BEFORE = pathlib.Path(__file__).parents[1] / "fixtures" / "evaluated_workdir"
BORDER, HUE = ("standard", 0, "noc/border", "random"), ("standard", 0, "noc/hue", "random")
IMAGES, LABELS = np.arange(16 * 16 * 3 * 20, dtype=np.uint32).astype(np.uint8).reshape(20, 16, 16, 3), np.arange(20) % 5


def brightness(images):
    return -np.abs(np.asarray(images, np.float64).mean((1, 2, 3))[:, None] * 5 - np.arange(5))


def measure(workdir, corruptions=("noc/border", "noc/hue"), **changed):
    given = {"batch_size": 20, "severity": "random", "dtype": "uint8", "progress": False} | changed
    predict = given.pop("predict", lambda images: brightness(np.asarray(images) / 255))
    return evaluate(predict, IMAGES, LABELS, corruptions=corruptions, workdir=workdir, **given)


def nobody(images):
    """Answers clean images, about which a classifier is asked again, and no others."""
    clean = {image.tobytes() for image in IMAGES}
    assert all(np.asarray(image).tobytes() in clean for image in images), "evaluated again"
    return brightness(np.asarray(images) / 255)


def another(images):
    return brightness(np.asarray(images) / 255)[:, ::-1]


def test_a_workdir_of_before_is_read_continued_and_compared(tmp_path):
    """Of revision 4872d3e4, whose files say less of what made them: `measure(folder, ("noc/hue",))`."""
    folder = shutil.copytree(BEFORE, tmp_path / "work")
    before = {path.name: path.read_bytes() for path in (folder / "answers").iterdir()}
    assert measure(folder, ("noc/hue",)) == measure(tmp_path / "fresh", ("noc/hue",))
    assert measure(folder) == measure(tmp_path / "fresh")
    assert {path.name: path.read_bytes() for path in (folder / "answers").iterdir() if path.name in before} == before
    for changed, message in (
        ({"predict": another}, "network: stored another"),
        ({"seed": 1}, "seed: stored 0, requested 1"),
        ({"options": {"noc/hue": {"range": (0.1, 0.2)}}}, "options.range"),
    ):
        with pytest.raises(ValueError, match=message):
            measure(folder, **changed)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured") / "work"
    return folder, measure(folder)


@pytest.fixture
def folder(measured, tmp_path):
    return shutil.copytree(measured[0], tmp_path / "work")


@pytest.fixture
def warnings(caplog, monkeypatch):
    monkeypatch.setattr(engine.log, "propagate", True)
    return caplog


def test_an_edited_or_damaged_table_changes_no_result(folder, measured):
    before = {path.name: path.read_text().partition("\n")[2] for path in folder.glob("*.csv")}
    for content in ("", "model,seed\n", None):
        for name in before:
            edited = (measured[0] / name).read_text().replace("20", "21")
            (folder / name).write_text(edited if content is None else content)
        measure(folder, (), predict=nobody)
        assert {path.name: path.read_text().partition("\n")[2] for path in folder.glob("*.csv")} == before


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tiny.untrained_workdir(tmp_path_factory.mktemp("trained") / "work", tiny.config())
    run(folder, ("noc/border",))
    return folder


def run(folder, corruptions, **options):
    config = default.get_config()
    config.eval.update({"corruptions": corruptions, "batch_size": 32})
    config.train.corruption_options = options.get("options", {})
    return {cell_of(row): row[1] for row in evaluation.run(config, folder)}


def test_a_model_that_was_trained_again_is_evaluated_again(trained, tmp_path, warnings):
    folder = shutil.copytree(trained, tmp_path / "work")
    before = {cell_of(row): row[1] for row in read_counts(folder / "counts.csv")}
    tiny.train_again(folder, tiny.config())
    assert answers.read(folder).counts == []
    after = run(folder, ())
    assert list(after) == [("standard", 0, "clean", 0)]
    assert "clean-0.npz holds answers of standard, seed 0" in warnings.text
    after = run(folder, ("noc/border",))
    assert after.keys() == before.keys() and after != before
    fresh = shutil.copytree(folder, tmp_path / "fresh", ignore=shutil.ignore_patterns("answers", "*.csv"))
    assert run(fresh, ("noc/border",)) == after


def test_answers_of_other_models_stay_beside(dataset, trained, tmp_path, monkeypatch):
    folder = shutil.copytree(trained, tmp_path / "work")
    path = folder / "answers" / "noc.border-random.npz"
    found, record = answers.read_file(path)
    expected = dataset.provenance["test"]["sha256"]
    assert record.shown["images"] == expected and expected.keys() == {"images", "labels", "index"}
    assert record.number == 70
    assert record.models == {("standard", 0): trained_digest(folder, "standard", 0)}
    answers.write(folder / "answers", {("other", 0): ~found["standard", 0]}, record._replace(models={}))
    after = run(folder, ("noc/border",))
    assert answers.read_file(path)[0].keys() == {("other", 0), ("standard", 0)}
    monkeypatch.setattr(correctness, "network_logits", lambda *args: pytest.fail("evaluated again"))
    assert run(folder, ("noc/border",)) == after


def test_other_test_images_are_refused(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "work")
    found, record = answers.read_file(folder / "answers" / "clean-0.npz")
    images = record.shown["images"] | {"labels": "0" * 64}
    answers.write(folder / "answers", found, record._replace(shown={"images": images}))
    refuses(lambda: run(folder, ()), "under 1 of 1", "images.labels: stored '0000", kind=WorkdirError)


def test_drawn_images_with_other_lowest_bits_are_the_same(trained, tmp_path, monkeypatch):
    folder, draw = shutil.copytree(trained, tmp_path / "work"), shapes.draw
    before = {path.name: answers.read_file(path)[1].shown["images"] for path in (folder / "answers").glob("*.npz")}
    monkeypatch.setattr(correctness, "network_logits", lambda *args: pytest.fail("evaluated again"))
    monkeypatch.setattr(shapes, "draw", lambda *given: draw(*given) ^ np.uint8(1))
    run(folder, ("noc/border",))
    monkeypatch.undo()
    monkeypatch.setattr(shapes, "draw", lambda *given: draw(*given) ^ np.uint8(1))
    run(folder, ("noc/border", "noc/hue"))
    named = [answers.read_file(path)[1].shown["images"] for path in (folder / "answers").glob("*.npz")]
    assert len(named) == 3 and all(images == before["clean-0.npz"] for images in named)
    monkeypatch.setattr(shapes, "draw", lambda *given: draw(*given) ^ np.uint8(8))
    refuses(lambda: run(folder, ()), "images.images: stored", kind=WorkdirError)


def test_ranges_given_later_refuse_only_what_they_change(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "work")
    options = {"noc/border": {"range": (1, 2)}}
    assert HUE in run(folder, ("noc/hue",), options=options)
    refuses(lambda: run(folder, ("noc/hue", "noc/border"), options=options), "under 1 of 3", kind=WorkdirError)
    assert BORDER in run(folder, ())
    assert artifacts.read(folder / "answers" / "clean-0.npz").made_from["shown"].keys() == {"images"}


# Settings that came after the first workdirs were made.
LATER = {
    "dataset": ("train_size", "placement"),
    "train": (
        *("flip_alternates", "random_resized_crop", "transforms", "mix_in"),
        *("label_smoothing", "batch_norm", "scheme", "jsd_weight"),
    ),
}


@pytest.fixture
def workdir(tmp_path):
    config = tiny.config()
    config.dataset.placement = "device"
    return tiny.untrained_workdir(tmp_path / "run", config)


def test_where_images_lie_is_said_by_the_command(workdir):
    config = tiny.config(epochs=7)
    config.dataset.update({"placement": "stream", "data_dir": "elsewhere"})
    with trained_models.open_workdir(workdir, config) as own:
        assert own.dataset.placement == "stream" and own.dataset.data_dir == "elsewhere"
        assert own.train.epochs == 2


def test_workdirs_of_earlier_settings_are_evaluated(workdir):
    stored = json.loads((workdir / "config.json").read_text())
    for part, keys in LATER.items():
        for key in keys:
            del stored[part][key]
    config = tiny.config()
    config.eval.update({"corruptions": ("imagenet_c/contrast",), "severity": "5"})
    expected = evaluation.run(config, workdir)
    for path in (workdir / "answers").iterdir():
        path.unlink()
    (workdir / "config.json").write_text(json.dumps(stored))
    (workdir / "provenance.json").unlink()  # the digest shows an edit
    tiny.finish(workdir, tiny.config())
    assert evaluation.run(config, workdir) == expected


def test_only_folders_named_as_their_model_are_read(tmp_path, monkeypatch, caplog):
    """A backup does not replace a model, whether the model exists or was moved away."""
    monkeypatch.setattr(trained_models.log, "propagate", True)
    own = tiny.untrained_workdir(tmp_path / "models" / "standard" / "seed0", tiny.config())
    for name in ("standard/seed0_old", "before/seed0"):
        shutil.copytree(own, tmp_path / "models" / name)
    assert trained_models.list_models(tmp_path) == {("standard", 0): own}
    assert f"{tmp_path}: left out models/before/seed0, models/standard/seed0_old, whose names" in caplog.text
    shutil.rmtree(own)
    refuses(lambda: trained_models.list_models(tmp_path), "models in folders models/NAME/seedN", kind=FileNotFoundError)


def test_a_config_that_is_something_else_is_named(workdir):
    """Swaps it with the provenance beside it, which contains its digest."""
    provenance = (workdir / "provenance.json").read_text()
    shutil.copy(workdir / "config.json", workdir / "provenance.json")
    (workdir / "config.json").write_text(provenance)
    for read in (lambda: evaluation.run(tiny.config(), workdir), lambda: trained_models.list_models(workdir)):
        with pytest.raises(DamagedFileError, match=r"config\.json: expected the settings of a model, found none of"):
            read()
