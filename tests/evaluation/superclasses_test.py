"""LAION-C's 16 classes in eval.py: which images are shown, and answers by the mean and by the sum of probabilities."""

import dataclasses

import numpy as np
import pytest

import data
import eval as evaluation_script
from corruptions.laion_c import SUPERCLASSES
from corruptions.scoring.conditions import CLEAN_IMAGES
from data import Split
from data.natural import sets
from evaluation import correctness, superclasses
from runtime.settings import SettingsError
from tests.analysis.made_up import read_counts
from tests.evaluation.natural_test import WORDNET, situation
from tests.training import tiny
from tools.check import verify_workdir

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
    assert [(c.corruption, c.severity, c.total) for c in counts] == [("clean", 0, 16), ("laion_c/glitched", 3, 16)]
    assert read_counts(workdir / "superclasses/mean/counts.csv") == counts
    config.eval.superclasses = "sum"
    assert [c.total for c in evaluation_script.run(config, workdir)] == [16, 16]
    assert not verify_workdir(workdir).problems and not (workdir / "counts.csv").exists()


def test_a_model_of_other_classes_is_refused_in_one_line():
    for names, lacks in ((WORDNET[::10], "255 members"), (sets.CIFAR10, "285 members")):
        with pytest.raises(ValueError, match=f"ImageNet's 1,000 classes .* lacks {lacks} of LAION-C's") as caught:
            superclasses.of_classes(names, "sum")
        assert "\n" not in str(caught.value)
    _, dataset, shown = situation(WORDNET)
    none = dataclasses.replace(shown, split=Split(shown.split.images[:2], np.int32([5, 5]), shown.split.index[:2]))
    with pytest.raises(ValueError, match="images of LAION-C's 16 classes, found none among 2"):
        superclasses.shown_of(none, dataset, "mean")


@pytest.mark.parametrize(
    ("setting", "value"), [("stored", "CIFAR-10-C"), ("natural", "imagenet_r"), ("temperature", 100)]
)
def test_settings_that_do_not_go_with_them_are_named(setting, value):
    config = tiny.config()
    config.eval.update({setting: value, "superclasses": "mean"})
    with pytest.raises(
        SettingsError, match=f"config.eval.{setting}: expected none with config.eval.superclasses='mean'"
    ):
        superclasses.check(config.eval)
