"""The names that settings take, and settings that exclude each other.

A check of a name raises ValueError, whose text tells the expected name. A rule yields the problems of a config, each
as `expected ..., found ...`.
"""

import importlib.util
import math
from collections.abc import Iterator, Mapping
from typing import Any

from ml_collections import ConfigDict

import corruptions
import data
import models
from corruptions import enhance as enhancements
from corruptions.checks import suggest
from runtime.bindings import TRAINED
from training import augmentation, schemes, states
from training import batch_norm as norms

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
            for option, check in (("range", corruptions.levels.level_range), ("levels", corruptions.levels.selected)):
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


def batch_norm(setting: str) -> None:
    """Checks which images BatchNorm takes statistics of."""
    norms.canonical(setting, 1)


def folder(name: str) -> None:
    """Checks a folder's name within the workdir."""
    if not name or name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"expected the name of a folder within the workdir, found {name!r}")


def not_empty(name: str) -> None:
    """Checks that there is a name; the command checks it where it is used."""
    if not name:
        raise ValueError("expected a name, found ''")


_IMPORT = ("name", "dtype", "checkpoint", "class_stride")  # settings of `model` that are no options of its class


def of_model(config: ConfigDict) -> Iterator[str]:
    """The network takes the options and the size of the images."""
    name, train = config.model.name, config.train
    size = train.random_resized_crop or train.random_crop or config.dataset.image_size
    options = models.options(name)
    for key, value in config.model.items():
        if key not in (*_IMPORT, *options) and not (key in states.OF_THE_NETWORK and not value):
            yield f"expected options of config.model among {', '.join(options)} for {name}, found {key}"
    if size < models.smallest_size(name):
        yield f"expected images of at least {models.smallest_size(name)} pixels for {name}, found {size}"


def of_files(config: ConfigDict) -> Iterator[str]:
    """Only images of files are resized."""
    dataset = config.dataset
    if dataset.name not in data.OF_FILES:
        for key, plain in (("train_size", 0), ("resize", "crop")):
            if dataset[key] != plain:
                yield (
                    f"expected config.dataset.{key} {plain!r} with {dataset.name}, whose images have one size (others are "
                    f"for {', '.join(data.OF_FILES)}), found {dataset[key]!r}"
                )


def of_sizes(config: ConfigDict) -> Iterator[str]:
    """Crops lie within the training images."""
    size, train = config.dataset.image_size, config.train
    side = config.dataset.train_size or size
    if side < size:
        yield f"expected config.dataset.train_size of at least image_size {size}, or 0, found {side}"
    if train.crop >= side:
        yield f"expected config.train.crop below {side} pixels, the side of the training images, found {train.crop}"
    for key in ("random_resized_crop", "random_crop"):
        if train[key] > side:
            yield f"expected config.train.{key} up to {side} pixels, found {train[key]}"
        if train[key] and train.crop:
            yield f"expected config.train.crop 0 with train.{key}, found {train.crop}"
    if train.random_resized_crop and train.random_crop:
        yield f"expected config.train.random_crop 0 with train.random_resized_crop, found {train.random_crop}"


def of_schedule(config: ConfigDict) -> Iterator[str]:
    """A warm-up is shorter than its training, also of models that start from another."""
    recipes = {"train": config.train.to_dict()}
    if config.train.init_from:
        recipes["study.finetune"] = recipes["train"] | config.study.finetune.to_dict()
    for name, recipe in recipes.items():
        warmup, epochs = recipe["warmup_epochs"], recipe["epochs"]
        if recipe["schedule"] != "step" and warmup >= max(1, epochs):
            yield f"expected config.{name}.warmup_epochs below {epochs} epochs, found {warmup}"


def of_batches(config: ConfigDict) -> Iterator[str]:
    """A batch divides into the parts of BatchNorm."""
    train = config.train
    parts = norms.groups(norms.canonical(train.batch_norm, 1))
    if parts and train.batch_size % parts:
        yield f"expected config.train.batch_size to be a multiple of {parts}, found {train.batch_size}"


def of_losses(config: ConfigDict) -> Iterator[str]:
    """The consistency loss compares views of a scheme."""
    train = config.train
    if train.jsd_weight and (not train.scheme or train.corruption != augmentation.STANDARD):
        yield (
            "expected config.train.jsd_weight with a config.train.scheme, whose views it compares, and without a "
            f"corruption, found scheme {train.scheme!r} and corruption {train.corruption!r}"
        )
    if train.jsd_weight and train.label_smoothing:
        yield f"expected config.train.label_smoothing 0 with a train.jsd_weight, found {train.label_smoothing}"
    if train.stability_weight and train.jsd_weight:
        yield f"expected config.train.stability_weight 0 with a train.jsd_weight, found {train.stability_weight}"
    if train.mixup and (train.jsd_weight or train.stability_weight):
        yield (
            "expected config.train.mixup False with a train.jsd_weight or train.stability_weight, found True with "
            f"{train.jsd_weight} and {train.stability_weight}"
        )
    if bool(train.stability_weight) != bool(train.stability_noise):
        yield (
            "expected config.train.stability_weight and train.stability_noise both above 0, or both 0, found "
            f"{train.stability_weight} and {train.stability_noise}"
        )


def of_measures(config: ConfigDict) -> Iterator[str]:
    """What is asked of trained models fits together."""
    if config.adapt.images < config.adapt.batch_size:
        yield f"expected config.adapt.images of at least a batch of {config.adapt.batch_size}, found {config.adapt.images}"
    if config.eval.adapt and config.eval.stored:
        yield f"expected no config.eval.stored with config.eval.adapt, found {config.eval.stored!r}"
    if config.eval.adapt and config.eval.enhance:
        yield f"expected no config.eval.enhance with config.eval.adapt, found {config.eval.enhance!r}"
    mild, severe = config.calibrate.targets
    if mild <= severe:
        yield f"expected config.calibrate.targets (mild, severe) with mild > severe, found ({mild}, {severe})"
    subsets = config.msd.subsets
    if max(subsets.sizes) > subsets.pool:
        yield f"expected config.msd.subsets.sizes up to the pool of {subsets.pool}, found {max(subsets.sizes)}"
    toy = config.msd.toy
    if toy.first == toy.second:
        yield f"expected two corruptions in config.msd.toy, found {toy.first} twice"


RULES = (of_model, of_files, of_sizes, of_schedule, of_batches, of_losses, of_measures)
