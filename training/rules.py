"""The check of a command's settings: each alone, then those that exclude each other.

A rule yields the problems of a config, each as `expected ..., found ...`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ml_collections import ConfigDict

import data
import models
from runtime import schema
from runtime.schema import SettingsError
from training import names, states, steps
from training.sections import SETTINGS, TrainSettings

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
    if dataset.name not in data.of_files():
        for key, plain in (("train_size", 0), ("resize", "crop")):
            if dataset[key] != plain:
                yield (
                    f"expected config.dataset.{key} {plain!r} with {dataset.name}, whose images have one size (others are "
                    f"for {', '.join(data.of_files())}), found {dataset[key]!r}"
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
    parts = names.norm_groups(names.batch_norm(train.batch_norm))
    if parts and train.batch_size % parts:
        yield f"expected config.train.batch_size to be a multiple of {parts}, found {train.batch_size}"


def of_losses(config: ConfigDict) -> Iterator[str]:
    """The parts of the loss fit together."""
    yield from steps.problems_of_loss(config.train)


def of_measures(config: ConfigDict) -> Iterator[str]:
    """Settings of measurements on trained models fit together."""
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


def check(config: ConfigDict) -> None:
    """Checks the settings of a command, each alone and then together.

    Raises:
      SettingsError: names every wrong setting with the expected and the found value.
    """
    known = SETTINGS | TrainSettings.settings("study.finetune.")
    values = flat(config)
    optional = {key for key, one in SETTINGS.items() if one.default is None or key.startswith("study.finetune.")}
    if missing := [key for key in SETTINGS if key not in values and key not in optional]:
        raise SettingsError(
            f"expected {', '.join(f'config.{key}' for key in missing)}, found no such setting; make the config from "
            "configs.default.get_config()"
        )
    # A network may have options that no other has: of_model compares them with its class.
    checked = {key: value for key, value in values.items() if key in known or not _is_of_model(key, values)}
    schema.check(checked, known)
    if wrong := [problem for rule in RULES for problem in rule(config)]:
        raise SettingsError("\n".join(wrong))


def flat(config: ConfigDict) -> dict[str, Any]:
    """Flattens a config to {dotted key: value}; a setting that holds a dict stays one."""
    return dict(_items(config.to_dict(), ""))


def _items(tree: Mapping[str, Any], prefix: str):
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and key not in SETTINGS:
            yield from _items(value, f"{key}.")
        else:
            yield key, value


def _is_of_model(key, values):
    return key.startswith("model.") and key.removeprefix("model.") in models.options(values["model.name"])
