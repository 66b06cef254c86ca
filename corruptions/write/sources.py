"""Clean images to be corrupted: arrays, a tree of class folders, or TensorFlow Datasets."""

import collections
import dataclasses
import importlib
import logging
import os
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np

from corruptions import files, remote
from corruptions.core.dispatch import unmasked
from corruptions.core.errors import Refused
from corruptions.reading import pictures
from corruptions.reading.folders import SUFFIXES, balanced_prefix, class_folders, labelled_images

LOG = logging.getLogger("corruptions.write")
_BULK = 1000  # records of array_record read at a time
# Control characters, line separators, halves of UTF-16 pairs, and what separates folders.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff/\\]")
_MOST_CLASSES = 10**6  # that labels number by themselves: each has a name in the manifest
_LONGEST = 200  # bytes of a name; file systems allow 255, suffixes included


@dataclasses.dataclass(frozen=True)
class Source:
    """Clean images with their labels.

    Names come from others' files, and become paths. Names that are no safe file names are changed, in the same way for
    every layout, and stay distinct.

    Attributes:
      read: a function positions -> uint8[n, H, W, 3]; or a list of uint8[H, W, 3], see `many_sizes`.
      labels: int32[N], 0..C-1.
      names: N file names without suffix, unique within a class; may contain `/`.
      class_names: C names, the folders of the classes.
      description: JSON-ready; two sources with equal descriptions have equal pixels and labels. `content_sha256` is the
        digest of encoded images (`files.content_sha256`: of a large folder, a sample).
      encoded: True if reading means decoding; it is then done once, into a temporary file beside the result.
      many_sizes: True if images keep their own sizes; they are then decoded for each severity.
      orientations: counts the files read so far whose EXIF data hold an orientation.
    """

    read: Callable[[Sequence[int]], np.ndarray]
    labels: np.ndarray
    names: tuple[str, ...]
    class_names: tuple[str, ...]
    description: Mapping[str, Any]
    encoded: bool = False
    many_sizes: bool = False
    orientations: pictures.Orientations = dataclasses.field(default_factory=pictures.Orientations)

    def __post_init__(self) -> None:
        """Makes the names safe; a warning counts the changed ones."""
        classes = _distinct(self.class_names, safe_name, [0] * len(self.class_names))
        names = _distinct(self.names, _safe_path, self.labels.tolist())
        object.__setattr__(self, "class_names", classes)
        object.__setattr__(self, "names", names)

    def __len__(self) -> int:
        return len(self.labels)


def open_source(
    name: str,
    *,
    labels: str | None = None,
    split: str | None = None,
    data_dir: str | None = None,
    preprocess: str = "none",
    size: int | str | None = None,
    limit: int | None = None,
    turn: bool = False,
) -> Source:
    """Opens the source that a command line names: `FILE.npz` (arrays images and labels), `FILE.npy`, a folder
    root/class/* or `tfds:NAME`.

    `labels` is the FILE.npy beside a FILE.npy; other arguments and errors are as of `from_folder` and `from_tfds`.

    Raises Refused for an argument that does not fit the source, and ValueError for a file that holds no arrays.
    """
    _check_limit(limit)
    if labels is not None and not name.endswith(".npy"):
        raise Refused(
            "labels", f"no labels beside the source {name}, which has its own", labels, "they go with a FILE.npy"
        )
    for argument, value in (("data_dir", data_dir), ("split", split)):
        if value is not None and not name.startswith("tfds:"):
            raise Refused(argument, f"no {argument} beside the source {name}", value, "it goes with tfds:NAME")
    if name.startswith("tfds:"):
        name = name.removeprefix("tfds:")
        data_dir = data_dir and remote.staged(data_dir)
        split = split or "test"
        return from_tfds(name, split=split, data_dir=data_dir, preprocess=preprocess, size=size, limit=limit, turn=turn)
    path = pathlib.Path(remote.staged(name)).expanduser()
    if path.suffix not in (".npy", ".npz"):
        source = from_folder(path, preprocess=preprocess, size=size, limit=limit, turn=turn)
        known_as = {"path": name} if files.is_address(name) else {}  # not where it was copied to
        return dataclasses.replace(source, description={**source.description, **known_as})
    of_folders = {"preprocess": preprocess != "none" and preprocess, "size": size, "turn": turn}
    for argument, given in of_folders.items():
        if given:
            raise Refused(argument, f"no {argument} of arrays, which are written as they are", given)
    if path.suffix == ".npz":
        arrays = _load(path)
        content = arrays.keys() if isinstance(arrays, dict) else {"a single one"}
        if not {"images", "labels"} <= content:
            raise ValueError(f"{path}: expected arrays images and labels, found {', '.join(content)}")
        return from_arrays(arrays["images"][:limit], arrays["labels"][:limit])
    if labels is None:
        raise Refused("labels", f"labels, a FILE.npy, beside the source {name}", "none")
    return from_arrays(_load(path, mmap_mode="r")[:limit], _load(remote.staged(labels))[:limit])


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise Refused("limit", "a limit of at least 1", limit)


def _load(path: Any, **options: Any) -> Any:
    """Reads the array of an .npy file, or {name: array} of an .npz file; ValueError for anything else."""
    try:
        content = np.load(path, **options)
        return dict(content) if isinstance(content, np.lib.npyio.NpzFile) else content
    except FileNotFoundError:
        raise
    except Exception as error:  # a dozen types, depending on the damaged byte
        raise ValueError(f"{path}: expected a NumPy file, found one that cannot be read ({error})") from error


def from_arrays(images: np.ndarray, labels: np.ndarray, class_names: Sequence[str] | None = None) -> Source:
    """Takes images uint8[N, H, W, 3] and labels int[N] in memory (or memory-mapped).

    Args:
      class_names: one name per class; by default the labels, padded with zeros so that they sort as numbers do.

    Raises:
      ValueError, TypeError: other shapes or dtypes, or labels without a name.
    """
    images, labels = np.asanyarray(unmasked(images)), np.asarray(unmasked(labels))
    if images.ndim != 4 or images.shape[-1] != 3 or images.dtype != np.uint8:
        raise Refused("images", "images uint8[N, H, W, 3]", f"{images.dtype}{list(images.shape)}")
    if not len(images):
        raise Refused("images", "at least one image", "none")
    if labels.shape != images.shape[:1] or labels.dtype.kind not in "iu":
        raise Refused("labels", f"whole labels [{len(images)}]", f"{labels.dtype}{list(labels.shape)}")
    classes = int(labels.max()) + 1
    if class_names is None:
        if classes > _MOST_CLASSES:
            raise Refused("labels", f"labels below {_MOST_CLASSES} without class_names", classes - 1)
        class_names = _numbered(classes)
    if labels.min() < 0 or classes > len(class_names):
        found = f"{labels.min()}..{labels.max()}"
        raise Refused("labels", f"labels 0..{len(class_names) - 1}, one per class name", found)

    def read(positions):
        # A range as a slice: a view instead of a copy.
        return images[slice(positions.start, positions.stop) if isinstance(positions, range) else positions]

    description = {
        "kind": "arrays",
        "images_sha256": files.digest_of(images),
        "labels_sha256": files.digest_of(labels.astype(np.int32)),
    }
    return Source(read, labels.astype(np.int32), _numbered(len(images)), tuple(map(str, class_names)), description)


def from_folder(
    root: str | os.PathLike,
    *,
    preprocess: str = "none",
    size: int | str | None = None,
    limit: int | None = None,
    turn: bool = False,
) -> Source:
    """Reads a tree `root/class/*.png|jpg|...`; classes and images in sorted order.

    Links are followed. Warnings count files that are no images, and name classes without images and classes whose numbers
    are in another order than their labels.

    Args:
      preprocess: recipe that makes the images equal in size: `none`, `imagenet` (the shorter side to size * 256 /
        224, then the centre), `resize` (both sides), `inception` (the centre 87.5 %, resized).
      size: side of the square result in pixels, needed by every `preprocess` but `none`; with `none`, `keep` takes images
        of many sizes unchanged.
      limit: number of images to take, the first ones of each class, with classes as equal as possible.
      turn: apply the orientation in EXIF data; by default pixels stay as stored, as in ImageNet-C and torchvision, and a
        warning counts the files that hold one.

    Raises:
      FileNotFoundError: no such folder, or no images in it.
      ValueError: a damaged image, a link that leads nowhere or a name that is not UTF-8 (named), images of
        different sizes, two images with one name.
    """
    _check_limit(limit)
    root = pathlib.Path(root).expanduser()
    if not root.is_dir():
        raise FileNotFoundError(f"expected a folder of images, found no folder {root}")
    require("PIL", "reading images needs Pillow", "pillow")
    classes = class_folders(root)
    every = labelled_images(root, classes)
    items = [every[i] for i in np.sort(balanced_prefix([label for _, label in every], limit))]
    labels = [label for _, label in items]
    names = [path.relative_to(root / classes[label]).with_suffix("").as_posix() for path, label in items]
    listing, names_and_sizes, total = files.Digest(), files.Digest(), 0
    for path, _ in items:
        try:
            stat = path.stat()
            listing.add(f"{path.relative_to(root)} {stat.st_size} {stat.st_mtime_ns}\n")
            names_and_sizes.add(f"{path.relative_to(root).as_posix()} {stat.st_size}\n")
            total += stat.st_size
        except (OSError, UnicodeEncodeError) as error:
            printable = str(path).encode("utf-8", "backslashreplace").decode()
            reason = "its name is not valid UTF-8" if isinstance(error, UnicodeError) else f"{error.strerror}"
            raise ValueError(f"{printable} cannot be read as an image ({reason}); remove it or rename it") from error
    description: dict[str, Any] = {"kind": "folder", "path": str(root.resolve()), "listing_sha256": str(listing)}
    description["names_sha256"] = str(names_and_sizes)
    description["content_sha256"] = files.content_sha256([path for path, _ in items])
    if total > files.WHOLE:
        description["sampled"] = True
    return _encoded(
        lambda positions: [(items[i][0], items[i][0]) for i in positions],
        labels,
        names,
        classes,
        description | {"preprocess": preprocess, "size": size, "limit": limit},
        turn,
    )


def from_tfds(
    name: str,
    *,
    split: str = "test",
    data_dir: str | os.PathLike | None = None,
    preprocess: str = "none",
    size: int | str | None = None,
    limit: int | None = None,
    turn: bool = False,
) -> Source:
    """Reads a prepared TensorFlow Datasets dataset (array_record, read without TensorFlow), e.g. `cifar10`.

    Args:
      name: `name[/config][:version]` of the dataset.
      split: e.g. `test`, `validation`.
      data_dir: the folder of all datasets; `~/tensorflow_datasets` when None.
      preprocess, size, turn: see `from_folder`.
      limit: number of images to take, from the first.

    Raises:
      ModuleNotFoundError, FileNotFoundError: TensorFlow Datasets or the dataset is not there; the message says
        what to do.
    """
    _check_limit(limit)
    why = "reading TensorFlow Datasets needs tensorflow-datasets and array-record"
    tfds = require("tensorflow_datasets", why, "tensorflow-datasets array-record")
    require("PIL", "reading images needs Pillow", "pillow")
    try:
        decoders = {"image": tfds.decode.SkipDecoding()}  # decoded here, in threads
        builder = tfds.builder(name, data_dir=data_dir, file_format="array_record")
        source = builder.as_data_source(split, decoders=decoders)
    except (tfds.core.DatasetNotFoundError, AssertionError, FileNotFoundError, ValueError) as error:
        raise FileNotFoundError(
            f"cannot read {name!r}, split {split!r}, from {data_dir or '~/tensorflow_datasets'} as array_record: {error}"
        ) from error
    number = len(source) if limit is None else min(limit, len(source))
    if not {"image", "label"} <= set(builder.info.features):
        raise ValueError(f"{name}: expected features image and label, found {', '.join(builder.info.features)}")
    labels, names, content = [], [], files.Digest()
    for start in range(0, number, _BULK):
        for record in source.__getitems__(list(range(start, min(start + _BULK, number)))):
            content.add(record["image"])
            labels.append(int(record["label"]))
            names.append(pathlib.PurePosixPath(record.get("file_name", b"").decode()).stem)

    def fetch(positions):
        records = source.__getitems__(list(positions))
        return [(record["image"], f"{name} {split}[{i}]") for i, record in zip(positions, records)]

    content.add(np.array(labels))
    description = {"kind": "tfds", "name": builder.info.full_name, "split": split, "records": len(source)}
    description["content_sha256"] = str(content)
    return _encoded(
        fetch,
        labels,
        names if all(names) else _numbered(number),
        builder.info.features["label"].names or _numbered(max(labels) + 1),
        description | {"preprocess": preprocess, "size": size, "limit": limit},
        turn,
    )


def require(module: str, why: str, packages: str) -> ModuleType:
    """Imports an optional dependency, or raises an error that names the command to install its packages."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{why}, which cannot be imported ({error}); pip install {packages}") from error


def _encoded(fetch, labels, names, class_names, description, turn):
    """Makes a source of image files; `fetch` returns, for positions, each file (or its bytes) and its name in errors."""
    seen = set()
    for name, label in zip(names, labels):
        if (label, name) in seen:
            raise ValueError(f"expected one image per name, found two called {name!r} in class {class_names[label]}")
        seen.add((label, name))
    prepare = pictures.recipe(description["preprocess"], description["size"])
    keep = description["size"] == pictures.KEEP
    orientations = pictures.Orientations(turn)
    if turn:
        description |= {"turn": True}

    def read(positions):
        items = fetch(positions)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            images = list(pool.map(lambda item: pictures.decode(*item, prepare, orientations), items))
        if keep:
            return images
        shape = images[0].shape
        for (_, name), image in zip(items, images):
            if image.shape != shape:
                raise ValueError(
                    f"expected images of one size, found {shape[0]}x{shape[1]} and {image.shape[0]}x{image.shape[1]} "
                    f"({name}); choose a preprocess ({', '.join(pictures.RECIPES)}) and a size, or the size keep"
                )
        return np.stack(images)

    classes = tuple(map(str, class_names))
    facts = {"encoded": True, "many_sizes": keep, "orientations": orientations}
    return Source(read, np.array(labels, np.int32), tuple(names), classes, description, **facts)


def safe_name(name: str) -> str:
    """Changes a name that leads to another folder, or that no visible file can have; returns a safe name itself."""
    safe = _UNSAFE.sub("_", name)
    if safe[:1] in ("", "."):
        safe = "_" + safe[1:]
    if len(safe.encode()) > _LONGEST:
        digest = files.digest_of(name.encode("utf-8", "surrogatepass"))[:16]
        safe = f"{safe.encode()[: _LONGEST - 17].decode(errors='ignore')}-{digest}"
    return safe


def _safe_path(name):
    """Makes each part of an image's name safe; readers take a folder `x.png` for an image."""
    *folders, last = map(safe_name, name.split("/"))
    return "/".join([*(f"{part}_" if part.lower().endswith(SUFFIXES) else part for part in folders), last])


def _distinct(names, make_safe, groups):
    """Makes names safe and distinct within their group; a name that is safe stays, and the first of equal ones."""
    names = list(map(str, names))
    safe = list(map(make_safe, names))
    changed = [pair for pair in zip(names, safe) if pair[0] != pair[1]]
    if changed:
        LOG.warning("%d names are no safe file names, and are changed (the first: %r to %r)", len(changed), *changed[0])
    reserved = {(group, name) for group, name, own in zip(groups, names, safe) if name == own}
    taken, copies, chosen = set(), collections.Counter(), []
    for group, name, own in zip(groups, names, safe):
        new = own
        while (group, new) in taken or (new != name and (group, new) in reserved):
            copies[group, own] += 1
            new = f"{own}-{copies[group, own] + 1}"
        taken.add((group, new))
        chosen.append(new)
    return tuple(chosen)


def _numbered(count):
    width = len(str(count - 1))
    return tuple(f"{i:0{width}d}" for i in range(count))
