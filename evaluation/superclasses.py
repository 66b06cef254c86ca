"""Test images of LAION-C's 16 classes, for models of ImageNet's 1,000."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from ml_collections import ConfigDict

from corruptions import laion_c
from data import Dataset
from data.natural import sets
from evaluation.natural import choose
from evaluation.shown import Shown, Superclasses
from runtime.settings import SettingsError


def check(settings: ConfigDict) -> None:
    """Checks that config.eval.superclasses goes with the other settings of config.eval.

    Raises:
      SettingsError: they also ask for images of other classes, or for a temperature, which is fitted on classes.
    """
    given = [name for name in ("stored", "natural", "temperature") if settings[name]]
    if settings.superclasses and given:
        raise SettingsError(
            f"config.eval.{given[0]}: expected none with config.eval.superclasses={settings.superclasses!r}, found "
            f"{settings[given[0]]!r}; evaluate one after the other"
        )


def of_classes(class_names: Sequence[str], reduce: str) -> Superclasses:
    """Finds the members of LAION-C's 16 classes among a model's, by WordNet IDs in the order of its logits.

    Raises:
      ValueError: the model lacks a member.
    """
    place = {name: number for number, name in enumerate(class_names)}
    wordnet = list(sets.imagenet().groups)
    wanted = [[wordnet[k] for k in members] for members in laion_c.SUPERCLASSES.values()]
    if missing := [name for names in wanted for name in names if name not in place]:
        raise ValueError(
            f"expected a model of ImageNet's 1,000 classes with config.eval.superclasses={reduce!r}, found one of "
            f"{len(class_names)} that lacks {len(missing)} members of LAION-C's classes, {missing[0]} first"
        )
    return Superclasses(reduce, tuple(tuple(place[name] for name in names) for names in wanted))


def shown_of(shown: Shown, dataset: Dataset, reduce: str) -> Shown:
    """Shows the test images of a dataset that have one of LAION-C's 16 classes, labelled with its number.

    A score is the `mean` of its members' probabilities, as LAION-C reports, or their `sum`.

    Raises:
      ValueError: the dataset's classes are others, or no test image has one of the 16.
    """
    superclasses = of_classes(dataset.class_names, reduce)
    numbers = np.full(dataset.num_classes, -1)
    for number, members in enumerate(superclasses.members):
        numbers[list(members)] = number
    labels = numbers[np.asarray(shown.split.labels)]
    chosen = np.flatnonzero(labels >= 0)
    if not len(chosen):
        raise ValueError(f"expected test images of LAION-C's 16 classes, found none among {len(labels)}")
    name = f"{shown.about.get('dataset', '')}, 16 classes of LAION-C"
    about = {**shown.about, "dataset": name, "classes": len(superclasses.members)}
    split = choose(shown.split, chosen, labels[chosen])
    return dataclasses.replace(shown, split=split, superclasses=superclasses, about=about)
