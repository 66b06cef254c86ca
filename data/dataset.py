"""What every source of images gives: a `Dataset` of two `Split`s.

Images are uint8[N, H, W, 3] (RGB, 0..255), labels are int32[N] in 0..num_classes-1, and `index` is
int32[N]: the place of the image in the full split. It stays with the image when the split is
limited or shuffled, so a random corruption keyed by it does not change with the limit.
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from data.sharded import ShardedImages
from runtime.meshes import place_array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Split:
    """Images uint8[N, H, W, 3], labels int32[N] and index int32[N]; NumPy arrays, or JAX arrays
    after `to_device`.

    The images of a prepared store, or of two datasets joined, are `ShardedImages`, which are
    indexed like an array.

    It is a pytree, so it can be an argument of a jitted function.
    """

    images: Any
    labels: Any
    index: Any

    def __len__(self) -> int:
        return self.images.shape[0]

    def to_device(self, sharding: jax.sharding.Sharding | None = None) -> "Split":
        """The same split on the device, still uint8: one transfer, after which batches are gathers
        there.

        Args:
          sharding: where the arrays lie; None is the default device. A sharding that divides the
            first axis needs N to be a multiple of the number of its pieces.
        """
        sharded = isinstance(self.images, ShardedImages)
        images = self.images.to_device(sharding) if sharded else place_array(np.asarray(self.images), sharding)
        return Split(images, *(place_array(np.asarray(array), sharding) for array in (self.labels, self.index)))


class Parts(NamedTuple):
    """Parts of a test set, on each of which train.py tells the accuracy.

    Attributes:
      labels: int32 [N], the part of each test image; where files that cannot be read count as errors,
        theirs follow.
      names: of the parts.
    """

    labels: np.ndarray
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A named pair of splits.

    `provenance` says where the pixels come from (source, version, sizes, sha256 of every array) in
    values that JSON can hold, so that a result can name the data it was measured on. `parts`
    divides the test images, where a protocol does.
    """

    name: str
    class_names: tuple[str, ...]
    train: Split
    test: Split
    provenance: Mapping[str, Any]
    parts: Parts | None = None

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(H, W, 3)."""
        return tuple(self.test.images.shape[1:])


def make_split(images: np.ndarray, labels: np.ndarray, index: np.ndarray, num_classes: int, what: str) -> Split:
    """A `Split` whose shapes, types and label range have been checked; `what` names it in
    errors.
    """
    if images.ndim != 4 or images.shape[-1] != 3 or images.dtype != np.uint8:
        raise ValueError(f"{what}: expected images uint8[N, H, W, 3], found {images.dtype}{list(images.shape)}")
    count = images.shape[0]
    for name, array in (("labels", labels), ("index", index)):
        if array.shape != (count,):
            raise ValueError(f"{what}: expected {name} [{count}], one per image, found {list(array.shape)}")
    if count and not 0 <= labels.min() <= labels.max() < num_classes:
        found = f"{labels.min()}..{labels.max()}"
        raise ValueError(f"{what}: expected labels in 0..{num_classes - 1}, found {found}")
    return Split(images, labels.astype(np.int32), index.astype(np.int32))


def balanced_prefix(labels: np.ndarray, limit: int | None) -> np.ndarray:
    """Positions of at most `limit` images with the classes as equal as possible: int[min(limit,
    N)].

    The order is first image of every class, second image of every class, and so on; therefore the
    positions for a smaller limit are the beginning of those for a larger one. `limit=None` keeps
    every image in its own order.
    """
    labels = np.asarray(labels)
    if limit is None:
        return np.arange(len(labels))
    if limit < 1:
        raise ValueError(f"expected a limit of at least 1 image (or None for all), found {limit}")
    by_class = np.argsort(labels, kind="stable")
    _, first, count = np.unique(labels[by_class], return_index=True, return_counts=True)
    rank = np.empty(len(labels), int)  # how many images of the same class come before this one
    rank[by_class] = np.arange(len(labels)) - np.repeat(first, count)
    return np.lexsort((labels, rank))[:limit]


def limited(split: Split, limit: int | None) -> Split:
    """The class-balanced prefix of a split; the very same object when `limit` is None."""
    if limit is None:
        return split
    keep = balanced_prefix(split.labels, limit)
    return Split(split.images[keep], split.labels[keep], split.index[keep])


def sha256(array: np.ndarray) -> str:
    """sha256 of the array's bytes in C order, hexadecimal."""
    return hashlib.sha256(np.ascontiguousarray(array)).hexdigest()


def describe(split: Split, known: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The provenance of one split: size, image shape and sha256 of the arrays, taken from `known`
    when given.
    """
    digests = known or {name: sha256(np.asarray(getattr(split, name))) for name in ("images", "labels", "index")}
    return {"size": len(split), "image_shape": list(split.images.shape[1:]), "sha256": dict(digests)}
