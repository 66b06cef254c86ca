"""Which classes a test set has, and which answers are right: groups of classes of the model.

A model of 1,000 classes answers a set of 200 among these 200 alone: the others' logits do not
count, as in all published numbers. One object of ObjectNet is several classes of ImageNet, any of
which is right. Source: the ImageNet testbed (Taori et al., NeurIPS 2020), src/eval_settings.
"""

import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclasses.dataclass(frozen=True)
class Classes:
    """The classes of a test set, numbered from 0 as groups.

    Attributes:
      folders: {name of a class folder: group}; a group may have several names.
      groups: {class of the model, by its name: group}; a group may have several classes.
    """

    folders: Mapping[str, int]
    groups: Mapping[str, int]

    @property
    def number(self) -> int:
        """Counts the groups."""
        return 1 + max(self.groups.values())

    def of_model(self, class_names: Sequence[str], what: str) -> np.ndarray:
        """Gives the group of each class of a model: int32 [classes], -1 for those the set lacks.

        Args:
          class_names: of the model, in the order of its logits: WordNet IDs, or those of CIFAR-10.
          what: the set's name, for the message.

        Raises:
          ValueError: the model has none of the classes.
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
    """Gives the classes of ImageNet, or of `imagenet_a`, `imagenet_r`: folders named by WordNet ID
    or position.
    """
    facts = _facts()
    wordnet = facts["imagenet"]
    positions = [int(position) for position in facts[subset]] if subset else range(len(wordnet))
    groups = {wordnet[position]: group for group, position in enumerate(positions)}
    return Classes(groups | {str(position): group for group, position in enumerate(positions)}, groups)


@functools.cache
def objectnet() -> Classes:
    """Gives the 113 objects that are classes of ImageNet too; folders of others are no class."""
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
    """Gives the classes of CIFAR-10."""
    groups = {name: group for group, name in enumerate(CIFAR10)}
    return Classes(groups, groups)


@functools.cache
def _facts() -> dict[str, list[str]]:
    """The sections of classes.txt as lists of words."""
    sections, words = {}, []
    for line in pathlib.Path(__file__).with_name("classes.txt").read_text().splitlines():
        if line.startswith("["):
            words = sections[line.strip("[]")] = []
        elif not line.startswith("#"):
            words += line.split()
    return sections
