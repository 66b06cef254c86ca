"""Folders of images: `root/{train,val|test}/class/*.png|jpg|...`, or `root/class/*` with a deterministic split.

Every image is resized so that its shorter side is `image_size * 256 / 224` and cropped in the centre to `image_size`,
the usual ImageNet test preprocessing (Krizhevsky, Sutskever and Hinton, 2012, section 2, with 256 and 224); bilinear
with antialiasing. The result is memory-mapped from `data.cache`: a folder is decoded once.
"""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from data import cache, decode
from data.dataset import Dataset, Split, balanced_prefix, describe, make_split

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
_TEST_FOLDERS = ("val", "test", "validation")
_CHUNK = 256

# What a split is made of: (path, label, index in the whole split).
Item = tuple[Path, int, int]


def load_image_folder(
    name: str = "image_folder",
    *,
    data_dir: str | os.PathLike | None = None,
    seed: int = 0,
    image_size: int | None = 224,
    train_limit: int | None = None,
    test_limit: int | None = None,
    test_fraction: float = 0.1,
    class_stride: int = 1,
    max_damaged: float = 0.01,
    cache_dir: str | os.PathLike | None = None,
    progress: bool = True,
    threads: int | None = None,
) -> Dataset:
    """Reads a tree of class folders; classes are the folders' names in sorted order.

    Args:
      name: the name the data set gets.
      data_dir: the root of the tree.
      seed: of the split of a flat tree; nothing else here is random.
      image_size: side of the square images in pixels; None is 224.
      train_limit: at most so many training images (a class-balanced prefix); others are not even opened.
      test_limit: the same for test images.
      test_fraction: of a flat tree `root/class/*`, the part of every class that is tested on, in [0, 1]. A class
        of two images or more has at least one in either split, unless the fraction is 0 or 1.
      class_stride: keep every so many-th class in sorted order; 10 makes ImageNet-100 of ImageNet.
      max_damaged: the fraction of unreadable images above which reading fails; up to there they are listed in a
        warning and in `provenance`, and skipped.
      cache_dir: see `data.cache`.
      progress: show a progress bar (on a terminal).
      threads: that decode images; None is one per core.

    Raises:
      FileNotFoundError: the root, the class folders or the images are not there.
      ValueError: train and test have different classes, a split of a flat tree would be empty, too many images
        are damaged, or an argument is out of range.
    """
    image_size = 224 if image_size is None else image_size
    if image_size < 1 or class_stride < 1:
        raise ValueError(f"expected image_size and class_stride >= 1, found {image_size} and {class_stride}")
    if not 0 <= test_fraction <= 1:
        raise ValueError(f"expected test_fraction in [0, 1], found {test_fraction}")
    root = _root(name, data_dir)
    classes, items = _scan(root, class_stride, test_fraction, seed)
    splits, facts = {}, {}
    for split, limit in (("train", train_limit), ("test", test_limit)):
        keep = balanced_prefix(np.array([label for _, label, _ in items[split]], int), limit)
        chosen = [items[split][i] for i in keep]
        splits[split], facts[split] = _decode(
            chosen, root, f"{name}-{split}", len(classes), image_size, max_damaged, cache_dir, progress, threads
        )
    preprocess = f"shorter side {decode.shorter_side(image_size)}, centre crop {image_size}, bilinear (Pillow)"
    provenance = {"source": str(root), "format": "image folder", "preprocess": preprocess, **facts}
    return Dataset(name, tuple(classes), splits["train"], splits["test"], provenance)


def load_imagenet100(name: str = "imagenet100", **kwargs: Any) -> Dataset:
    """ImageNet-100: every tenth of the 1,000 ImageNet classes by WordNet ID, from a tree of either 1,000 or 100."""
    root = _root(name, kwargs.get("data_dir"))
    tree = next((root / folder for folder in ("train", *_TEST_FOLDERS) if (root / folder).is_dir()), root)
    stride = {1000: 10, 100: 1}.get(count := len(_class_folders(tree)))
    if stride is None:
        raise ValueError(f"{tree}: expected 1000 or 100 class folders for {name}, found {count}")
    return load_image_folder(name, class_stride=stride, **kwargs)


def _root(name: str, data_dir: str | os.PathLike | None) -> Path:
    if data_dir is None:
        raise ValueError(f"{name} needs data_dir, the folder that holds train/ and val/ (or class folders); found None")
    root = Path(data_dir).expanduser()
    if not root.is_dir():
        raise FileNotFoundError(f"expected a folder of images at data_dir {root}, which is not there")
    return root


def _class_folders(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def _scan(root: Path, stride: int, fraction: float, seed: int) -> tuple[list[str], dict[str, list[Item]]]:
    """The class names and the items of both splits."""
    test = next((root / folder for folder in _TEST_FOLDERS if (root / folder).is_dir()), None)
    if (root / "train").is_dir() and test is None:
        raise FileNotFoundError(f"{root} has train/ but none of {', '.join(_TEST_FOLDERS)}, expected one to test on")
    if test is None:
        classes = _class_folders(root)[::stride]
        items = _split_flat(_list(root, classes), root, fraction, seed)
        if fraction > 0 and not items["test"]:
            raise ValueError(f"{root}: no class has the two images a split needs; use test_fraction=1 to test on all")
        return classes, items
    classes = _class_folders(test)[::stride]
    train_root = root / "train"
    if train_root.is_dir() and (other := _class_folders(train_root)[::stride]) != classes:
        differ = sorted(set(classes) ^ set(other))
        raise ValueError(f"expected the same classes in {train_root} and {test}, found them differ in {differ[:5]}")
    train = _list(train_root, classes) if train_root.is_dir() else []
    return classes, {"train": train, "test": _list(test, classes)}


def _list(folder: Path, classes: list[str]) -> list[Item]:
    """Every image below the class folders, in sorted order."""
    items = []
    for label, name in enumerate(classes):
        found = sorted(path for path in (folder / name).rglob("*") if path.suffix.lower() in SUFFIXES)
        items += [(path, label, len(items) + i) for i, path in enumerate(found)]
    if not items:
        raise FileNotFoundError(f"{folder}: expected class folders with images ({' '.join(SUFFIXES)}), found none")
    return items


def _split_flat(items: list[Item], root: Path, fraction: float, seed: int) -> dict[str, list[Item]]:
    """Per class, the `fraction` of images whose hashed path comes first is for testing."""
    by_class: dict[int, list[Item]] = {}
    for item in items:
        by_class.setdefault(item[1], []).append(item)
    test = set()
    for members in by_class.values():
        count = round(len(members) * fraction)
        if 0 < fraction < 1:
            count = 0 if len(members) == 1 else min(max(count, 1), len(members) - 1)
        # Hashes, not positions: neither the order of the names nor their numbering can leak into the split.
        digest = {path: hashlib.sha256(f"{seed}/{path.relative_to(root)}".encode()).digest() for path, _, _ in members}
        test.update(sorted(digest, key=digest.__getitem__)[:count])
    chosen = {"train": [i for i in items if i[0] not in test], "test": [i for i in items if i[0] in test]}
    return {name: [(path, label, i) for i, (path, label, _) in enumerate(some)] for name, some in chosen.items()}


def _decode(items, root, what, num_classes, image_size, max_damaged, cache_dir, progress, threads):
    """The split and its provenance; from the cache when nothing in the tree has changed."""
    if not items:
        empty = np.zeros(0, np.int32)
        split = Split(np.zeros((0, image_size, image_size, 3), np.uint8), empty, empty)
        return split, describe(split)
    stats = [(path.stat(), path, label, index) for path, label, index in items]
    files = [(str(path.relative_to(root)), s.st_size, s.st_mtime_ns, label, i) for s, path, label, i in stats]
    key = cache.fingerprint(str(root.resolve()), image_size, decode.shorter_side(image_size), files)
    entry = cache.cached(what, key, _reader(items, what, image_size, max_damaged, progress, threads), cache_dir)
    damaged = entry.notes["damaged"]
    if len(damaged) > max_damaged * len(items):  # an entry written under a laxer limit
        raise ValueError(_complaint(what, damaged, len(items), max_damaged))
    if damaged:
        logging.warning("%s: skipped %d damaged images: %s", what, len(damaged), "; ".join(damaged[:10]))
    split = make_split(entry.images, entry.labels, entry.index, num_classes, what)
    return split, {**describe(split, entry.sha256), "damaged": damaged}


def _reader(items, what, image_size, max_damaged, progress, threads) -> Callable[[dict], Iterator[cache.Chunk]]:
    """A function that decodes the items in pieces, in order, leaving out the damaged ones."""

    def build(notes: dict[str, Any]) -> Iterator[cache.Chunk]:
        from tqdm import tqdm

        damaged = notes["damaged"] = []
        bar = tqdm(total=len(items), desc=f"decoding {what}", disable=None if progress else True)
        with ThreadPoolExecutor(threads or os.cpu_count()) as pool, bar:
            for start in range(0, len(items), _CHUNK):
                some = items[start : start + _CHUNK]
                images = list(pool.map(lambda item: decode.read(item[0], image_size), some))
                damaged += [image for image in images if isinstance(image, str)]
                if len(damaged) > max_damaged * len(items):
                    raise ValueError(_complaint(what, damaged, len(items), max_damaged))
                good = [i for i, image in enumerate(images) if not isinstance(image, str)]
                if good:
                    labels, index = np.array([some[i][1:] for i in good], np.int32).T
                    yield np.stack([images[i] for i in good]), labels, index
                bar.update(len(some))

    return build


def _complaint(what: str, damaged: list[str], count: int, limit: float) -> str:
    found = f"{len(damaged)} of {count} images are damaged so far"
    return f"{what}: {found}, expected at most {limit:.1%} (max_damaged). The first: {'; '.join(damaged[:10])}"
