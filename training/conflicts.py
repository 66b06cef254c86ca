"""What does not fit together among settings that are each right."""

from collections.abc import Iterator

from ml_collections import ConfigDict

import data
import models
from training import augmentation, states, steps
from training.sections import SETTINGS

_IMPORT = ("name", "dtype", "checkpoint", "class_stride")  # settings of `model` that are no network's options


def conflicts(config: ConfigDict) -> Iterator[str]:
    """Yields what does not fit together among settings that are each right, as `expected ..., found ...`."""
    name, dataset, train = config.model.name, config.dataset, config.train
    size, side = dataset.image_size, dataset.train_size or dataset.image_size

    # The network takes the options and the size of the images.
    options, smallest = models.options(name), models.smallest_size(name)
    for key, value in config.model.items():
        if key not in (*_IMPORT, *options) and not (key in states.OF_THE_NETWORK and not value):
            yield f"expected options of config.model among {', '.join(options)} for {name}, found {key}"
    if (shown := train.random_resized_crop or train.random_crop or size) < smallest:
        yield f"expected images of at least {smallest} pixels for {name}, found {shown}"

    # Only images of files are resized, and turned.
    if dataset.name not in data.of_files():
        folders = config.get("bank") or config.get("frost", "") not in ("", "original")
        for key, plain in (("train_size", 0), ("resize", "crop"), ("turn", False)):
            if dataset.get(key, plain) != plain and not (key == "turn" and folders):
                yield (
                    f"expected config.dataset.{key} {plain!r} with {dataset.name}, whose images have one size (others are "
                    f"for {', '.join(data.of_files())}), found {dataset[key]!r}"
                )

    # Crops lie within the training images.
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

    # A warm-up is shorter than its training, and a batch divides into the parts of BatchNorm, also of models that start
    # from another.
    recipes = {"train": train.to_dict()}
    if train.init_from:
        recipes["study.finetune"] = recipes["train"] | config.study.finetune.to_dict()
    for section, recipe in recipes.items():
        warmup, epochs = recipe["warmup_epochs"], recipe["epochs"]
        if recipe["schedule"] != "step" and warmup >= max(1, epochs):
            yield f"expected config.{section}.warmup_epochs below {epochs} epochs, found {warmup}"
        if recipe["schedule"] == "step" and warmup:
            yield f"expected config.{section}.warmup_epochs 0 with schedule 'step', which has none, found {warmup}"
        parts = augmentation.norm_groups(augmentation.batch_norm(recipe["batch_norm"]))
        if parts and recipe["batch_size"] % parts:
            yield f"expected config.{section}.batch_size to be a multiple of {parts}, found {recipe['batch_size']}"

    # A setting has an effect.
    if train.flip_alternates and not train.flip:
        yield "expected config.train.flip with config.train.flip_alternates, found no flip"
    if train.reading == "code" and train.corrupted_fraction != SETTINGS["train.corrupted_fraction"].default:
        found = f"found {train.corrupted_fraction}"
        yield f"expected no config.train.corrupted_fraction with reading 'code', which corrupts a copy of every image, {found}"

    # The parts of the loss fit together.
    yield from steps.problems_of_loss(train)

    # Measurements on trained models.
    if config.adapt.images < config.adapt.batch_size:
        yield f"expected config.adapt.images of at least a batch of {config.adapt.batch_size}, found {config.adapt.images}"
    for key, other in (("stored", "adapt"), ("enhance", "adapt"), ("images", "stored")):
        if config.eval[key] and config.eval[other]:
            yield f"expected no config.eval.{key} with config.eval.{other}, found {config.eval[key]!r}"
    for key, needed in (("verify", "stored"), ("natural_dir", "natural"), ("pseudo_count", "adapt")):
        if config.eval[key] and not config.eval[needed]:
            yield f"expected config.eval.{needed} with config.eval.{key}, found {config.eval[key]!r} alone"
    mild, severe = config.calibrate.targets
    if mild <= severe:
        yield f"expected config.calibrate.targets (mild, severe) with mild > severe, found ({mild}, {severe})"
    subsets, toy = config.msd.subsets, config.msd.toy
    if max(subsets.sizes) > subsets.pool:
        yield f"expected config.msd.subsets.sizes up to the pool of {subsets.pool}, found {max(subsets.sizes)}"
    if toy.first == toy.second:
        yield f"expected two corruptions in config.msd.toy, found {toy.first} twice"
