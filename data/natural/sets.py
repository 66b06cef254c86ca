"""The natural test sets: names, folders, the classes of a model that are right answers, and the images.

A model of 1,000 classes answers a set of 200 only among these 200: the other logits do not count, as in all published
numbers. One object of ObjectNet is several classes of ImageNet, any of which is right. A right answer is therefore a
group of classes of the model. Source: the ImageNet testbed (Taori et al., NeurIPS 2020), src/eval_settings.

Images are read from class folders, NumPy files or tfds, and decoded once (`data.cache`).
"""

import dataclasses
import functools
import io
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corruptions.core.checks import one_of
from corruptions.reading import pictures
from data import cache, decode, tfds_source, tree
from data.dataset import Split, make_split
from data.image_folder import TURN
from runtime import files

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclasses.dataclass(frozen=True)
class Classes:
    """The classes of a test set, numbered from 0 as groups."""

    folders: Mapping[str, int]  # {name of a class folder: group}; a group may have several names
    groups: Mapping[str, int]  # {class of the model, by its name: group}; a group may have several classes

    @property
    def number(self) -> int:
        """Counts the groups."""
        return 1 + max(self.groups.values())

    def of_model(self, class_names: Sequence[str], what: str) -> np.ndarray:
        """Returns the group of each class of a model: int32 [classes], -1 for those the set lacks.

        `class_names` are the model's classes in the order of its logits: WordNet IDs, or names of CIFAR-10; `what` names the
        set in the message. Raises ValueError where the model has none of the classes.
        """
        groups = np.array([self.groups.get(name, -1) for name in class_names], np.int32)
        if (groups < 0).all():
            expected = ", ".join(list(self.groups)[:3])
            raise ValueError(
                f"expected a model of the classes of {what} ({expected}, ...), found one of {len(class_names)} others "
                f"({', '.join(class_names[:3])}, ...)"
            )
        return groups


@functools.cache
def imagenet(subset: str = "") -> Classes:
    """Returns the classes of ImageNet, or of `imagenet_a`, `imagenet_r`; folders have WordNet IDs or positions as names."""
    facts = _facts()
    wordnet = facts["imagenet"]
    positions = [int(position) for position in facts[subset]] if subset else range(len(wordnet))
    groups = {wordnet[position]: group for group, position in enumerate(positions)}
    return Classes(groups | {str(position): group for group, position in enumerate(positions)}, groups)


@functools.cache
def objectnet() -> Classes:
    """Returns the 113 objects that are classes of ImageNet too; folders of others are no class."""
    facts = _facts()
    objects = [entry.split("=") for entry in facts["objectnet"]]
    groups = {
        facts["imagenet"][int(position)]: group
        for group, (_, positions) in enumerate(objects)
        for position in positions.split("+")
    }
    return Classes({name: group for group, (name, _) in enumerate(objects)}, groups)


@functools.cache
def cifar10() -> Classes:
    """Returns the classes of CIFAR-10."""
    groups = {name: group for group, name in enumerate(CIFAR10)}
    return Classes(groups, groups)


@functools.cache
def _facts() -> dict[str, list[str]]:
    """Reads the sections of classes.txt as lists of words."""
    sections, words = {}, []
    for line in pathlib.Path(__file__).with_name("classes.txt").read_text().splitlines():
        if line.startswith("["):
            words = sections[line.strip("[]")] = []
        elif not line.startswith("#"):
            words += line.split()
    return sections


@dataclasses.dataclass(frozen=True)
class NaturalSet:
    """A naturally shifted test set."""

    name: str
    classes: Callable[[], Classes]  # a function that returns its classes
    folders: tuple[str, ...]  # possible names of its folder: the name here, and those in its archive
    tfds: str = ""  # its name in TensorFlow Datasets, with the variant; "" without one
    border: int = 0  # pixels that are cut off on every side first
    side: int = 0  # side of images that are taken unchanged; 0 resizes and crops to the model's size
    arrays: tuple[str, str] | None = None  # (images, labels) files of NumPy in place of class folders
    below: str = ""  # the folder with the class folders, where there are others beside it
    skipped: str = ""  # beginning of the names of files that are left out
    others: bool = False  # folders of other classes are left out, not refused


def _imagenet_v2(name, variant, *archives):
    return NaturalSet(name, imagenet, (name, *(f"imagenetv2-{a}" for a in archives)), f"imagenet_v2/{variant}")


def _cifar10_1(name, version):
    files = (f"cifar10.1_{version}_data.npy", f"cifar10.1_{version}_labels.npy")
    folders = (name, "cifar10_1", "CIFAR-10.1/datasets", "CIFAR-10.1")
    return NaturalSet(name, cifar10, folders, f"cifar10_1/{version}", side=32, arrays=files)


_SETS = {
    natural.name: natural
    for natural in (
        _imagenet_v2("imagenet_v2", "matched-frequency", "matched-frequency-format-val", "matched-frequency"),
        _imagenet_v2("imagenet_v2_threshold", "threshold-0.7", "threshold0.7-format-val", "threshold0.7"),
        _imagenet_v2("imagenet_v2_top", "topimages", "top-images-format-val", "topimages"),
        NaturalSet("imagenet_a", lambda: imagenet("imagenet_a"), ("imagenet_a", "imagenet-a"), "imagenet_a"),
        NaturalSet("imagenet_r", lambda: imagenet("imagenet_r"), ("imagenet_r", "imagenet-r"), "imagenet_r"),
        NaturalSet("imagenet_sketch", imagenet, ("imagenet_sketch", "sketch"), "imagenet_sketch"),
        # The border marks the images as not for training; three in four objects are no class of ImageNet.
        NaturalSet("objectnet", objectnet, ("objectnet", "objectnet-1.0"), border=2, below="images", others=True),
        _cifar10_1("cifar10_1", "v6"),
        _cifar10_1("cifar10_1_v4", "v4"),
        # All splits of CINIC-10 contain images of CIFAR-10, which are no shift.
        NaturalSet("cinic10", cifar10, ("cinic10", "CINIC-10"), side=32, below="test", skipped="cifar"),
    )
}
NAMES = tuple(_SETS)


def listed(text: str) -> list[str]:
    """Lists the names in a text that separates them by commas; raises ValueError for an unknown or repeated one."""
    names = [get(name.strip()).name for name in text.split(",") if name.strip()]
    if len(set(names)) < len(names):
        raise ValueError(f"expected each test set once, found {text!r}")
    return names


def get(name: str) -> NaturalSet:
    """Returns a test set by name; raises ValueError, with the nearest name, where there is none."""
    one_of("name", "natural test sets", name, NAMES)
    return _SETS[name]


_CHUNK = 256


@dataclasses.dataclass(frozen=True)
class NaturalImages:
    """A natural test set at the size of a model's input."""

    name: str
    classes: Classes  # its groups of classes, the labels of the split
    split: Split  # images uint8 [N, H, W, 3] on the host, groups as labels, index
    provenance: Mapping[str, Any]  # JSON-ready: source, preprocessing, sha256 of the arrays


def open_natural(
    name: str,
    folder: str | os.PathLike | None,
    image_size: int,
    *,
    resize: str = "crop",
    turn: bool = False,
    cache_dir: str | os.PathLike | None = None,
) -> NaturalImages:
    """Reads a natural test set, one of `data.natural.NAMES`.

    Images of ImageNet's sets are resized as its test images are (`image_size`, `resize`, `turn` of `data.load`); ObjectNet's lose
    their border of 2 pixels first. Images of CIFAR's sets are 32x32 already. `cache_dir` as of `data.cache`.

    Args:
      folder: the folder above the set, which lies there under its name here or in its archive, or as tfds prepared it;
        None is the folder of tfds datasets.

    Raises:
      FileNotFoundError: it is not there; the message names the places.
      ValueError: an unknown name, other classes than the set's, a damaged file, or CIFAR's sets at another size than 32.
    """
    natural = get(name)
    if natural.side not in (0, image_size):
        raise ValueError(
            f"{name} has {natural.side}x{natural.side} images, expected a model of this size, found {image_size}"
        )
    parent = tfds_source.data_folder(folder)
    sides = (natural.side, natural.side) if natural.side else decode.sides(image_size, resize=resize)["test"]
    source = next((opened for look in (_arrays, _records, _tree) if (opened := look(natural, parent))), None)
    if source is None:
        places = ", ".join([*natural.folders, *([natural.tfds] if natural.tfds else [])])
        raise FileNotFoundError(
            f"expected {name} in {parent} as one of {places}, found none; --config.eval.natural_dir says where it lies"
        )
    key = cache.fingerprint(name, source.identity, sides, natural.border, *(["turned"] if turn else []))
    orientations = pictures.Orientations(turn)

    def decoded(notes: dict[str, Any]) -> Iterator[cache.Chunk]:
        yield from source.pieces(*sides, orientations)
        notes["orientations"] = sorted(orientations.found)

    entry = cache.cached(f"natural-{name}", key, decoded, cache_dir)
    orientations.found.update(entry.notes.get("orientations", ()))
    orientations.warn(source.where, TURN)
    split = make_split(entry.images, entry.labels, entry.index, natural.classes().number, name)
    note = f"{decode.description({'train': sides, 'test': sides})}, border {natural.border}"
    note += ", turned by EXIF data" if turn else ""
    origin = {"source": source.where, "preprocess": note, "size": len(split), "sha256": dict(entry.sha256)}
    return NaturalImages(name, natural.classes(), split, origin)


class _Source(NamedTuple):
    """The files of a set: their place, their identity, and a function (size, short, orientations) that decodes them in
    pieces.
    """

    where: str
    identity: Any
    pieces: Callable[[int, int, pictures.Orientations], Iterator[cache.Chunk]]


def _arrays(natural: NaturalSet, parent: Path) -> _Source | None:
    """Two NumPy files: uint8 [N, 32, 32, 3] and labels [N]."""
    for name in natural.folders if natural.arrays else ():
        where, paths = parent / name, [parent / name / file for file in natural.arrays]
        if not all(path.is_file() for path in paths):
            continue
        images, labels = (files.read_array(path, "copy it again", mapped=True) for path in paths)

        def pieces(size, short, orientations, where=where, images=images, labels=labels):
            del short, orientations
            if images.shape[1:] != (size, size, 3) or labels.shape != images.shape[:1]:
                shapes = f"{list(images.shape)} and {list(labels.shape)}"
                raise ValueError(f"{where}: expected images [N, {size}, {size}, 3] and labels [N], found {shapes}")
            yield np.asarray(images), labels.astype(np.int32), np.arange(len(labels), dtype=np.int32)

        return _Source(str(where), tree.state(paths, parent), pieces)
    return None


def _records(natural: NaturalSet, parent: Path) -> _Source | None:
    folder = tfds_source.newest(parent / natural.tfds) if natural.tfds else None
    if folder is None:
        return None
    tfds_source.check_format(folder, "prepare it in another folder with `tfds build ... --file_format=array_record`")
    known = natural.classes()
    if natural.side:  # labels of CIFAR-10.1 have no names
        group = {label: label for label in range(known.number)}
    else:
        names = tfds_source.class_names(folder, 1000)
        group = {label: known.groups[name] for label, name in enumerate(names) if name in known.groups}
    records = tfds_source.records(folder, "test")

    def fetch(positions):
        chunk = records.__getitems__(list(positions))
        return [io.BytesIO(record["image"]) for record in chunk], [group[int(record["label"])] for record in chunk]

    state = [tree.state(sorted(folder.glob("*.array_record*")), parent), sorted(group.items())]
    return _Source(str(folder), state, _decoder(str(folder), len(records), fetch, natural.border))


def _tree(natural: NaturalSet, parent: Path) -> _Source | None:
    root = next((parent / name for name in natural.folders if (parent / name).is_dir()), None)
    if root is None or natural.arrays:
        return None
    root, known = _class_folders(natural, root), natural.classes()
    there = tree.class_folders(root)
    unknown = [name for name in there if name not in known.folders]
    missing = set(range(known.number)) - {known.folders.get(name) for name in there}
    if missing or (unknown and not natural.others):
        lacking = sorted(name for name, group in known.folders.items() if group in missing)
        raise ValueError(
            f"{root}: expected the {known.number} class folders of {natural.name}, found {len(there)} folders; missing: "
            f"{', '.join(lacking[:5]) or 'none'}; unknown: {', '.join(unknown[:5]) or 'none'}"
        )
    classes = [name for name in there if name in known.folders]
    items = [item for item in tree.list_images(root, classes) if not item[0].name.startswith(natural.skipped or "\0")]
    paths, groups = [path for path, _, _ in items], [known.folders[classes[label]] for _, label, _ in items]

    def fetch(positions):
        return paths[positions.start : positions.stop], groups[positions.start : positions.stop]

    return _Source(str(root), [tree.state(paths, root), groups], _decoder(str(root), len(paths), fetch, natural.border))


def _decoder(where, count, fetch, border):
    """Makes `pieces` of files or records; `fetch` returns, for a range of positions, them and their groups."""

    def pieces(size, short, orientations):
        def read(item, number):
            name = None if isinstance(item, Path) else f"record {number}"
            return decode.read(item, size, short, name, border=border, orientations=orientations)

        for start in range(0, count, _CHUNK):
            positions = range(start, min(start + _CHUNK, count))
            items, groups = fetch(positions)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                images = list(pool.map(read, items, positions))
            # Without some of its images it would be another test set.
            if damaged := [image for image in images if isinstance(image, str)]:
                raise ValueError(
                    f"{where}: expected images, found damaged ones, copy them again: {'; '.join(damaged[:5])}"
                )
            yield np.stack(images), np.array(groups, np.int32), np.array(positions, np.int32)

    return pieces


def _class_folders(natural, root):
    """Finds the folder with the class folders; its depth differs between archives."""
    while True:
        below = tree.class_folders(root)
        if natural.below in below:
            root /= natural.below
        elif len(below) == 1:
            root /= below[0]
        else:
            return root
