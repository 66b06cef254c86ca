"""Readers of corrupted datasets: arrays, folders of image files, and shards."""

import importlib
import io
import itertools
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from corruptions.reading import pictures
from corruptions.write.manifests import token
from corruptions.write.shards import ROWS, Parquet, WebDataset
from corruptions.write.sources import require
from corruptions.write.verifying import LABELS
from data import tree
from data.corrupted.dataset import (
    Batch,
    CorruptedDataset,
    mending,
    parse_severity,
    published_order,
    published_severities,
    qualified,
)
from runtime import files

Manifest = dict[str, Any]
_PUBLISHED_SEVERITIES = (1, 2, 3, 4, 5)


class CorruptedArrays(CorruptedDataset):
    """CIFAR-10-C and its kin: `<corruption>.npy` uint8[S N, H, W, 3], severity by severity, and `labels.npy` [S N].

    Files are memory-mapped: only the images of a batch are read.
    """

    def __init__(self, path: Path, manifest: Manifest | None, threads: int | None):
        """Looks at the headers of all files; without a manifest expects five severities, as published."""
        del threads
        if manifest is None:
            names = published_order([file.stem for file in path.glob("*.npy") if file.name != LABELS])
            listed = {qualified(name): (f"{name}.npy", _PUBLISHED_SEVERITIES) for name in names}
            if len(listed) < len(names):
                twice = [name for name in names if listed[qualified(name)][0] != f"{name}.npy"]
                raise ValueError(
                    f"{path}: expected each corruption once, found {twice[0]}.npy and {listed[qualified(twice[0])][0]}"
                )
        else:
            listed = {name: (e["path"], tuple(e["severities"])) for name, e in manifest["corruptions"].items()}
        super().__init__(path, {(c, s): (file, i) for c, (file, found) in listed.items() for i, s in enumerate(found)})
        severities = len(next(iter(listed.values()))[1])
        arrays = {file: _map(path / file) for file, _ in listed.values()}
        first = next(iter(arrays))
        for file, array in arrays.items():
            if array.dtype != np.uint8 or array.ndim != 4 or array.shape[-1] != 3:
                raise ValueError(f"{path / file}: expected uint8[N, H, W, 3], found {array.dtype}{list(array.shape)}")
            if array.shape != arrays[first].shape:
                raise ValueError(
                    f"{path / file}: expected the shape {list(arrays[first].shape)} of {first}, found {list(array.shape)}"
                )
        rows = arrays[first].shape[0]
        if rows == 0 or rows % severities:
            raise ValueError(
                f"{path / first}: expected a multiple of {severities} images, one block per severity, found {rows}"
            )
        self.number = rows // severities
        self.image_shape = tuple(arrays[first].shape[1:])
        self.class_names = tuple(manifest["class_names"]) if manifest else None
        self.provenance = {"source": str(path), "format": "npy", "manifest": manifest}
        self._labels = _labels(path / LABELS, rows, self.number)

    def _files(self, place: tuple[str, int]) -> list[Path]:
        return [self.path / place[0], self.path / LABELS]

    def _read(self, place: tuple[str, int], batch_size: int) -> Iterator[Batch]:
        file, block = place
        array = _map(self.path / file)
        for start in range(0, self.number, batch_size):
            stop = min(start + batch_size, self.number)
            rows = slice(block * self.number + start, block * self.number + stop)
            yield np.array(array[rows]), self._labels[start:stop]


def _map(file):
    if not file.exists():
        raise FileNotFoundError(f"expected the file {file}, which is not there")
    return files.read_array(file, "copy it again", mapped=True)


def _labels(file, rows, number):
    labels = _map(file)
    if labels.shape != (rows,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"{file}: expected whole labels [{rows}], one per image, found {labels.dtype}{list(labels.shape)}"
        )
    blocks = labels.reshape(-1, number)
    if (blocks != blocks[0]).any():
        raise ValueError(f"{file}: expected the same {number} labels for every severity, found them to differ")
    return blocks[0].astype(np.int32)


class CorruptedFolders(CorruptedDataset):
    """ImageNet-C and its kin: `corruption/severity/class/image`, or below folders of categories.

    Threads decode the next batch while one is used. Images come at their stored size, which must be one. Labels
    number the class folders in the order of their names (or of the manifest).
    """

    def __init__(self, path: Path, manifest: Manifest | None, threads: int | None):
        super().__init__(path, _written(path, manifest) if manifest else _published(path))
        self._threads = threads or os.cpu_count()
        first = next(iter(self._places.values()))
        self.class_names = tuple(manifest["class_names"]) if manifest else tuple(tree.class_folders(first))
        items = self._list(first, warn=True)
        self.number = len(items)
        self.image_shape = read_image(items[0][0]).shape
        self.provenance = {"source": str(path), "format": "folders", "manifest": manifest}

    def _files(self, place: Path) -> list[Path]:
        classes = tree.class_folders(place)
        of_each = (sorted(filter(Path.is_file, (place / name).iterdir())) for name in _spread(classes, 32))
        return [file for files_of_class in of_each for file in _spread(files_of_class, 8)]

    def _all_files(self, place: Path) -> list[Path]:
        return [path for path, _ in self._list(place)]

    def _read(self, place: Path, batch_size: int) -> Iterator[Batch]:
        items = self._list(place)
        if len(items) != self.number:
            raise ValueError(f"{place}: expected {self.number} images as in the other conditions, found {len(items)}")
        orientations = pictures.Orientations()
        decoded = (
            (lambda path=path: (path, read_image(path, orientations=orientations)), label) for path, label in items
        )
        yield from in_batches(decoded, self.image_shape, batch_size, self._threads)
        orientations.warn(place)

    def _list(self, folder, warn=False):
        """(image file, label), by class and then by name."""
        classes = set(tree.class_folders(folder))
        if classes != set(self.class_names):
            differ = sorted(classes ^ set(self.class_names))
            raise ValueError(
                f"{folder}: expected the {len(self.class_names)} class folders of the other conditions, found "
                f"{len(classes)}; they differ in {', '.join(differ[:5])}"
            )
        return [(path, label) for path, label, _ in tree.list_images(folder, self.class_names, warn)]


def _spread(items, most):
    """Chooses at most so many items, at equal distances."""
    return [items[i] for i in np.linspace(0, len(items) - 1, min(most, len(items))).astype(int)]


def _written(path, manifest):
    """{(corruption, severity): folder} of a dataset that `corruptions.write` wrote."""
    return {
        (name, severity): path / entry["path"] / token(severity)
        for name, entry in manifest["corruptions"].items()
        for severity in entry["severities"]
    }


def _published(path):
    """{(corruption, severity): folder}: a corruption is a folder whose subfolders are all severities."""
    by_name = {}
    for folder in (path / name for name in tree.class_folders(path)):
        candidates = [folder] if _severities(folder) else [folder / name for name in tree.class_folders(folder)]
        for candidate in (folder for folder in candidates if _severities(folder)):
            if other := by_name.get(qualified(candidate.name)):
                raise ValueError(
                    f"{path}: expected each corruption once, found {other} and {candidate}; open one of the two"
                )
            by_name[qualified(candidate.name)] = candidate
    if not by_name:
        raise FileNotFoundError(
            f"{path}: expected files <corruption>.npy, or folders corruption/severity/class/image, found neither"
        )
    return {
        (name, severity): folder
        for name in published_order(by_name)
        for severity, folder in _severities(by_name[name]).items()
    }


def _severities(folder):
    """{severity: folder}; empty when a subfolder is anything else."""
    folders = tree.class_folders(folder)
    published = published_severities(folder.name, folders)
    by_severity = {published.get(name) or parse_severity(name): folder / name for name in folders}
    if None in by_severity:
        return {}
    return {s: by_severity[s] for s in sorted(by_severity, key=str if "random" in by_severity else None)}


class CorruptedShards(CorruptedDataset):
    """Parquet and WebDataset, as `corruptions.write` writes them: `contrast/3/00000.parquet` or `.tar`.

    Records are read one after another; threads decode the next batch while one is used.
    """

    def __init__(self, path: Path, manifest: Manifest, threads: int | None):
        super().__init__(path, _written(path, manifest))
        self._suffix, self._records = _SHARDS[manifest["layout"]]
        if self._records is read_parquet:
            require("pyarrow.parquet", "reading Parquet needs pyarrow", "pyarrow")
        self._threads = threads or os.cpu_count()
        self._mending = mending(manifest)
        self.number = manifest["images"]
        self.image_shape = tuple(manifest["image_shape"])
        self.class_names = tuple(manifest["class_names"])
        self.provenance = {"source": str(path), "format": manifest["layout"], "manifest": manifest}

    def _files(self, place: Path) -> list[Path]:
        return sorted(place.glob(f"*{self._suffix}"))

    def _read(self, place: Path, batch_size: int) -> Iterator[Batch]:
        items = itertools.chain.from_iterable(map(self._items, self._files(place)))
        number = 0
        for images, labels in in_batches(items, self.image_shape, batch_size, self._threads):
            number += len(labels)
            yield images, labels
        if number != self.number:
            raise ValueError(f"{place}: expected {self.number} images as in its manifest, found {number}")

    def _items(self, shard):
        """For each record of a shard, a function that decodes its image, and its label."""
        try:
            for position, (content, label) in enumerate(self._records(shard)):
                name = f"{shard} record {position}"
                if label not in range(len(self.class_names)):
                    raise ValueError(
                        f"record {position}: expected a label 0..{len(self.class_names) - 1}, found {label}"
                    )
                yield lambda name=name, content=content: (name, read_image(io.BytesIO(content), name)), label
        except (*pictures.DAMAGED, tarfile.TarError, LookupError, AttributeError, TypeError) as error:
            raise ValueError(
                f"{shard} is damaged ({type(error).__name__}: {str(error)[:120]}); mend it with:\n  {self._mending}"
            ) from error


def read_parquet(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yields encoded images and labels, a row group of a Parquet file at a time."""
    with importlib.import_module("pyarrow.parquet").ParquetFile(path) as file:
        for rows in file.iter_batches(ROWS, columns=["image", "label"]):
            for row in rows.to_pylist():
                yield row["image"]["bytes"], row["label"]


def read_webdataset(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yields encoded images and labels, two members of a tar file at a time."""
    with tarfile.open(path, "r:") as archive:
        members = iter(archive)
        for image, label in zip(members, members, strict=True):
            if label.name != f"{Path(image.name).stem}.cls":
                raise ValueError(f"expected the label of {image.name} beside it, found {label.name}")
            yield archive.extractfile(image).read(), int(archive.extractfile(label).read())


_SHARDS = {"parquet": (Parquet.file_suffix, read_parquet), "webdataset": (WebDataset.file_suffix, read_webdataset)}


def in_batches(
    items: Iterable[tuple[Callable[[], tuple[Any, np.ndarray]], int]],
    shape: tuple[int, ...],
    batch_size: int,
    threads: int,
) -> Iterator[Batch]:
    """Stacks images in order, a batch ahead of the one that is used.

    `items` are, for each image, a function that returns (name, image) and runs in a thread, and the label. Raises
    ValueError, which names the image, for another shape.
    """
    items = iter(items)
    with ThreadPoolExecutor(threads) as pool:

        def begin():
            few = list(itertools.islice(items, batch_size))
            return [pool.submit(fetch) for fetch, _ in few], np.array([label for _, label in few], np.int32)

        jobs, labels = begin()
        while jobs:
            following = begin()
            named = [job.result() for job in jobs]
            for name, image in named:
                if image.shape != shape:
                    raise ValueError(
                        f"{name}: expected an image of {shape[0]}x{shape[1]}, found {image.shape[0]}x{image.shape[1]}"
                    )
            yield np.stack([image for _, image in named]), labels
            jobs, labels = following


def read_image(file: Any, name: str | None = None, orientations: pictures.Orientations | None = None) -> np.ndarray:
    """Decodes an image file, whole and at its own size, to uint8[H, W, 3]; raises ValueError, which names it, for
    damage.
    """
    return pictures.decode(file, name or file, lambda image: image, orientations)
