"""Folders of images: which files are images, how classes and frames are ordered, and what is left out.

Every reader of this project goes by these rules. Names that begin with a dot are hidden, and so are the folders that archives
from a Mac and disk stations add. Links to folders are followed, each folder once. Classes are numbered in the sorted order of
their names, as in torchvision; frames follow the numbers in their names. Pipes, sockets and devices are no images, whatever
their names: opening a pipe waits for another program.
"""

import collections
import logging
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

LOG = logging.getLogger("corruptions")
SUFFIXES = (
    *(".png", ".jpg", ".jpeg", ".jfif", ".jpe", ".bmp", ".dib", ".gif", ".ppm", ".pgm", ".pbm", ".pnm"),
    *(".tif", ".tiff", ".webp", ".tga", ".jp2", ".avif"),
)
_HIDDEN = ("__MACOSX", "@eaDir", "#recycle", "$RECYCLE.BIN", "System Volume Information", "lost+found")
_MOST = 5  # names in a message
SPECIAL = "no regular files (pipes, sockets, devices)"
"""How the files that no reader opens are called in the line that counts what is left out."""


def image_paths(folder: str | os.PathLike, left_out: collections.Counter[str] | None = None) -> list[Path]:
    """Lists the image files below a folder, sorted; `left_out` counts the suffixes of the other visible files.

    A link to a folder above is not followed. Without `left_out` one warning counts pipes, sockets and devices.
    """
    found, special = list[Path](), collections.Counter[str]()
    folders, links, seen = [Path(folder)], list[Path](), set()
    while folders or links:
        current = folders.pop() if folders else links.pop(0)
        identity = os.stat(current)
        if (identity.st_dev, identity.st_ino) in seen:
            continue
        seen.add((identity.st_dev, identity.st_ino))
        for entry in sorted(_visible(current), key=lambda entry: entry.name):
            if os.path.isdir(entry.path):
                if not entry.is_symlink():
                    folders.append(Path(entry.path))
                elif not _leads_up(entry.path, folder):
                    links.append(Path(entry.path))
            elif is_special(entry):
                special[SPECIAL] += 1
            elif os.path.splitext(entry.name)[1].lower() in SUFFIXES:
                found.append(Path(entry.path))
            elif left_out is not None:
                left_out[_suffix(entry.name)] += 1
    if left_out is not None:
        left_out.update(special)
    else:
        warn_of_left_out(folder, special)
    return sorted(found)


def is_special(path: os.DirEntry | Path) -> bool:
    """Returns True for a pipe, a socket, a device, or a link to one: reading it may never end."""
    try:
        return not path.is_file() and not path.is_dir() and os.path.exists(path)
    except OSError:  # a circle of links
        return False


def warn_of_left_out(folder: object, left_out: collections.Counter[str]) -> None:
    """Warns, in one line, of files that no reader takes; `left_out` counts them by suffix."""
    if left_out:
        kinds = ", ".join(f"{number} {suffix}" for suffix, number in left_out.most_common(_MOST))
        LOG.warning("%s: left out %d files: %s", folder, left_out.total(), kinds)


def class_folders(folder: str | os.PathLike) -> list[str]:
    """Lists the names of the visible subfolders, sorted; a warning names links that lead nowhere."""
    entries = sorted(_visible(folder), key=lambda entry: entry.name)
    if broken := [entry.path for entry in entries if entry.is_symlink() and not os.path.exists(entry.path)]:
        LOG.warning("left out, as links that lead nowhere: %s", _some(broken))
    return [e.name for e in entries if os.path.isdir(e.path) and not (e.is_symlink() and _leads_up(e.path, folder))]


def labelled_images(folder: str | os.PathLike, classes: Sequence[str], warn: bool = True) -> list[tuple[Path, int]]:
    """Lists (image, label) below the class folders, by class and then by path; labels are positions in `classes`.

    With `warn` one warning each counts other files, names classes without images, and names the first two classes
    whose numbers are in another order than their labels. Raises FileNotFoundError where there is no image.
    """
    folder, left_out = Path(folder), collections.Counter[str]()
    items = [(path, label) for label, name in enumerate(classes) for path in image_paths(folder / name, left_out)]
    if not items:
        raise FileNotFoundError(f"{folder}: expected class folders with images ({' '.join(SUFFIXES)}), found none")
    if warn:
        beside = [entry for entry in _visible(folder) if not os.path.isdir(entry.path) and os.path.exists(entry.path)]
        left_out.update(SPECIAL if is_special(entry) else _suffix(entry.name) for entry in beside)
        warn_of_left_out(folder, left_out)
        used = {label for _, label in items}
        if empty := [name for label, name in enumerate(classes) if label not in used]:
            number = f"{len(empty)} of {len(classes)}"
            LOG.warning("%s: no images in %s classes, which keep their labels: %s", folder, number, _some(empty))
        warn_of_numbers(folder, classes)
    return items


def warn_of_numbers(where: object, classes: Sequence[str]) -> None:
    """Warns where sorted names of classes are not in the order of their numbers, as 10 before 2; names the first pair."""
    natural = sorted(classes, key=by_number)
    if list(classes) == sorted(classes) != natural:
        label = next(i for i, (name, other) in enumerate(zip(classes, natural)) if name != other)
        LOG.warning(
            "%s: classes are in the sorted order of their names, as in torchvision: label %d is %r, not %r. Names with equally "
            "many digits, 00, 01 ..., have the order of their numbers",
            *(where, label, classes[label], natural[label]),
        )


def by_number(name: str) -> tuple[list[str | int], str]:
    """Makes the key that sorts names by the numbers in them: frame2 before frame10."""
    parts = re.split("([0-9]+)", name)
    return [int(part) if i % 2 else part for i, part in enumerate(parts)], name


def balanced_prefix(labels: ArrayLike, limit: int | None) -> np.ndarray:
    """Chooses at most `limit` images with the classes as equal as possible: positions int[min(limit, N)].

    The order is the first image of every class, the second image of every class, and so on, so a smaller
    limit gives the first positions of a larger one. `limit=None` keeps every image in its own order.
    """
    labels = np.asarray(labels)
    if limit is None:
        return np.arange(len(labels))
    if limit < 1:
        raise ValueError(f"expected a limit of at least 1 image (or None for all), found {limit}")
    by_class = np.argsort(labels, kind="stable")
    _, first, count = np.unique(labels[by_class], return_index=True, return_counts=True)
    rank = np.empty(len(labels), int)  # number of earlier images of the same class
    rank[by_class] = np.arange(len(labels)) - np.repeat(first, count)
    return np.lexsort((labels, rank))[:limit]


def _visible(folder):
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not entry.name.startswith(".") and entry.name not in _HIDDEN]
    except PermissionError as error:
        raise ValueError(f"expected a folder of images that can be read, found {folder}: {error.strerror}") from error


def _leads_up(link, folder):
    """Tells whether a link leads to a folder or to one above it."""
    return Path(folder).resolve().is_relative_to(Path(link).resolve())


def _suffix(name):
    return os.path.splitext(name)[1].lower() or "without a suffix"


def _some(names: Iterable[str]) -> str:
    names = ["".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(name)) for name in names]
    return ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")
