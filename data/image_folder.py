"""Folders of images: `root/{train,val|test}/class/*.png|jpg|...`, or `root/class/*` with a deterministic split.

The shorter side becomes `image_size * 256 / 224` pixels and the centre of side `image_size` is cut out: the usual ImageNet
test preprocessing (Krizhevsky, Sutskever and Hinton, 2012, section 2, with 256 and 224); with `resize="squash"` both sides
become `image_size`. Bilinear with antialiasing. A folder is decoded once, and memory-mapped from `data.cache`.
"""

import functools
import logging
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from corruptions.reading import pictures
from corruptions.reading.folders import balanced_prefix
from data import cache, decode, tree
from data.dataset import Dataset, Split, describe, make_split
from runtime.log import bar

TURN = "--config.dataset.turn=True of commands, or turn=True of data.load,"
_CHUNK = 256


def load_image_folder(
    name: str = "image_folder",
    *,
    data_dir: str | os.PathLike | None = None,
    seed: int = 0,
    image_size: int = 224,
    train_size: int | None = None,
    resize: str = "crop",
    train_limit: int | None = None,
    test_limit: int | None = None,
    test_fraction: float = 0.1,
    class_stride: int = 1,
    max_damaged: float = 0.01,
    cache_dir: str | os.PathLike | None = None,
    turn: bool = False,
) -> Dataset:
    """Reads a tree of class folders; classes are the folders' names in sorted order.

    Args:
      name: the name the dataset gets.
      data_dir: the root of the tree.
      seed: seed of the split of a flat tree; nothing else here is random.
      image_size, resize, train_limit, test_limit: see `data.load`; files outside the limits are not opened.
      train_size: side of larger training images, to be cropped at random in training: the largest centre square,
        resized; None makes training images like test images.
      test_fraction: fraction of every class of a flat tree `root/class/*` that is tested on, in [0, 1]. A class of two
        images or more has at least one in either split, unless the fraction is 0 or 1.
      class_stride: keep every k-th class in sorted order; 10 makes ImageNet-100 of ImageNet.
      max_damaged: fraction of unreadable images above which reading fails; below it they are skipped and listed in a
        warning and in `provenance`.
      cache_dir: see `data.cache`.
      turn: apply the orientation in EXIF data; by default pixels stay as stored, and a warning counts the files that hold one.

    Raises:
      FileNotFoundError: the root, the class folders or the images are not there.
      ValueError: train and test have different classes, a split of a flat tree would be empty, too many images are
        damaged, or an argument is out of range.
    """
    if class_stride < 1:
        raise ValueError(f"expected class_stride >= 1, found {class_stride}")
    tree.check_fraction(test_fraction)
    sides = decode.sides(image_size, train_size, resize)
    root = tree.find_root(data_dir)
    classes, items = tree.scan(root, class_stride, test_fraction, seed)
    splits, facts = {}, {}
    for split, limit in (("train", train_limit), ("test", test_limit)):
        keep = balanced_prefix(np.array([label for _, label, _ in items[split]], int), limit)
        kept = [items[split][i] for i in keep]
        what = f"{name}-{split}"
        given = (kept, root, what, len(classes), sides[split], max_damaged, cache_dir, turn)
        splits[split], facts[split] = decoded(*given)
    preprocess = decode.description(sides) + (", turned by EXIF data" if turn else "")
    origin = {"source": str(root), "format": "image folder", "preprocess": preprocess}
    return Dataset(name, tuple(classes), splits["train"], splits["test"], origin | facts)


def decoded(
    items: list[tree.Item],
    root: Path,
    what: str,
    num_classes: int,
    sides: tuple[int, int],
    max_damaged: float = 0.01,
    cache_dir: str | os.PathLike | None = None,
    turn: bool = False,
) -> tuple[Split, dict[str, Any]]:
    """Decodes files to a split, or reads it from the cache where their `tree.state` is the same.

    `root` is the folder above the files, `what` names the split, `sides` are its sizes (`decode.sides`); other
    arguments as of `load_image_folder`. Returns the split and its provenance, with the list `damaged`. Raises
    ValueError where too many images are damaged.
    """
    if not items:
        split = Split(np.zeros((0, sides[0], sides[0], 3), np.uint8), *np.zeros((2, 0), np.int32))
        return split, describe(split)
    state = tree.state([path for path, _, _ in items], root)
    key = cache.fingerprint(
        str(root.resolve()), *sides, state, [item[1:] for item in items], *(["turned"] if turn else [])
    )
    entry = cache.cached(what, key, functools.partial(_decode, items, what, sides, max_damaged, turn), cache_dir)
    damaged = entry.notes["damaged"]
    check_damaged(what, damaged, len(items), max_damaged)  # the entry may be written under a laxer limit
    if damaged:
        logging.warning("%s: skipped %d damaged images: %s", what, len(damaged), "; ".join(damaged[:10]))
    orientations = pictures.Orientations(turn)
    orientations.found.update(entry.notes.get("orientations", ()))
    orientations.warn(what, TURN)
    split = make_split(entry.images, entry.labels, entry.index, num_classes, what)
    return split, {**describe(split, entry.sha256), "damaged": damaged}


def _decode(items, what, sides, max_damaged, turn, notes: dict[str, Any]) -> Iterator[cache.Chunk]:
    damaged, orientations = [], pictures.Orientations(turn)
    notes["damaged"] = damaged
    shown = bar("image", total=len(items), desc=f"decoding {what}")
    with ThreadPoolExecutor(os.cpu_count()) as pool, shown:
        for start in range(0, len(items), _CHUNK):
            chunk = items[start : start + _CHUNK]
            images = list(pool.map(lambda item: decode.read(item[0], *sides, orientations=orientations), chunk))
            damaged += [image for image in images if isinstance(image, str)]
            check_damaged(what, damaged, len(items), max_damaged)
            good = [i for i, image in enumerate(images) if not isinstance(image, str)]
            if good:
                labels, index = np.array([chunk[i][1:] for i in good], np.int32).T
                yield np.stack([images[i] for i in good]), labels, index
            shown.update(len(chunk))
    notes["orientations"] = sorted(orientations.found)


def check_damaged(what: str, damaged: list[str], count: int, limit: float) -> None:
    """Raises ValueError where more than a fraction `limit` of `count` images is damaged."""
    if len(damaged) > limit * count:
        found = f"{len(damaged)} of {count} images are damaged so far"
        raise ValueError(
            f"{what}: {found}, expected at most {limit:.1%} (max_damaged). The first: {'; '.join(damaged[:10])}"
        )
