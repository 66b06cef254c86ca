"""Models on natural test sets and on LAION-C's 16 classes: which logits and which clean images count, and the tables."""

import dataclasses
import functools
import logging

import numpy as np
import pytest
from ml_collections import ConfigDict

import data
import eval as evaluation_script
from corruptions.laion_c import SUPERCLASSES
from corruptions.scoring.conditions import CLEAN_IMAGES
from data import Dataset, Split
from data.natural import sets
from evaluation import correctness, superclasses
from evaluation.evaluate import Evaluation, networks
from evaluation.natural import choose, open_evaluations
from evaluation.shown import Shown
from projects.natural_shift.sources import read_workdirs
from runtime import meshes
from runtime.log import log
from runtime.settings import SettingsError
from tests.analysis.made_up import read_counts
from tests.data.natural_test import tree
from tests.evaluation import known
from tests.refusing import refuses
from tests.training import tiny
from tools.check import verify_workdir

SIDE = 4
WORDNET = list(sets.imagenet().groups)
OBJECTS = sets.objectnet()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("natural")
    tree(root / "imagenet_r", sets.imagenet("imagenet_r").groups)
    tree(root / "objectnet" / "images", OBJECTS.folders)
    return root


def situation(names, place=False):
    """(models, dataset, shown): logits that are noise, other noise for every grey, and two clean images per class."""
    labels = np.repeat(np.arange(len(names)), 2).astype(np.int32)
    shades = np.random.default_rng(1).integers(0, 256, len(labels), np.uint8)
    images = np.ascontiguousarray(np.broadcast_to(shades[:, None, None, None], (len(labels), SIDE, SIDE, 3)))
    split = Split(images, labels, np.arange(len(labels), dtype=np.int32))
    dataset = Dataset("imagenet", tuple(names), split, split, {})
    model = known.split(known.Table(np.random.default_rng(len(names)).normal(size=(256, len(names)))))
    shown = Shown(split.to_device() if place else split, meshes.data_mesh(), 64)
    return {("standard", 0): model}, dataset, shown


def evaluate(names, sets, folder, workdir, place=False):
    config = ConfigDict({"dataset": {}, "eval": {"natural": sets, "natural_dir": str(folder), "enhance": ""}})
    models, dataset, shown = situation(names, place)
    opened = open_evaluations(functools.partial(Evaluation, models), config, dataset, shown, workdir, networks())
    found = {c: by_model for evaluation in opened for c, by_model in evaluation.run(progress=False).items()}
    logits = np.asarray(models["standard", 0][1].params["table"][...])
    bits = {condition.corruption: by_model["standard", 0] for condition, by_model in found.items()}
    return bits, logits, shown.split


def answered(logits, groups):
    """Groups that a model answers for each shade, by the definition."""
    allowed = np.flatnonzero(groups >= 0)
    return groups[allowed[logits[:, allowed].argmax(axis=1)]]


@pytest.mark.parametrize("place", [False, True])
def test_answers_are_among_the_sets_classes_alone(folder, tmp_path, place):
    bits, logits, clean = evaluate(WORDNET, "imagenet_r", folder, tmp_path, place)
    groups = sets.imagenet("imagenet_r").of_model(WORDNET, "")
    answers = answered(logits, groups)
    np.testing.assert_array_equal(bits["natural/imagenet_r"], answers[np.arange(200)] == np.arange(200))
    shades, labels = np.asarray(clean.images)[:, 0, 0, 0], groups[np.asarray(clean.labels)]
    expected = (answers[shades] == labels)[labels >= 0]
    np.testing.assert_array_equal(bits["clean/imagenet_r"], expected)
    assert len(expected) == 400 and expected.any()


def test_any_class_of_an_object_is_right(folder, tmp_path):
    bits, logits, _ = evaluate(WORDNET, " objectnet,", folder, tmp_path)
    groups = OBJECTS.of_model(WORDNET, "")
    names = sorted(OBJECTS.folders)
    labels = np.array([OBJECTS.folders[name] for name in names])
    shades = np.array([list(OBJECTS.folders).index(name) for name in names])
    np.testing.assert_array_equal(bits["natural/objectnet"], answered(logits, groups)[shades] == labels)
    assert len(bits["clean/objectnet"]) == 250


def test_a_model_of_some_classes_is_shown_those_and_their_images(folder, tmp_path):
    some = WORDNET[1:40]
    bits, logits, _ = evaluate(some, "imagenet_r", folder, tmp_path)
    groups = sets.imagenet("imagenet_r").of_model(some, "")
    shown = np.sort(groups[groups >= 0])
    np.testing.assert_array_equal(bits["natural/imagenet_r"], answered(logits, groups)[shown] == shown)
    assert len(bits["clean/imagenet_r"]) == 2 * len(shown)


def test_test_images_without_a_class_of_the_set_are_refused(folder, tmp_path, monkeypatch):
    models, dataset, shown = situation(WORDNET)
    groups = sets.imagenet("imagenet_r").of_model(WORDNET, "")
    others = np.flatnonzero(groups[shown.split.labels] < 0)[:30]
    few = shown.showing(choose(shown.split, others, shown.split.labels[others]))
    monkeypatch.setattr("tests.evaluation.natural_test.situation", lambda *given: (models, dataset, few))
    refuses(lambda: evaluate(WORDNET, "imagenet_r", folder, tmp_path), "none among the 30 of")


def test_where_all_classes_are_the_sets_clean_images_are_clean(folder, tmp_path):
    own = list(sets.imagenet("imagenet_r").groups)[::-1]  # in another order than the set's
    bits, logits, _ = evaluate(own, "imagenet_r", folder, tmp_path)
    assert list(bits) == ["natural/imagenet_r"]
    np.testing.assert_array_equal(bits["natural/imagenet_r"], 199 - logits.argmax(axis=1)[:200] == np.arange(200))


def test_sets_are_all_opened_before_one_is_evaluated(folder, tmp_path):
    refuses(
        lambda: evaluate(WORDNET, "imagenet_r,imagenet_a", folder, tmp_path),
        "imagenet_a in",
        "--config.eval.natural_dir says where",
        kind=FileNotFoundError,
    )
    assert not (tmp_path / "answers").exists()
    refuses(lambda: evaluate(sets.CIFAR10, "imagenet_r", folder, tmp_path), "the classes of imagenet_r")


def test_eval_adds_rows_that_natural_shift_reads(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(log, "propagate", True)
    load = data.load
    cifar = {"name": "cifar10", "class_names": sets.CIFAR10}
    monkeypatch.setattr(data, "load", lambda *args, **kwargs: dataclasses.replace(load(*args, **kwargs), **cifar))
    config = tiny.config()
    config.eval.update({"corruptions": (), "natural": "cifar10_1", "natural_dir": str(tmp_path)})
    test = load("shapes", train_limit=160, test_limit=70).test
    (tmp_path / "cifar10_1").mkdir()
    np.save(tmp_path / "cifar10_1" / "cifar10.1_v6_data.npy", 255 - test.images)
    np.save(tmp_path / "cifar10_1" / "cifar10.1_v6_labels.npy", test.labels)
    workdir = tiny.untrained_workdir(tmp_path / "work", config)
    counts = evaluation_script.run(config, workdir)
    assert [(c.corruption, c.severity, c.total) for _, c in counts] == [("clean", 0, 70), ("natural/cifar10_1", 0, 70)]
    assert read_counts(workdir / "counts.csv") == counts
    table = read_workdirs([workdir])
    assert table["natural/cifar10_1"] == pytest.approx([100 * counts[1][1].correct / 70])
    assert table["clean/cifar10_1"] == table["clean"] and not table.synthetic

    monkeypatch.setattr("evaluation.correctness.ask", None)  # nothing is evaluated again
    assert evaluation_script.run(config, workdir) == counts
    config.eval.natural = ""
    assert evaluation_script.run(config, workdir) == counts  # and no row is lost
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert not verify_workdir(workdir).problems


# LAION-C.
MEMBERS = list(SUPERCLASSES.values())
LABELS = np.full(1000, -1)
for _number, _members in enumerate(MEMBERS):
    LABELS[list(_members)] = _number


def expected_answers(logits, reduce):
    """The 16-way answer of each row of logits over 1,000 classes in WordNet order, by the definition."""
    probabilities = np.exp(logits.astype(np.float64))
    probabilities /= probabilities.sum(1, keepdims=True)
    return np.stack([getattr(probabilities[:, list(m)], reduce)(1) for m in MEMBERS], 1).argmax(1)


@pytest.mark.parametrize("turned", [False, True], ids=["in WordNet's order", "in another order"])
@pytest.mark.parametrize("place", [False, True], ids=["streamed", "on the device"])
def test_answers_are_those_of_the_definition(turned, place):
    names = WORDNET[::-1] if turned else WORDNET
    models, dataset, shown = situation(names, place)
    order = np.argsort([WORDNET.index(name) for name in names])  # logits of the model
    logits = np.asarray(models["standard", 0][1].params["table"][...])[:, order]
    labels = LABELS[[WORDNET.index(names[label]) for label in np.asarray(shown.split.labels)]]
    shades = np.asarray(shown.split.images)[:, 0, 0, 0]
    answers = {}
    for reduce in ("mean", "sum"):
        own = superclasses.shown_of(shown, dataset, reduce).under(CLEAN_IMAGES)
        (found,) = correctness.of_models(models, own).values()
        answers[reduce] = expected_answers(logits[shades], reduce)
        np.testing.assert_array_equal(found, (answers[reduce] == labels)[labels >= 0])
        assert len(own) == len(found) == 570 and own.record.shown["superclasses"] == reduce
    assert (answers["mean"] != answers["sum"]).mean() > 0.3  # a mean puts the 109 dogs at a disadvantage


def test_eval_writes_tables_of_their_own(tmp_path, monkeypatch):
    """An image of each of the 16, one of which any network gets right that answers one alone, and 14 of other classes."""
    whole = data.load("shapes", train_limit=20, test_limit=30)
    labels = np.array([members[0] for members in MEMBERS] + [5] * 14, np.int32)
    test = Split(whole.test.images, labels, whole.test.index)
    imagenet = dataclasses.replace(whole, name="imagenet", class_names=tuple(WORDNET), test=test)
    monkeypatch.setattr(data, "load", lambda *args, **kwargs: imagenet)
    config = tiny.config()
    config.eval.update({"corruptions": ("laion_c/glitched",), "severity": "3", "superclasses": "mean"})
    workdir = tiny.untrained_workdir(tmp_path / "work", config, classes=1000)
    counts = evaluation_script.run(config, workdir)
    assert [(c.corruption, c.severity, c.total) for _, c in counts] == [("clean", 0, 16), ("laion_c/glitched", 3, 16)]
    assert read_counts(workdir / "superclasses/mean/counts.csv") == counts
    config.eval.superclasses = "sum"
    assert [c.total for _, c in evaluation_script.run(config, workdir)] == [16, 16]
    assert not verify_workdir(workdir).problems and not (workdir / "counts.csv").exists()


def test_a_model_of_other_classes_is_refused_in_one_line():
    for names, lacks in ((WORDNET[::10], "255 members"), (sets.CIFAR10, "285 members")):
        with pytest.raises(ValueError, match=f"ImageNet's 1,000 classes .* lacks {lacks} of LAION-C's") as caught:
            superclasses.of_classes(names, "sum")
        assert "\n" not in str(caught.value)
    _, dataset, shown = situation(WORDNET)
    none = dataclasses.replace(shown, split=Split(shown.split.images[:2], np.int32([5, 5]), shown.split.index[:2]))
    refuses(lambda: superclasses.shown_of(none, dataset, "mean"), "none among 2")


@pytest.mark.parametrize("setting, value", [("stored", "CIFAR-10-C"), ("natural", "imagenet_r"), ("temperature", 100)])
def test_settings_that_do_not_go_with_them_are_named(setting, value):
    config = tiny.config()
    config.eval.update({setting: value, "superclasses": "mean"})
    message = f"config.eval.{setting}: expected none with config.eval.superclasses='mean'"
    with pytest.raises(SettingsError, match=message):
        superclasses.check(config.eval)
