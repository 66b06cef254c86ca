"""Two datasets as one to train on, such as ImageNet and Stylized-ImageNet."""

import dataclasses

import numpy as np

from data.dataset import Dataset, Split
from data.sharded import ShardedImages


def union(first: Dataset, second: Dataset) -> Dataset:
    """The training images of both, in that order, not copied; the test images of the first.

    `index` goes on in the second where it ends in the first, so that each image keeps a number of
    its own. Provenance is that of the first, with that of the second under `mixed_in`.

    Raises:
      ValueError: other class names, or images of another size.
    """
    if first.class_names != second.class_names:
        differ = sorted(set(first.class_names) ^ set(second.class_names)) or ["their order"]
        raise ValueError(
            f"expected the class names of {first.name} in {second.name}, found {second.num_classes} against "
            f"{first.num_classes} classes, different in {', '.join(differ[:5])}"
        )
    shapes = [dataset.train.images.shape[1:] for dataset in (first, second)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"expected images of {shapes[0]} as in {first.name}, found {shapes[1]} in {second.name}")
    if not len(second.train):
        raise ValueError(f"expected training images in {second.name}, found none")
    parts, checks = zip(*(part for split in (first.train, second.train) for part in _parts(split.images)))
    after = int(np.max(first.train.index, initial=-1)) + 1
    train = Split(
        ShardedImages(parts, shapes[0], checks),
        np.concatenate([first.train.labels, second.train.labels]),
        np.concatenate([first.train.index, np.asarray(second.train.index) + np.int32(after)]),
    )
    provenance = {**first.provenance, "mixed_in": {"name": second.name, **second.provenance}}
    return dataclasses.replace(first, name=f"{first.name}+{second.name}", train=train, provenance=provenance)


def _parts(images):
    """(array, its checksums) of each."""
    return zip(images.shards, images.checks) if isinstance(images, ShardedImages) else [(images, None)]
