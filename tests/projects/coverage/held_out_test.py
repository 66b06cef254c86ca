"""projects.coverage.held_out: the held-out images are training images that nothing was trained on."""

import numpy as np

import data
from data.dataset import Dataset, make_split
from projects.coverage import held_out


def test_training_images_are_divided_with_the_classes_equal(monkeypatch):
    labels = np.repeat(np.arange(3), 20)
    images = np.arange(60, dtype=np.uint8)[:, None, None, None] * np.ones((1, 32, 32, 3), np.uint8)
    train = make_split(images, labels, np.arange(60), 3, "made up")
    test = make_split(images + 100, labels, np.arange(60), 3, "made up")
    whole = Dataset("cifar10", ("a", "b", "c"), train, test, {"source": "made up"})
    monkeypatch.setattr(held_out.tfds_source, "load_cifar", lambda name, data_dir: whole)
    monkeypatch.setattr(held_out, "HELD_OUT", 15)
    found = data.load("cifar10_held_out")
    assert [np.bincount(split.labels).tolist() for split in (found.train, found.test)] == [[15] * 3, [5] * 3]
    assert sorted([*found.train.index, *found.test.index]) == list(range(60))
    for split in (found.train, found.test):
        np.testing.assert_array_equal(split.images[:, 0, 0, 0], split.index)
    assert len(data.load("cifar10_held_out", train_limit=9, test_limit=6).train) == 9
    assert found.provenance["test"]["sha256"] != found.provenance["train"]["sha256"]
