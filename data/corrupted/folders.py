"""ImageNet-C and its kin: trees `corruption/severity/class/image`, or
`category/corruption/severity/class/image`.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from corruptions.write import pixels
from data import decode, tree
from data.corrupted.dataset import Batch, CorruptedDataset, parse_severity, written_places
from data.corrupted.names import published_order, published_severities, qualified


class CorruptedFolders(CorruptedDataset):
    """A tree of image files; threads decode the next batch while one is used.

    Images come at the size they are stored in, which must be one. Labels number the class folders
    in the order of their names (or of the manifest).
    """

    def __init__(self, path: Path, manifest: dict[str, Any] | None, threads: int | None):
        super().__init__(path, _scan(path, manifest))
        self._threads = threads or os.cpu_count()
        first = next(iter(self._places.values()))
        self.class_names = tuple(manifest["class_names"]) if manifest else tuple(tree.class_folders(first))
        items = self._list(first)
        self.number = len(items)
        self.image_shape = read_image(items[0][0]).shape
        self.provenance = {"source": str(path), "format": "folders", "manifest": manifest}

    def _read(self, place: Path, batch_size: int) -> Iterator[Batch]:
        items = self._list(place)
        if len(items) != self.number:
            raise ValueError(f"{place}: expected {self.number} images as in the other conditions, found {len(items)}")
        decoded = ((lambda path=path: (path, read_image(path)), label) for path, label in items)
        yield from in_batches(decoded, self.image_shape, batch_size, self._threads)

    def _list(self, folder: Path) -> list[tuple[Path, int]]:
        """(image file, label), by class and then by name."""
        classes = set(tree.class_folders(folder))
        if classes != set(self.class_names):
            differ = sorted(classes ^ set(self.class_names))
            raise ValueError(
                f"{folder}: expected the {len(self.class_names)} class folders of the other conditions, found "
                f"{len(classes)}; they differ in {', '.join(differ[:5])}"
            )
        return [(path, label) for path, label, _ in tree.list_images(folder, self.class_names)]


def in_batches(
    items: Iterable[tuple[Callable[[], tuple[Any, np.ndarray]], int]],
    shape: tuple[int, ...],
    batch_size: int,
    threads: int,
) -> Iterator[Batch]:
    """Stacks images in order, a batch ahead of the one that is used.

    Args:
      items: for each image a function that returns (name, image), which runs in a thread, and its label.
      shape: of all images.
      batch_size: images at once.
      threads: how many run these functions.
    """
    items = iter(items)
    with ThreadPoolExecutor(threads) as pool:

        def begin():
            few = list(itertools.islice(items, batch_size))
            return [pool.submit(fetch) for fetch, _ in few], np.array([label for _, label in few], np.int32)

        jobs, labels = begin()
        while jobs:
            following = begin()
            yield _stack([job.result() for job in jobs], shape), labels
            jobs, labels = following


def _stack(found: Sequence[tuple[Any, np.ndarray]], shape: tuple[int, ...]) -> np.ndarray:
    for name, image in found:
        if image.shape != shape:
            raise ValueError(
                f"{name}: expected an image of {shape[0]}x{shape[1]}, found {image.shape[0]}x{image.shape[1]}"
            )
    return np.stack([image for _, image in found])


def read_image(file: Any, name: str | None = None) -> np.ndarray:
    """uint8[H, W, 3] of an image file, whole and at its own size.

    Raises:
      ValueError: it is damaged; the message names it.
    """
    from PIL import Image

    try:
        with Image.open(file) as image:
            return np.asarray(pixels.rgb(image))
    except (*decode.DAMAGED, Image.DecompressionBombError) as error:
        raise ValueError(f"{name or file} is damaged ({type(error).__name__}: {str(error)[:80]})") from error


def _scan(path: Path, manifest: dict[str, Any] | None) -> dict[tuple[str, Any], Path]:
    """Where each condition is: every folder that has severities as subfolders is a corruption."""
    if manifest is not None:
        return written_places(path, manifest)
    by_name = {}
    for folder in (path / name for name in tree.class_folders(path)):
        candidates = [folder] if _severities(folder) else [folder / name for name in tree.class_folders(folder)]
        by_name |= {candidate.name: candidate for candidate in candidates if _severities(candidate)}
    if not by_name:
        raise FileNotFoundError(
            f"{path}: expected files <corruption>.npy, or folders corruption/severity/class/image, found neither"
        )
    return {
        (qualified(name), severity): folder
        for name in published_order(list(by_name))
        for severity, folder in _severities(by_name[name]).items()
    }


def _severities(folder: Path) -> dict[Any, Path]:
    """Severity -> folder; empty when a subfolder is anything else."""
    folders = tree.class_folders(folder)
    published = published_severities(folder.name, folders)
    by_severity = {published.get(name) or parse_severity(name): folder / name for name in folders}
    if None in by_severity:
        return {}
    return {s: by_severity[s] for s in sorted(by_severity, key=str if "random" in by_severity else None)}
