"""The test set of an evaluation: images, labels and identities, in memory or as batches that are read again and again."""

import dataclasses
import functools
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from corruptions.core.checks import image_shape
from corruptions.core.dispatch import unmasked
from corruptions.core.errors import Refused, RefusedType
from corruptions.core.keys import image_index, integers
from corruptions.core.machine import free_memory

LARGEST_FILLING = 2**30
"""Bytes of a batch that is mostly filling: a mistake, not a network that takes batches of one size."""
_LARGEST_LABEL = 2**31 - 1  # beyond it a label would count as another one, in 32 bits
_PIXELS = 64  # values of an image by which passes over a loader are compared


@dataclasses.dataclass(frozen=True)
class Part:
    """Test images that are shown in batches of `size`, their labels and their identities in all draws."""

    images: np.ndarray
    labels: np.ndarray
    index: np.ndarray
    size: int

    @classmethod
    def checked(cls, images: Any, labels: Any, index: Any, size: int) -> Self:
        """Checks images uint8 [N, H, W, 3], their labels and index, integers [N], and the batch size."""
        labels = np.asarray(unmasked(labels))
        unmasked(images)
        index = np.arange(len(labels)) if index is None else np.asarray(integers(index))
        kind = getattr(images, "dtype", type(images).__name__)
        if np.ndim(images) != 4 or np.shape(images)[-1] != 3 or kind != np.uint8:
            raise RefusedType("images", "images uint8[N, H, W, 3]", f"{kind}{list(np.shape(images))}")
        image_shape(images.shape[1:])
        number = len(images)
        if number == 0:
            raise Refused("images", "at least one image", "none")
        for name, array in (("labels", labels), ("index", index)):
            if array.shape != (number,) or array.dtype.kind not in "iu":
                raise Refused(name, f"{name} of integers [{number}]", f"{array.dtype}{list(array.shape)}")
        if labels.min() < 0 or labels.max() > _LARGEST_LABEL:
            raise Refused("labels", f"labels from 0 to {_LARGEST_LABEL}", f"{labels.min()} to {labels.max()}")
        if size < 1:
            raise Refused("batch_size", "batch_size of at least 1", size)
        image_index(index, number)  # refuses a wrong index
        return cls(images, labels, index, size)

    def rows(self, places: Any) -> "Part":
        """Takes some of the images."""
        return Part(self.images[places], self.labels[places], self.index[places], self.size)

    def fingerprint(self) -> int:
        """Computes a checksum of the labels and of some values of each image."""
        flat = np.asarray(self.images).reshape(len(self.labels), -1)
        some = np.ascontiguousarray(flat[:, :: max(1, flat.shape[1] // _PIXELS)])
        return zlib.crc32(some.data, zlib.crc32(self.labels.astype(np.int64).data))


@dataclasses.dataclass(frozen=True, eq=False)
class TestSet:
    """Test images with their labels, for `corruptions.evaluate`.

    Raises TypeError and ValueError where they are not as described; batches are checked while they are read.

    Attributes:
      images, labels: as `corruptions.evaluate` describes them.
      index: integers [N], the identity of each image in all draws; None is 0 .. N - 1, and batches have none.
      batch_size: images for `predict`, always as many: the last batch is filled up and the filling not counted; more than
        there are images only below 1 GiB, and no more than the machine's free memory holds, where Linux tells it. Batches that
        are given have the size of the first.
      sizes: (H, W) of the batches that were read, all of them after one pass.
    """

    images: Any
    labels: Sequence[int] | np.ndarray | None = None
    index: Sequence[int] | np.ndarray | None = None
    batch_size: int = 100
    sizes: set[Any] = dataclasses.field(default_factory=set, init=False)
    _passes: "_Passes" = dataclasses.field(default_factory=lambda: _Passes(), init=False)
    __test__: ClassVar[bool] = False  # not a test of pytest

    def __post_init__(self) -> None:
        if self.whole is not None:
            return
        images = self.images
        if isinstance(images, Iterator) or not isinstance(images, Iterable) or hasattr(images, "dtype"):
            kind = f"{type(images).__name__} without labels"
            batches = "a list, DataLoader or other iterable of batches (images, labels)"
            expected = f"images with labels, or {batches} that can be read once for each condition"
            raise RefusedType("images", expected, kind)
        if self.index is not None:
            raise Refused("index", "index=None with batches, which number their images in order", "an index")

    @functools.cached_property
    def whole(self) -> Part | None:
        """All images, None where they come as batches."""
        return None if self.labels is None else Part.checked(self.images, self.labels, self.index, self.batch_size)

    def parts(self) -> Iterator[Part]:
        """Yields the parts, once for each condition: all images in memory, or the batches."""
        return iter([self.whole]) if self.whole else self._passes.compared(self._batches())

    def _batches(self) -> Iterator[Part]:
        start, size = 0, 0
        for batch in self.images:
            if not isinstance(batch, tuple | list) or len(batch) != 2:
                raise RefusedType("images", "batches (images, labels)", type(batch).__name__)
            images, labels = (np.asarray(unmasked(array)) for array in batch)
            size = size or len(labels)
            self.sizes.add(images.shape[1:3])
            yield Part.checked(images, labels, np.arange(start, start + len(labels)), size)
            start += len(labels)
        if not start:
            raise Refused("images", "at least one batch", "none")

    def check_batch_size(self, value_bytes: int) -> None:
        """Refuses (ValueError) batches of images in memory that are mostly filling, or that this machine has no memory for.

        `value_bytes` are those of a value that `predict` gets; beside them there are the image and the corrupted one.
        """
        if self.whole is None:
            return
        number, filled = len(self.images), self.batch_size * math.prod(self.images.shape[1:]) * value_bytes
        if self.batch_size > number and filled > LARGEST_FILLING:
            expected, size = f"batch_size up to {number}, the number of images", f"{filled / 2**30:.3g} GiB"
            found = f"{self.batch_size}, a batch that copies of the last image fill up to {size}"
            raise Refused("batch_size", expected, found, f"batch_size={number}")
        of_one, free = math.prod(self.images.shape[1:]) * (value_bytes + 2), free_memory()
        if free is not None and self.batch_size * of_one > free:
            fits, size = max(1, free // of_one // 2), f"{self.batch_size * of_one / 2**30:.3g} GiB"
            expected = f"batch_size of images that fit the {free / 2**30:.3g} GiB of memory that are free"
            found = f"{self.batch_size}, whose images take {size}, `predict` not counted"
            raise Refused("batch_size", expected, found, f"batch_size={fits} takes half of it")


class _Passes:
    """Compares each pass over a loader with the first: a loader that shuffles gives each image another's results."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._whole = False

    def compared(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Yields the parts of a pass; ValueError where they are others than those of the first pass."""
        number = -1
        for number, part in enumerate(parts):
            found = part.fingerprint()
            if not self._whole:
                self._first.append(found)
            elif self._first[number : number + 1] != [found]:
                self._refuse(number)
            yield part
        if number + 1 != len(self._first):
            self._refuse(number + 1)
        self._whole = True

    def _refuse(self, batch: int) -> None:
        expected = "the same images in the same order each time the batches are read"
        hint = "give a loader that does not shuffle (shuffle=False) and draws no augmentation"
        raise Refused("images", expected, f"others in batch {batch}", hint)
