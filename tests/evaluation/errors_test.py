"""Errors of an evaluation: which reference is taken, what is refused or labelled, and what the tables hold."""

import json

import numpy as np
import pandas
import pytest

from corruptions.scoring import classifier
from evaluation import results
from runtime.files import DamagedFileError
from runtime.settings import SettingsError
from tests.analysis import published
from tests.analysis.made_up import counted
from tests.evaluation.any_classifier import evaluate

# As many classes as AlexNet has and a benchmark that it was measured on, but random pictures of 16x16.
IMAGES = np.random.default_rng(0).integers(0, 256, (6, 16, 16, 3), np.uint8)
LABELS = np.array([3, 3, 999, 0, 3, 7])
ONE_CLASS = {"corruptions": ("imagenet_noc",), "severity": "random", "batch_size": 6, "num_classes": 1000}


@pytest.fixture
def as_they_are(monkeypatch):
    """Leaves the corruptions themselves out."""
    monkeypatch.setattr(classifier, "corrupt", lambda key, images, *given, **options: images)


def measure(workdir, images=IMAGES, **changed):
    predict = lambda batch: np.eye(1000)[np.full(len(batch), 3)]  # noqa: E731
    given = {**ONE_CLASS, "workdir": workdir, "progress": False} | changed
    return evaluate(predict, images, LABELS, **given)


def table(path):
    """The rows of a table, as text."""
    return pandas.read_csv(path, dtype=str, keep_default_na=False).to_dict("records")


def mean_of(workdir, benchmark="imagenet_noc"):
    (row,) = [r for r in table(workdir / "errors.csv") if (r["benchmark"], r["corruption"]) == (benchmark, "mean")]
    return row


def test_a_thousand_classes_are_no_imagenet(as_they_are, tmp_path, capsys):
    measure(tmp_path / "w", progress=True)
    row = mean_of(tmp_path / "w")
    assert row["reference"] == "none" and float(row["mean_error"]) == 50
    assert [row[key] for key in ("CE", "relative_CE", "CE_se")] == ["nan"] * 3
    why = [line for line in capsys.readouterr().out.splitlines() if "no CE or mCE by AlexNet" in line]
    assert len(why) == 1
    assert all(part in why[0] for part in ("dataset: imagenet, here not known", "image size: 224x224, here 16x16"))


def test_a_named_reference_of_other_conditions_is_refused_before_anything_is_evaluated(as_they_are, tmp_path):
    with pytest.raises(SettingsError) as error:
        measure(tmp_path / "w", reference="alexnet")
    text = str(error.value)
    parts = ("dataset: imagenet, here not known", "224x224, here 16x16", "noc/rain, severity range: 12 to 120, here")
    for part in (*parts, "preprocessing", "reference_mismatch=label"):
        assert part in text
    assert not list((tmp_path / "w").glob("*.csv")) and not (tmp_path / "w" / "answers").exists()


def test_or_labelled_in_every_place(as_they_are, tmp_path, capsys):
    measure(tmp_path / "w", reference="alexnet", reference_mismatch="label", progress=True)
    row = mean_of(tmp_path / "w")
    assert row["reference"] == "AlexNet:ImageNet-NOC" and float(row["CE"]) > 0
    assert {"dataset", "image_shape", "noc/rain:range"} <= set(row["mismatch"].split(";"))
    (summary,) = [r for r in table(tmp_path / "w" / "errors_summary.csv") if r["measure"] == "mCE"]
    assert summary["mismatch"] == row["mismatch"] and float(summary["mean"]) == float(row["CE"])
    assert "other conditions than AlexNet:ImageNet-NOC: dataset" in capsys.readouterr().out
    record = json.loads((tmp_path / "w" / "evaluation.json").read_text())
    assert "noc/rain:range" in record["reference"]["different"]["AlexNet:ImageNet-NOC"]


def test_alexnets_errors_are_taken_where_everything_holds(as_they_are, tmp_path):
    """Images of 224x224 that are said to be ImageNet's; frost is not the original's, so ImageNet-C has no mCE."""
    images = np.zeros((6, 224, 224, 3), np.uint8)
    measure(tmp_path / "w", images, dataset="imagenet")
    row = mean_of(tmp_path / "w")
    assert (row["reference"], row["mismatch"]) == ("AlexNet:ImageNet-NOC", "none")
    assert float(row["CE"]) == pytest.approx(100 * np.mean(0.5 / published.ALEXNET_NOC))
    measure(tmp_path / "c", images, dataset="imagenet", corruptions=("imagenet_c",), severity="levels")
    rows = {r["corruption"]: r for r in table(tmp_path / "c" / "errors.csv")}
    assert rows["imagenet_c/fog"]["reference"] == "AlexNet:ImageNet-C" and rows["imagenet_c/frost"]["CE"] == "nan"
    assert rows["mean"]["CE"] == "nan" and rows["mean"]["frost"] == "procedural"
    labelled = {"reference": "alexnet", "reference_mismatch": "label"}
    measure(tmp_path / "c", images, dataset="imagenet", corruptions=("imagenet_c",), severity="levels", **labelled)
    row = mean_of(tmp_path / "c", "imagenet_c")
    assert row["mismatch"] == "imagenet_c/frost:frost" and row["frost"] == "procedural" and float(row["CE"]) > 0


@pytest.mark.parametrize("what", ["workdir", "file"])
def test_an_evaluated_workdir_and_a_file_are_references(as_they_are, tmp_path, what):
    measure(tmp_path / "first", dataset="mine")
    asked = tmp_path / "first"
    if what == "file":
        from analysis.errors import reference

        asked = tmp_path / "first.json"
        reference.write(asked, reference.of_workdir(tmp_path / "first"))
    measure(tmp_path / "second", reference=asked, dataset="mine")
    row = mean_of(tmp_path / "second")
    assert row["reference"] == "first:standard" and float(row["CE"]) == pytest.approx(100)
    assert row["relative_CE"] == "nan"  # the reference loses nothing
    for changed, message in (
        ({"images": np.zeros((6, 20, 20, 3), np.uint8)}, "here 20x20"),
        ({"options": {"noc/hue": {"range": (0.1, 0.2)}}}, r"noc/hue, severity range: 0\.05 to 0\.5, here 0\.1 to 0\.2"),
        ({"dataset": ""}, "dataset: mine, here not known"),
    ):
        with pytest.raises(SettingsError, match=message):
            measure(tmp_path / "third", **{"reference": asked, "dataset": "mine"} | changed)


def test_what_is_no_reference_is_named(as_they_are, tmp_path):
    (tmp_path / "bad.json").write_text('{"name": "x"}')
    (tmp_path / "empty").mkdir()
    for name, error, message in (
        ("nowhere", FileNotFoundError, r"expected a reference .* found no .*nowhere"),
        ("bad.json", DamagedFileError, r"bad\.json: expected clean, found nothing of that name"),
        ("empty", FileNotFoundError, r"expected an evaluated workdir.*run eval\.py"),
    ):
        with pytest.raises(error, match=message):
            measure(tmp_path / "w", reference=str(tmp_path / name))


def test_models_that_were_shown_other_conditions_are_printed_without_the_others(capsys):
    counts = [
        counted(model, 0, name, severity, correct, 100)
        for model, name, severity, correct in (
            ("a", "clean", 0, 80), ("a", "noc/hue", 1, 40), ("a", "noc/hue", 2, 20), ("b", "clean", 0, 50),
            ("b", "noc/blur", "random", 25),
        )
    ]  # fmt: skip
    # The mean of two standard errors, each of 41.8 or 21.8 of 103.6, over 100 images: 4.91 and 4.08.
    results.print_scores(counts)
    first, second = capsys.readouterr().out.split("b, seed 0")
    assert "accuracy  30.00 % +- 4.49   R 0.375" in first and "noc/blur" not in first
    assert "noc/hue" not in second and "nan" not in second
