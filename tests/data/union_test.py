"""Two datasets as one."""

import dataclasses

import numpy as np
import pytest

import data
from data.dataset import Dataset, union


@pytest.fixture(scope="module")
def both():
    first = data.load("shapes", train_limit=30, test_limit=20)
    return first, dataclasses.replace(data.load("shapes", seed=1, train_limit=50, test_limit=10), name="styled")


def test_training_images_of_both_and_test_images_of_the_first(both):
    first, second = both
    found = union(first, second)
    images = np.concatenate([first.train.images, second.train.images])
    np.testing.assert_array_equal(found.train.images, images)
    for chosen in (np.array([79, 0, 30, 29, 0, -1]), slice(25, 40), 3, 70, slice(0, 0)):
        np.testing.assert_array_equal(found.train.images[chosen], images[chosen])
    np.testing.assert_array_equal(found.train.to_device().images, images)
    assert found.train.images.nbytes == images.nbytes and found.train.images.shape == images.shape
    np.testing.assert_array_equal(found.train.labels, [*first.train.labels, *second.train.labels])
    assert len(np.unique(found.train.index)) == len(found.train) == 80
    assert found.train.labels.dtype == found.train.index.dtype == np.int32
    np.testing.assert_array_equal(found.test.images, first.test.images)
    assert found.name == "shapes+styled"
    assert found.provenance["train"] == first.provenance["train"]
    assert found.provenance["mixed_in"]["train"]["sha256"] == second.provenance["train"]["sha256"]


def changed(dataset, **fields) -> Dataset:
    return dataclasses.replace(dataset, **fields)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda d: {"class_names": (*d.class_names[:-1], "other")},
            "found 10 against 10 classes, different in .*other",
        ),
        (lambda d: {"class_names": d.class_names[::-1]}, "different in their order"),
        (lambda d: {"train": dataclasses.replace(d.train, images=d.train.images[:, :16])}, r"images of \(32, 32, 3\)"),
        (lambda d: {"train": data.Split(d.train.images[:0], d.train.labels[:0], d.train.index[:0])}, "found none"),
    ],
)
def test_what_does_not_fit_is_refused(both, change, message):
    first, second = both
    with pytest.raises(ValueError, match=message):
        union(first, changed(second, **change(second)))
