"""eval.evaluate: any function from images to logits, under the corrupted images of eval.py."""

import os

import jax
import numpy as np
import pytest

import corruptions
import data
import models
from corruptions.scoring import classifier
from corruptions.scoring.conditions import list_conditions
from corruptions.write import write_dataset
from corruptions.write.sources import from_arrays
from eval import Classifier, TestSet, run
from eval import evaluate as evaluate_once
from evaluation.evaluate import evaluate_models
from evaluation.results import count_answers
from evaluation.shown import Shown
from runtime import meshes
from runtime.workdirs import WorkdirError
from tests.analysis.made_up import read_counts
from tests.corruptions.comparing import refused
from tests.evaluation import known
from tests.evaluation.any_classifier import evaluate
from tests.fixtures import small
from tests.refusing import refuses
from tests.training import tiny

CORRUPTIONS = ("imagenet_c/gaussian_noise", "noc/border")
BATCH = 32  # 70 images: two batches and a part


@pytest.fixture(scope="module")
def split(dataset):
    return dataset.test


def brightness(images):
    """A classifier in NumPy: ten steps of the mean brightness."""
    means = np.asarray(images, np.float64).mean((1, 2, 3))
    return -np.abs(means[:, None] * 10 - np.arange(10) - 0.5)


def test_counts_are_those_of_eval(split, tmp_path):
    network, config = known.split(models.build("small_resnet", 10, **small.NETWORK)), tiny.config()
    model = known.merge(*network)
    predict = jax.jit(lambda images: model(images, train=False)[0])
    mesh = meshes.data_mesh()
    conditions = list_conditions(CORRUPTIONS, "random")
    split = data.Split(split.images, split.labels, split.index[::-1] + 1000)  # draws follow the index, not the place
    shown = Shown.of(config, split.to_device(), mesh)
    answers = evaluate_models({("standard", 0): network}, shown, conditions, tmp_path)
    expected = count_answers(answers)
    expected = [count for _, count in expected]
    assert 0 < expected[0].correct < 70 and len({row.correct for row in expected}) > 1
    of = dict(corruptions=CORRUPTIONS, severity="random", batch_size=BATCH, index=split.index, progress=False)
    for dtype in ("uint8", "float32"):
        assert evaluate(predict, split.images, split.labels, dtype=dtype, **of) == expected
    library = lambda **of: corruptions.evaluate(predict, TestSet(split.images, split.labels, split.index, BATCH), **of)  # noqa: E731
    of_library = {name: value for name, value in of.items() if name not in ("batch_size", "index")}
    assert library(**of_library) == expected
    with_options = of | {"options": {"border": {"range": [8, 9]}}}  # another spelling of noc/border, a list
    thick = evaluate(predict, split.images, split.labels, **with_options)
    assert thick[:2] == expected[:2] and thick[2] != expected[2]
    assert library(**of_library, options=with_options["options"]) == thick
    with refused("rnage", "'rnage'"):
        evaluate(predict, split.images, split.labels, **of | {"options": {"border": {"rnage": (8, 9)}}})


def test_a_stopped_evaluation_resumes_and_leaves_tables(split, tmp_path):
    calls = []

    def failing(images):
        calls.append(1)
        if len(calls) > 4:  # in the second condition
            raise KeyboardInterrupt
        return brightness(images)

    def run(predict, **changes):
        given = {"corruptions": CORRUPTIONS, "severity": "random", "name": "mine", "workdir": tmp_path / "w"} | changes
        return evaluate(predict, split.images, split.labels, batch_size=BATCH, progress=False, **given)

    with pytest.raises(KeyboardInterrupt):
        run(failing)
    calls.clear()

    def counting(images):
        calls.append(1)
        return brightness(images)

    found = run(counting)
    assert len(calls) == 7  # one about the clean images, which were kept
    assert [count for _, count in read_counts(tmp_path / "w" / "counts.csv")] == found == run(counting) and len(
        calls
    ) == 8
    assert {"scores.csv", "errors.csv", "provenance.json", "evaluation.json"} <= {
        p.name for p in (tmp_path / "w").iterdir()
    }
    run(counting, name="other")  # a second classifier in the same tables
    assert {key[0] for key, _ in read_counts(tmp_path / "w" / "counts.csv")} == {"mine", "other"}
    refuses(
        lambda: evaluate(brightness, 255 - split.images, split.labels, corruptions=(), workdir=tmp_path / "w"),
        "shown.images",
        kind=WorkdirError,
    )


@pytest.mark.parametrize("name", ["a\0b", "=1+1", "@SUM(A1)", "+1", "-2", "nan", "None", "a\u202eb", "a b", ""])
def test_a_name_that_files_or_tables_would_not_give_back_is_refused(split, tmp_path, name):
    refuses(
        lambda: evaluate(brightness, split.images, split.labels, corruptions=(), name=name, workdir=tmp_path / "w"),
        "model name",
    )
    assert not (tmp_path / "w").exists()


@pytest.mark.needs("torch")
def test_a_pytorch_network_sees_the_memory_of_jax(split):
    import torch

    def predict(images):
        x = torch.from_dlpack(images)
        assert x.data_ptr() == images.unsafe_buffer_pointer()
        steps = torch.arange(10) + 0.5
        return -(x.mean((1, 2, 3))[:, None] * 10 - steps).abs()

    of = {"corruptions": ("noc/border",), "severity": "1", "batch_size": BATCH, "progress": False}
    assert evaluate(predict, split.images, split.labels, **of) == evaluate(brightness, split.images, split.labels, **of)


@pytest.mark.parametrize(
    "answers, changes, message",
    [
        (np.zeros(70), {}, r"expected real logits \[70, classes\] from predict, found float64\[70\]"),
        (np.zeros((3, 10)), {}, r"expected real logits \[70, classes\]"),
        (np.zeros((70, 10), int), {}, r"found int64\[70, 10\]; .*float32"),
        (np.zeros(70, int), {}, r"found int64\[70\]; classes are not enough"),
        (np.zeros((70, 5)), {}, "expected logits of at least 10 classes for these labels, found 5"),
        (np.full((70, 10), np.nan), {}, "found NaN"),
        (None, {"labels": np.zeros(69, int)}, r"expected labels of integers \[70\], found int64\[69\]"),
        (None, {"index": np.zeros(70)}, r"expected index of integers \[70\], found float64\[70\]"),
        (None, {"images": np.zeros((70, 32, 32, 3))}, r"expected images uint8\[N, H, W, 3\], found float64"),
        (None, {"dtype": "bfloat16"}, "expected dtype among float32, uint8, found 'bfloat16'"),
        (None, {"batch_size": 0}, "batch_size of at least 1, found 0"),
        (None, {"name": "my model"}, "found 'my model'"),
        (None, {"corruptions": ("fgo",)}, "did you mean"),
    ],
)
def test_what_is_wrong_is_named(split, answers, changes, message):
    predict = brightness if answers is None else lambda images: answers
    given = {"images": split.images, "labels": split.labels, "batch_size": 70, "corruptions": (), "progress": False}
    given |= changes
    with pytest.raises((ValueError, TypeError), match=message):
        evaluate(predict, given.pop("images"), given.pop("labels"), **given)


def test_what_is_not_given_is_imagenet_c_at_all_levels(monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (2, 16, 16, 3), np.uint8)
    monkeypatch.setattr(classifier, "corrupt", lambda key, images, *given, **options: images)
    found = evaluate_once(Classifier(brightness), TestSet(images, [0, 1], batch_size=2))
    assert [row[:2] for row in found] == [(c.corruption, c.value) for c in list_conditions(("imagenet_c",), "levels")]


def test_batches_are_left_to_the_library(split):
    refuses(
        lambda: evaluate_once(Classifier(brightness), TestSet([(split.images, split.labels)])),
        "batches; corruptions.evaluate(predict, loader)",
        kind=TypeError,
    )


def test_a_stored_dataset_of_other_classes_is_refused(tmp_path):
    images, config = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), np.uint8), tiny.config()
    tiny.untrained_workdir(tmp_path / "work", config)
    for name, labels, class_names, message in (
        ("named", np.arange(12) % 2, ("cat", "dog"), r"expected a stored dataset of 10 classes.*found 2 in .*named"),
        (
            "other",
            np.arange(12) % 10,
            tuple("abcdefghij"),
            r"the classes of shapes, such as warm-disc, found a in its place",
        ),
        ("numbered", np.arange(12), None, r"numbered: expected labels of the 10 classes of shapes, found 11"),
    ):
        source = from_arrays(images, labels, class_names)
        write_dataset(tmp_path / name, source, corruptions="noc/contrast", severities=[1])
        config.eval.stored = str(tmp_path / name)
        with pytest.raises(ValueError, match=message):
            run(config, tmp_path / "work")
    write_dataset(tmp_path / "fewer", (images, np.arange(12) % 9), corruptions="noc/contrast", severities=[1])
    config.eval.stored = str(tmp_path / "fewer")  # the tenth class has no image
    assert {count.total for _, count in run(config, tmp_path / "work")} == {12, 70}  # stored, clean


def test_stored_datasets_whose_names_differ_only_in_capitals_are_refused(tmp_path):
    """Their results would be one folder on a disk of macOS or Windows."""
    images, config = np.random.default_rng(0).integers(0, 256, (10, 32, 32, 3), np.uint8), tiny.config()
    tiny.untrained_workdir(tmp_path / "work", config)
    for name in ("set", "Set"):
        write_dataset(tmp_path / name, (images, np.arange(10)), corruptions="noc/contrast", severities=[1])
    config.eval.stored = str(tmp_path / "set")
    assert run(config, tmp_path / "work") and run(config, tmp_path / "work")
    config.eval.stored = str(tmp_path / "Set")
    refuses(lambda: run(config, tmp_path / "work"), "system tells from 'set'", "'Set'")
    assert [path.name for path in (tmp_path / "work" / "stored").iterdir()] == ["set"]


def test_a_stored_dataset_is_verified_before_anything_is_evaluated(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), np.uint8)
    write_dataset(tmp_path / "set", (images, np.zeros(12, int)), corruptions="noc/contrast", severities=[1])
    file = tmp_path / "set" / "contrast.npy"
    stat, content = file.stat(), file.read_bytes()
    file.write_bytes(content[:-500] + bytes(500))
    config = tiny.config()
    config.eval.stored = str(tmp_path / "set")
    message = r"1 of its files changed since they were written:\n.*contrast.npy: expected sha256"
    with pytest.raises(ValueError, match=message):
        run(config, tmp_path / "workdir")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    refuses(lambda: run(config, tmp_path / "workdir"), "workdir", kind=FileNotFoundError)
    config.eval.verify = True
    with pytest.raises(ValueError, match=message):
        run(config, tmp_path / "workdir")
    assert not (tmp_path / "workdir").exists()
