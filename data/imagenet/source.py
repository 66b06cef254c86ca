"""Sources of a store of ImageNet: a tree of class folders, or a tfds `imagenet2012` in array_record format.

A source has classes, the number of entries of each split, and pieces: small objects that a worker process turns into
encoded images. An entry of tfds may belong to a class that is left out; only reading it tells.
"""

import dataclasses
import functools
import hashlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from data import tfds_source, tree
from data.imagenet.load import class_stride, tree_stride
from data.imagenet.store import Encoded

_TFDS = "imagenet2012"
_TFDS_SPLITS = {"train": "train", "test": "validation"}
_READ = 32  # records of tfds at a time


def open_source(name: str, source: str | os.PathLike, test_fraction: float = 0.1) -> "TreeSource | TfdsSource":
    """Opens the source of dataset `name`: a tree's root, tfds's data_dir, or its imagenet2012/VERSION.

    Raises:
      FileNotFoundError: neither is there, or tfds stored it in another file format.
      ValueError: there are not 1,000 classes (or 100, for imagenet100).
    """
    root = Path(source).expanduser()
    folder = root if (root / "dataset_info.json").exists() else tfds_source.newest(root / _TFDS)
    if folder is not None:
        return TfdsSource.open(name, folder)
    return TreeSource.open(name, tree.find_root(root), test_fraction)


@dataclasses.dataclass(frozen=True)
class TreeSource:
    """Files below class folders.

    Attributes:
      class_names: names in WordNet order.
      stride: one in `stride` entries is used, on average.
      splits: {split: items of `data.tree.scan`}.
    """

    root: Path
    class_names: tuple[str, ...]
    splits: dict[str, list[tree.Item]]
    stride: int = 1

    @classmethod
    def open(cls, name: str, root: Path, test_fraction: float) -> "TreeSource":
        classes, items = tree.scan(root, tree_stride(name, root), test_fraction, 0)
        return cls(root, tuple(classes), items)

    def count(self, split: str) -> int:
        return len(self.splits[split])

    def identity(self) -> dict[str, Any]:
        """Identifies the files by names and sizes, wherever the tree lies."""
        digest = hashlib.sha256()
        for split, items in self.splits.items():
            for path, label, _ in items:
                line = [split, path.relative_to(self.root).as_posix(), tree.size_and_time(path)[0], label]
                digest.update(f"{json.dumps(line)}\n".encode())
        return {"kind": "tree", "listing_sha256": digest.hexdigest()}

    def piece(self, split: str, start: int, stop: int) -> "FilePiece":
        return FilePiece(tuple((str(path), label) for path, label, _ in self.splits[split][start:stop]))


@dataclasses.dataclass(frozen=True)
class FilePiece:
    """A piece of (path, label) pairs."""

    files: tuple[tuple[str, int], ...]

    def read(self) -> Iterator[Encoded]:
        for path, label in self.files:
            yield path, label, path


@dataclasses.dataclass(frozen=True)
class TfdsSource:
    """Records of tfds; attributes as `TreeSource`."""

    folder: Path
    class_names: tuple[str, ...]
    stride: int
    sizes: dict[str, int]

    @classmethod
    def open(cls, name: str, folder: Path) -> "TfdsSource":
        if (found := tfds_source.file_format(folder)) != "array_record":
            raise FileNotFoundError(
                f"{folder} is stored as {found}, expected array_record, which is read without TensorFlow; tfds "
                "converts it with tfds.builder(..., file_format='array_record')"
            )
        names = tfds_source.class_names(folder, 1000)
        if list(names) != sorted(names):
            raise ValueError(f"{folder}: expected label names that are WordNet IDs in order, found {names[:3]} ...")
        stride = class_stride(name, len(names), folder)
        sizes = {split: len(_records(folder, theirs)) for split, theirs in _TFDS_SPLITS.items()}
        return cls(folder, names[::stride], stride, sizes)

    def count(self, split: str) -> int:
        return self.sizes[split]

    def identity(self) -> dict[str, Any]:
        files = [(path.name, path.stat().st_size) for path in sorted(self.folder.glob("*.array_record*"))]
        listing = hashlib.sha256(json.dumps(files).encode()).hexdigest()
        return {"kind": "tfds", "version": self.folder.name, "listing_sha256": listing}

    def piece(self, split: str, start: int, stop: int) -> "RecordPiece":
        return RecordPiece(self.folder, _TFDS_SPLITS[split], start, stop, self.stride)


@dataclasses.dataclass(frozen=True)
class RecordPiece:
    """Records start .. stop - 1 of a split, of every stride-th class."""

    folder: Path
    split: str
    start: int
    stop: int
    stride: int

    def read(self) -> Iterator[Encoded]:
        records = _records(self.folder, self.split)
        for begin in range(self.start, self.stop, _READ):
            positions = range(begin, min(begin + _READ, self.stop))
            for position, record in zip(positions, records.__getitems__(list(positions))):
                label, rest = divmod(int(record["label"]), self.stride)
                if rest == 0:
                    yield f"{self.split} record {position}", label, io.BytesIO(record["image"])


_records = functools.lru_cache(maxsize=2)(tfds_source.records)
