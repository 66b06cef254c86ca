"""A `Dataset` of two `Split`s, the result of every source of images.

Images are uint8[N, H, W, 3] (RGB, 0..255), labels are int32[N] in 0..num_classes-1, and `index` is int32[N]: the
place of the image in the full split. It stays with the image when the split is limited or shuffled, so a random
corruption keyed by it does not change with the limit.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core.origin import probe_shown, same_probe
from corruptions.files import digest_of
from corruptions.reading.folders import balanced_prefix
from data.blocks import Blocks
from runtime.meshes import place_array

_SAMPLED = 2000  # images of a `sample`


class ShardedImages:
    """Images uint8[N, H, W, 3] in shards uint8[n_i, H, W, 3], in order: a prepared store, or two datasets. Read-only.

    Indexing with a slice or integers gives a NumPy array (a copy) and reads only these images. Images of a shard with
    checksums are compared with them before their first use.
    """

    dtype = np.dtype(np.uint8)
    ndim = 4

    def __init__(
        self,
        shards: Sequence[np.ndarray],
        image_shape: tuple[int, int, int],
        checks: Sequence[Blocks | None] | None = None,
    ):
        for shard in shards:
            if shard.dtype != np.uint8 or shard.shape[1:] != tuple(image_shape):
                found = f"{shard.dtype}{list(shard.shape)}"
                raise ValueError(f"expected shards uint8[n, {', '.join(map(str, image_shape))}], found {found}")
        # Plain arrays over the same memory: each index into a np.memmap makes a memmap, several times as slow.
        self.shards = tuple(np.asarray(shard) for shard in shards)
        self.checks = tuple(checks) if checks is not None else (None,) * len(self.shards)
        self._ends = np.cumsum([len(shard) for shard in shards], dtype=np.int64)
        self.shape = (int(self._ends[-1]) if len(shards) else 0, *image_shape)

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key) -> np.ndarray:
        if isinstance(key, slice):
            return self.take(np.arange(*key.indices(len(self))))
        key = np.asarray(key)
        if key.dtype == bool:
            key = np.flatnonzero(key) if key.shape == (len(self),) else key  # `take` refuses other masks
        return self.take(key.reshape(-1)).reshape(*key.shape, *self.shape[1:])

    def take(self, index: np.ndarray) -> np.ndarray:
        """Returns images uint8[len(index), H, W, 3]; index [M] from -N to N - 1."""
        index = np.asarray(index)
        if index.size and (index.dtype.kind not in "iu" or not -len(self) <= index.min() <= index.max() < len(self)):
            found = f"{index.dtype} in {index.min()}..{index.max()}"
            raise IndexError(f"expected integers from {-len(self)} to {len(self) - 1}, found {found}")
        index = np.where(index < 0, index + len(self), index).astype(np.int64)
        which = np.searchsorted(self._ends, index, side="right")
        out = np.empty((len(index), *self.shape[1:]), np.uint8)
        begins = np.concatenate([[0], self._ends])
        for row, (shard, position) in enumerate(zip(which, index - begins[which])):
            if check := self.checks[shard]:
                check.check(position, position + 1)
            out[row] = self.shards[shard][position]
        return out

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("images in several shards cannot become one array without a copy")
        return self[:] if dtype is None else self[:].astype(dtype)

    def to_device(self, sharding: jax.sharding.Sharding | None = None) -> jax.Array:
        """Copies to one array on the device; host and device hold at most one shard beside it."""
        if not self.shards or (sharding is not None and not sharding.is_fully_replicated):
            return place_array(np.asarray(self), sharding)
        whole = jax.jit(lambda: jnp.zeros(self.shape, jnp.uint8), out_shardings=sharding)()
        for shard, check, end in zip(self.shards, self.checks, self._ends):
            if check:
                check.check(0, len(shard))
            whole = _insert(whole, place_array(shard, sharding), np.int32(end - len(shard)))
        return whole


@functools.partial(jax.jit, donate_argnums=0)
def _insert(whole, shard, start):
    return jax.lax.dynamic_update_slice_in_dim(whole, shard, start, axis=0)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Split:
    """Images uint8[N, H, W, 3], labels int32[N] and index int32[N]; NumPy arrays, or JAX arrays after `to_device`.

    The images of a prepared store, or of a union, are `ShardedImages`, which are indexed like an array. A split is a
    pytree, so it can be an argument of a jitted function.
    """

    images: Any
    labels: Any
    index: Any

    def __len__(self) -> int:
        return self.images.shape[0]

    def to_device(self, sharding: jax.sharding.Sharding | None = None) -> "Split":
        """Copies the split to the device, still uint8, in one transfer; batches are then gathers there.

        None as `sharding` is the default device; one that divides the first axis needs N to be a multiple of its pieces.
        """
        sharded = isinstance(self.images, ShardedImages)
        images = self.images.to_device(sharding) if sharded else place_array(np.asarray(self.images), sharding)
        return Split(images, *(place_array(np.asarray(array), sharding) for array in (self.labels, self.index)))


class Parts(NamedTuple):
    """Parts of a test set; train.py reports the accuracy on each."""

    labels: np.ndarray  # int32 [N], the part of each test image, then of each unreadable file that counts as an error
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A named pair of splits.

    `provenance` is a JSON-ready record of the origin of the pixels (source, version, sizes, sha256 of every array), by
    which a result names its data. `parts` divides the test images, where a protocol does.
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
    """Makes a `Split` after checking shapes, types and the range of labels; `what` names it in errors."""
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


def limited(split: Split, limit: int | None) -> Split:
    """Takes the class-balanced prefix of a split; the same object when `limit` is None."""
    if limit is None:
        return split
    keep = balanced_prefix(split.labels, limit)
    return Split(split.images[keep], split.labels[keep], split.index[keep])


def cut(split: Split, rows: np.ndarray, side: int) -> np.ndarray:
    """Reads images of a split; larger ones are cut to their centre of `side` pixels."""
    images = split.images[rows]
    margin = (images.shape[1] - side) // 2
    return images[:, margin : margin + side, margin : margin + side]


def taken(
    images: np.ndarray, labels: np.ndarray, index: np.ndarray, num_classes: int, what: str, limit: int | None
) -> tuple[Split, dict[str, Any]]:
    """Takes the images and labels at `index` as a limited split; returns it with its provenance."""
    split = limited(make_split(images[index], labels[index], index, num_classes, what), limit)
    return split, describe(split)


def describe(split: Split, known: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Makes the provenance of one split: size, image shape and sha256 of the arrays (from `known` if present)."""
    digests = known or {name: digest_of(np.asarray(getattr(split, name))) for name in ("images", "labels", "index")}
    return {"size": len(split), "image_shape": list(split.images.shape[1:]), "sha256": dict(digests)}


def drawn(split: Split) -> dict[str, Any]:
    """Describes a split of drawn images as `describe`, with some values by which `same_images` compares them."""
    return describe(split) | {"drawn": probe_shown(lambda places: split.images[places], len(split), None)}


def same_images(stored: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Compares the provenance of two splits: whether they hold the same images, labels and index.

    Their digests are equal. Of drawn images other processors may draw other lowest bits: digests of labels and index
    are equal, and 1,024 values within one level (`corruptions.core.origin.same_probe`).
    """
    first, second = (one.get("sha256") or one.get("sample") or {} for one in (stored, now))
    if first == second or not ("drawn" in stored and "drawn" in now):
        return first == second
    others = all(first.get(name) == second.get(name) for name in first | second if name != "images")
    return others and same_probe(stored["drawn"], now["drawn"])


def sampled(dataset: Dataset) -> Dataset:
    """Adds `sample` to the provenance of splits without sha256, as of `data.register`: digests of labels, of the index and of
    2,000 images at equal distances, so that no large dataset is read whole.
    """
    provenance = dict(dataset.provenance)
    for name in ("train", "test"):
        facts, split = provenance.get(name, {}), getattr(dataset, name)
        if "sha256" not in facts:
            rows = np.linspace(0, len(split) - 1, min(_SAMPLED, len(split))).astype(int)
            arrays = {"images": np.asarray(split.images[rows]), "labels": split.labels, "index": split.index}
            digests = {key: digest_of(np.asarray(array)) for key, array in arrays.items()}
            provenance[name] = {**facts, "sample": {"number": len(split), **digests}}
    return dataclasses.replace(dataset, provenance=provenance)


def union(first: Dataset, second: Dataset) -> Dataset:
    """Joins two datasets to train on both, such as ImageNet and Stylized-ImageNet; test images come from the first.

    Images are not copied. `index` of the second continues after the first, so that each image keeps a number of its
    own. Provenance comes from the first, with the second's under `mixed_in`. Raises ValueError for other class names,
    or images of another size.
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
    parts, checks = [], []
    for images in (first.train.images, second.train.images):
        sharded = isinstance(images, ShardedImages)
        parts += images.shards if sharded else [images]
        checks += images.checks if sharded else [None]
    after = int(np.max(first.train.index, initial=-1)) + 1
    train = Split(
        ShardedImages(parts, shapes[0], checks),
        np.concatenate([first.train.labels, second.train.labels]),
        np.concatenate([first.train.index, np.asarray(second.train.index) + np.int32(after)]),
    )
    provenance = {**first.provenance, "mixed_in": {"name": second.name, **second.provenance}}
    return dataclasses.replace(first, name=f"{first.name}+{second.name}", train=train, provenance=provenance)
