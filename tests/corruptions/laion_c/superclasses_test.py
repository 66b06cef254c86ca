"""The 16 classes of LAION-C and their scores."""

import numpy as np

import corruptions
from corruptions.laion_c import SUPERCLASSES, superclass_labels, superclass_scores
from tests.reference.photographs import photographs

SIZES = dict(
    fruit=6, fish=12, tools=7, instruments=13, ball=6, primate=18, snakes=16, timekeeping=6, chair=6, butterfly=6
)
SIZES |= dict(boat=7, cat=6, bottle=7, car_truck=11, bird=49, dog=109)


def test_the_released_classes():
    assert {name: len(members) for name, members in SUPERCLASSES.items()} == SIZES
    members = [k for numbers in SUPERCLASSES.values() for k in numbers]
    assert len(set(members)) == len(members) == 285 and min(members) >= 0 and max(members) < 1000


def test_scores_are_means_or_sums_of_probabilities():
    logits = np.random.default_rng(0).normal(size=(5, 1000)) * 4
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    for reduce in ("mean", "sum"):
        found = superclass_scores(logits, reduce)
        for column, members in enumerate(SUPERCLASSES.values()):
            np.testing.assert_allclose(found[:, column], getattr(probabilities[:, members], reduce)(1), rtol=1e-5)
    dog = np.zeros((1, 1000))
    dog[0, 200], dog[0, 281] = 7, 5  # a dog for certain, or the mean of 109, below a cat's
    assert list(SUPERCLASSES)[int(superclass_scores(dog, "sum").argmax())] == "dog"
    assert list(SUPERCLASSES)[int(superclass_scores(dog).argmax())] == "cat"


def test_any_classifier_of_imagenet():
    labels = superclass_labels([948, 0, 5, 268])
    assert labels.tolist() == [0, 1, -1, 15]
    images, chosen = photographs(4, 32, 32), labels >= 0
    counts = corruptions.evaluate(
        lambda x: superclass_scores(np.eye(1000)[[0] * len(x)]),  # always a fish
        images[chosen],
        labels[chosen],
        corruptions=("laion_c/glitched",),
        severity="2",
    )
    assert [(count.correct, count.total) for count in counts] == [(1, 3)] * 2
