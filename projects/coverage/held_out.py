"""Registers `cifar10_held_out`: CIFAR-10 whose test images are 5,000 of the training images, on which the recipe was chosen.

    python -m tools.sweep --config=configs/coverage.py:cpu --config.ranges= --imports=projects.coverage.held_out \
        --config.dataset.name=cifar10_held_out --workdir=runs/coverage_sweep --sweep train.epochs=4,6,9

The other 45,000 are trained on. Both have equally many images of each class.
"""

import os

import numpy as np

import data
from corruptions.reading.folders import balanced_prefix
from data import tfds_source
from data.dataset import Dataset, taken

HELD_OUT = 5000


def load(
    name: str,
    *,
    data_dir: str | os.PathLike | None = None,
    seed: int = 0,
    image_size: int = 32,
    train_limit: int | None = None,
    test_limit: int | None = None,
) -> Dataset:
    """Divides the training images of CIFAR-10; arguments and errors as of `data.load`, seed and image_size change nothing."""
    del seed, image_size
    whole = tfds_source.load_cifar("cifar10", data_dir=data_dir)
    images, labels, classes = whole.train.images, whole.train.labels, whole.num_classes
    first = balanced_prefix(labels, len(labels) - HELD_OUT)
    rest = np.setdiff1d(np.arange(len(labels)), first)
    train, of_train = taken(images, labels, first, classes, f"{name} train", train_limit)
    test, of_test = taken(images, labels, rest, classes, f"{name} test", test_limit)
    return Dataset(name, whole.class_names, train, test, {**whole.provenance, "train": of_train, "test": of_test})


data.register("cifar10_held_out", "projects.coverage.held_out:load")
