"""The natural test sets: names, folders, and the classes of a model that are right answers.

A model of 1,000 classes answers a set of 200 among these 200 alone: the other logits do not count, as in all published
numbers. One object of ObjectNet is several classes of ImageNet, any of which is right. A right answer is therefore a
group of classes of the model. Source: the ImageNet testbed (Taori et al., NeurIPS 2020), src/eval_settings.
"""

import dataclasses
import difflib
import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

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
    tfds: str = ""  # its name in TensorFlow Datasets, with the variant; "" when it is not there
    border: int = 0  # pixels that are cut off on every side first
    side: int = 0  # side of images that are taken as they are; 0 resizes and crops to the model's size
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
        # CINIC-10 holds CIFAR-10's own images in all its splits; they are no shift.
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
    if name not in _SETS:
        near = difflib.get_close_matches(name, NAMES, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"expected natural test sets of {', '.join(NAMES)}, found {name!r}{hint}")
    return _SETS[name]
