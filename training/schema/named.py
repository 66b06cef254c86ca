"""Checks of settings that name something; each raises ValueError, which says what was expected, for
any other text.
"""

import importlib.util
import math
from collections.abc import Mapping
from typing import Any

import corruptions
import data
import models
from corruptions.checks import suggest
from evaluation import enhancements
from runtime.bindings import TRAINED
from training import augmentation, batch_norm, schemes

SEVERITY = "'random', 'levels', or numbers with commas between them ('1,3,5')"
SCHEME = "a scheme of corruptions.augment.names(), or ''"


def tensorboard(wanted: Any) -> None:
    """Checks whether metrics can be written for TensorBoard."""
    if not isinstance(wanted, bool):
        raise ValueError(f"expected True or False, found {wanted!r}")
    if wanted and importlib.util.find_spec("tensorboardX") is None:
        raise ValueError(
            'expected False, or the package tensorboardX, found none; pip install "jax-corruptions[tensorboard]"'
        )


def corruption(name: str) -> None:
    """Checks a corruption or a benchmark."""
    if name not in corruptions.benchmarks():
        corruptions.get(name)


def one_corruption(name: str) -> None:
    """Checks a corruption."""
    corruptions.get(name)


def corruption_options(options: Mapping[str, Any]) -> None:
    """Checks {corruption: {option: value}}; ranges and levels by what the corruption takes."""
    for name, given in options.items():
        one = corruptions.get(name)
        if not isinstance(given, Mapping):
            raise ValueError(f"{name}: expected {{option: value}}, found {given!r}")
        corruptions.checks.options(one.qualified_name, one.options, given)
        scale = one.scale
        if isinstance(scale, corruptions.Levels):
            for option, check in (("range", corruptions.checks.level_range), ("levels", corruptions.checks.levels)):
                check(given.get(option), scale.count)
        elif (bounds := given.get("range")) is not None and not _is_pair(bounds):
            raise ValueError(f"{name}: expected range=(mild, severe), two finite numbers, found {bounds!r}")


def _is_pair(bounds):
    return (
        isinstance(bounds, tuple | list)
        and len(bounds) == 2
        and all(isinstance(end, int | float) and math.isfinite(end) for end in bounds)
    )


def training(name: str) -> None:
    """Checks what a model is trained with: `standard`, a corruption, or `mixture=BENCHMARK`."""
    augmentation.members(name)


def mixture(name: str) -> None:
    """Checks `mixture=BENCHMARK`."""
    if augmentation.benchmark(name) == name:
        raise ValueError(f"expected 'mixture=BENCHMARK', found {name!r}")
    augmentation.members(name)


def scheme(name: str) -> None:
    """Checks an augmentation scheme; stored ones, which are files, are checked when they are
    read.
    """
    if name and not corruptions.augment.is_stored(name):
        corruptions.augment.get(name)


def study_scheme(name: str) -> None:
    """Checks a training of tools.scheme_study; stored ones are checked when they are read."""
    alone = name.removesuffix(schemes.JSD)
    if alone not in (schemes.SUBSETS, augmentation.STANDARD) and not corruptions.augment.is_stored(alone):
        corruptions.augment.get(alone)
    elif name != alone and not corruptions.augment.is_stored(alone):
        raise ValueError(f"expected {schemes.JSD} after one scheme, whose views it compares, found {name!r}")


def enhancement(name: str) -> None:
    """Checks an enhancement, or `train=` and one of images or `stability`."""
    alone = name.removeprefix(TRAINED)
    if name == f"{TRAINED}stability":
        return
    enhancements.check(alone)
    if name != alone and alone not in enhancements.of_pixels():
        raise ValueError(
            f"expected {TRAINED} with one of {', '.join(enhancements.of_pixels())}, stability, found {name!r}"
        )


def severity(text: str) -> None:
    """Checks `random`, `levels`, or numbers; which numbers a corruption takes depends on it."""
    if text in ("random", "levels"):
        return
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = [math.nan]
    if not all(math.isfinite(value) and value >= 0 for value in values):
        raise ValueError(f"expected {SEVERITY}, found {text!r}")


def model(name: str) -> None:
    """Checks the name of a network."""
    models.options(name)


def dataset(name: str) -> None:
    """Checks the name of a dataset."""
    if name not in data.names():
        hint = suggest(name, data.names())
        raise ValueError(f"expected a dataset out of {', '.join(data.names())}, found {name!r}{hint}")


def dataset_or_none(name: str) -> None:
    """Checks the name of a dataset, or nothing."""
    if name:
        dataset(name)


def norm(setting: str) -> None:
    """Checks over which images BatchNorm takes its statistics."""
    batch_norm.canonical(setting, 1)


def folder(name: str) -> None:
    """Checks a folder's name within the workdir."""
    if not name or name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"expected the name of a folder within the workdir, found {name!r}")


def filled(name: str) -> None:
    """Checks that there is a name at all; which it is is found where it is used."""
    if not name:
        raise ValueError("expected a name, found ''")
