"""Lists the files of a tree of class folders: `root/{train,val|test}/class/*.png|jpg|...`, or `root/class/*`.

Files are not opened. Classes are the folders' names in sorted order; `corruptions.reading.folders` has the rules.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corruptions.files import content_sha256, digest_of
from corruptions.reading.folders import class_folders, labelled_images

TEST_FOLDERS = ("val", "test", "validation")

# An image file of a split: (path, label, index in the whole split).
Item = tuple[Path, int, int]


def find_root(data_dir: str | os.PathLike) -> Path:
    """Returns the folder of a tree; FileNotFoundError if it is absent."""
    root = Path(data_dir).expanduser()
    if not root.is_dir():
        raise FileNotFoundError(f"expected a folder of images at data_dir {root}, which is not there")
    return root


def size_and_time(path: Path) -> tuple[int, int]:
    """Returns a file's bytes and time of change in nanoseconds; (-1, 0) for a link that leads nowhere."""
    try:
        stat = path.stat()
    except OSError:
        return -1, 0
    return stat.st_size, stat.st_mtime_ns


def state(paths: Sequence[Path], root: Path) -> list[Any]:
    """Lists the facts of files below `root` that decide the pixels: a digest of their content, names, sizes and times."""
    return [content_sha256(paths), *((str(path.relative_to(root)), *size_and_time(path)) for path in paths)]


def check_fraction(test_fraction: float) -> None:
    """Raises ValueError for a fraction of test images outside of [0, 1]."""
    if not 0 <= test_fraction <= 1:
        raise ValueError(f"expected test_fraction in [0, 1], found {test_fraction}")


def scan(root: Path, stride: int, fraction: float, seed: int) -> tuple[list[str], dict[str, list[Item]]]:
    """Lists the class names, and the items of both splits."""
    test = next((root / folder for folder in TEST_FOLDERS if (root / folder).is_dir()), None)
    if (root / "train").is_dir() and test is None:
        raise FileNotFoundError(f"{root} has train/ but none of {', '.join(TEST_FOLDERS)}, expected one to test on")
    if test is None:
        classes = class_folders(root)[::stride]
        items = _split_flat(list_images(root, classes), root, fraction, seed)
        if fraction > 0 and not items["test"]:
            raise ValueError(f"{root}: no class has the two images a split needs; use test_fraction=1 to test on all")
        return classes, items
    classes = class_folders(test)[::stride]
    train_root = root / "train"
    if train_root.is_dir() and (other := class_folders(train_root)[::stride]) != classes:
        differ = sorted(set(classes) ^ set(other))
        raise ValueError(f"expected the same classes in {train_root} and {test}, found them differ in {differ[:5]}")
    train = list_images(train_root, classes) if train_root.is_dir() else []
    return classes, {"train": train, "test": list_images(test, classes)}


def list_images(folder: Path, classes: Sequence[str], warn: bool = True) -> list[Item]:
    """Lists every image below the class folders with its label and place; see `corruptions.reading.folders.labelled_images`."""
    return [(path, label, place) for place, (path, label) in enumerate(labelled_images(folder, classes, warn))]


def _split_flat(items: list[Item], root: Path, fraction: float, seed: int) -> dict[str, list[Item]]:
    """Splits each class: the `fraction` of images whose hashed paths come first is for testing."""
    by_class: dict[int, list[Item]] = {}
    for item in items:
        by_class.setdefault(item[1], []).append(item)
    test = set()
    for members in by_class.values():
        count = round(len(members) * fraction)
        if 0 < fraction < 1:
            count = 0 if len(members) == 1 else min(max(count, 1), len(members) - 1)
        # Hashes, not positions: neither the order of the names nor their numbers leak into the split.
        names = {path: f"{seed}/{path.relative_to(root)}".encode("utf-8", "surrogateescape") for path, _, _ in members}
        hashed = {path: digest_of(name) for path, name in names.items()}
        test.update(sorted(hashed, key=hashed.__getitem__)[:count])
    splits = {"train": [i for i in items if i[0] not in test], "test": [i for i in items if i[0] in test]}
    return {name: [(path, label, i) for i, (path, label, _) in enumerate(part)] for name, part in splits.items()}
