"""Sources of a store of ImageNet: a tree of class folders, or a tfds `imagenet2012` in array_record format.

A source has classes, the number of entries of each split, and pieces: functions that a worker process calls to read some
encoded images. An entry of tfds may belong to a class that is left out; only reading it tells.
"""

import functools
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from data import tfds_source, tree
from data.imagenet.load import class_stride, tree_stride
from data.imagenet.store import Encoded

_TFDS = "imagenet2012"
_TFDS_SPLITS = {"train": "train", "test": "validation"}
_READ = 32  # records of tfds at a time


class Source(NamedTuple):
    """A source of a store.

    Attributes:
      class_names: names in WordNet order.
      stride: one in `stride` entries is used, on average.
      sizes: {split: number of entries}.
      identity: JSON-ready facts that decide the pixels, wherever the files lie.
      piece: a function (split, start, stop) -> a function that yields these images.
    """

    class_names: tuple[str, ...]
    stride: int
    sizes: dict[str, int]
    identity: dict[str, Any]
    piece: Callable[[str, int, int], Callable[[], Iterator[Encoded]]]


def open_source(name: str, source: str | os.PathLike, test_fraction: float = 0.1) -> Source:
    """Opens the source of dataset `name`: a tree's root, tfds's data_dir, or its imagenet2012/VERSION.

    Raises:
      FileNotFoundError: neither is there, or tfds stored it in another file format.
      ValueError: there are not 1,000 classes (or 100, for imagenet100).
    """
    root = Path(source).expanduser()
    folder = root if (root / "dataset_info.json").exists() else tfds_source.newest(root / _TFDS)
    if folder is not None:
        return _of_tfds(name, folder)
    return _of_tree(name, tree.find_root(root), test_fraction)


def _of_tree(name, root, test_fraction):
    """Files below class folders, known by their names and sizes."""
    classes, splits = tree.scan(root, tree_stride(name, root), test_fraction, 0)
    digest = hashlib.sha256()
    for split, items in splits.items():
        for path, label, _ in items:
            line = [split, path.relative_to(root).as_posix(), tree.size_and_time(path)[0], label]
            digest.update(f"{json.dumps(line)}\n".encode())

    def piece(split, start, stop):
        return functools.partial(_read_files, [(str(path), label) for path, label, _ in splits[split][start:stop]])

    sizes = {split: len(items) for split, items in splits.items()}
    return Source(tuple(classes), 1, sizes, {"kind": "tree", "listing_sha256": digest.hexdigest()}, piece)


def _read_files(files):
    for path, label in files:
        yield path, label, path


def _of_tfds(name, folder):
    """Records of tfds."""
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
    files = [(path.name, path.stat().st_size) for path in sorted(folder.glob("*.array_record*"))]
    listing = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    identity = {"kind": "tfds", "version": folder.name, "listing_sha256": listing}

    def piece(split, start, stop):
        return functools.partial(_read_records, folder, _TFDS_SPLITS[split], start, stop, stride)

    return Source(names[::stride], stride, sizes, identity, piece)


def _read_records(folder, split, start, stop, stride):
    """Yields records start .. stop - 1 of a split, of every stride-th class."""
    records = _records(folder, split)
    for begin in range(start, stop, _READ):
        positions = range(begin, min(begin + _READ, stop))
        for position, record in zip(positions, records.__getitems__(list(positions))):
            label, rest = divmod(int(record["label"]), stride)
            if rest == 0:
                yield f"{split} record {position}", label, io.BytesIO(record["image"])


_records = functools.lru_cache(maxsize=2)(tfds_source.records)
