"""A study: its data, and for each of its models the config, the name and the folder."""

import os
import pathlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from jax.sharding import Mesh
from ml_collections import ConfigDict

import corruptions
import data
from corruptions import imagenet_c
from data.dataset import Dataset, Split
from data.union import union
from runtime import distributed, settings
from runtime.bindings import TRAINED
from runtime.provenance import summary
from runtime.workdirs import read_json, write_json
from training import augmentation, names, ranges, run, schemes, states, stream
from training.sections import TrainSettings

FREE = (  # places of files and images do not determine a result
    "dataset.data_dir",
    "dataset.placement",
    "ranges",
    "imports",
    "frost",  # the digest of its photographs is among the options of the corruption (FROM_FILES)
    "style",
    "train.transforms",
    "train.mix_in.data_dir",
    "train.tensorboard",
)


class FromFile(NamedTuple):
    """A corruption that needs files, which a setting of commands names.

    Attributes:
      corruption: its name.
      option: the option of the corruption that holds the digest of the files.
      read: path -> digest; the process uses these files from then on.
    """

    corruption: str
    option: str
    read: Callable[[str], str]


FROM_FILES = {"frost": FromFile(imagenet_c.frost.qualified_name, "photographs", imagenet_c.use_photographs)}
"""{setting: FromFile}. A module of config.imports may add a corruption of its own, for `style`."""
IMPORT_OPTIONS = ("checkpoint", "class_stride")  # settings of config.model that only evaluation.imported reads
STUDY_FREE = (  # they say which results to make, not how: runs of one workdir may differ in them
    *FREE,
    "study",
    "train.corruption",
    "eval.corruptions",
    "eval.severity",
    "eval.batch_size",
    "eval.adapt",
    "eval.enhance",
    "eval.reference",
    "eval.reference_mismatch",
    "eval.pseudo_count",
    "seed",
    "calibrate",
    "msd",
    "search",
    "adain",
    "adapt",
    *(f"model.{key}" for key in IMPORT_OPTIONS),
)


def load_data(
    config: ConfigDict, mesh: Mesh, mixed: bool = False, placed: Collection[str] = ("train", "test")
) -> tuple[Dataset, Split, Split]:
    """Loads (dataset, train split, test split), uint8, on the mesh where they fit.

    Args:
      config: config of the command.
      mesh: splits that fit are replicated over it, see `stream.place_splits`.
      mixed: with the training images of config.train.mix_in too, as for training.
      placed: splits to place; the others stay on the host.
    """
    dataset = load_dataset(config, mixed)
    return dataset, *stream.place_splits(dataset, config.dataset.placement, mesh, placed)


def load_dataset(config: ConfigDict, mixed: bool = False) -> Dataset:
    """Loads the dataset of `load_data` and leaves it on the host."""
    optional = ("data_dir", "train_size", "train_limit", "test_limit")  # "" and 0 stand for the default
    given = {k: v for k, v in config.dataset.items() if k != "placement" and (k not in optional or v)}
    dataset = data.load(**given)
    if mixed and config.train.mix_in.name:
        dataset = union(dataset, _load_mixed_in(given | {k: v for k, v in config.train.mix_in.items() if v}))
    ranges.check_image_shape(config.get("ranges"), dataset.image_shape)
    return dataset


def _load_mixed_in(given):
    try:
        return data.load(**given)
    except (FileNotFoundError, ValueError) as error:
        raise type(error)(f"config.train.mix_in: {error}") from None


def load_for_training(config: ConfigDict, mesh: Mesh, path: pathlib.Path) -> tuple[Dataset, Split, Split]:
    """Loads data as `load_data` for a run in a workdir, with the images of config.train.mix_in.

    Mixed images are recorded in the workdir (`record_data`).
    """
    dataset, *splits = load_data(config, mesh, mixed=True)
    if config.train.mix_in.name:
        record_data(path, dataset)
    return dataset, *splits


def model_config(config: ConfigDict, corruption: str, seed: int, devices: int = 1) -> ConfigDict:
    """Extracts from a study's config the settings that determine one of its models.

    Args:
      config: config of the study.
      corruption: the model's augmentation, see `augmentation.members`.
      seed: seed of the model.
      devices: number of devices over which its batches are split.

    Raises:
      ValueError: an unknown corruption or scheme, or another setting of BatchNorm.
    """
    parts = {key: config[key].to_dict() for key in ("dataset", "model", "train")}
    for key in IMPORT_OPTIONS:
        parts["model"].pop(key, None)
    parts["model"] = {key: value for key, value in parts["model"].items() if key not in states.OF_THE_NETWORK or value}
    if config.train.reading == "code" and not config.model.get("checkpoint"):
        parts["model"] = states.RELEASED | parts["model"]  # settings of the config win
    model = ConfigDict(parts)
    model.seed = seed
    if config.get("imports"):
        model.imports = config.imports  # so that loading the model can resolve its corruption
    model.train.corruption = augmentation.canonical(corruption)
    model.train.batch_norm = names.batch_norm(model.train.batch_norm, devices)
    if model.train.scheme:
        name = corruptions.augment.canonical(model.train.scheme)  # for a file, the name contains its digest
        if corruptions.augment.is_stored(model.train.scheme) and name != model.train.scheme:
            model.train.transforms = os.path.abspath(model.train.scheme.partition("=")[2])
        model.train.scheme = name
    options = model.train.corruption_options.to_dict()
    model.train.corruption_options = {
        name: options[name] for name in augmentation.members(corruption) if name in options
    }
    return model


def finetuned_config(config: ConfigDict, standard: ConfigDict, corruption: str, devices: int = 1) -> ConfigDict:
    """Makes the `model_config` of a model that starts from the standard one and has its seed.

    Args:
      config: config of the study.
      standard: `model_config` of its standard model.
      corruption, devices: as for `model_config`.
    """
    model = model_config(config, corruption, standard.seed, devices)
    model.train.update(config.study.finetune)
    model.start = {"train": standard.train.to_dict()}  # a different base model must change the config
    return model


def name_of(train: TrainSettings) -> str:
    """Names a training: `standard`, a corruption, a mixture, or a scheme.

    `+jsd` stands for the consistency loss of a scheme; a scheme and a corruption used together are joined by `+`.
    `+stability` is stability training, `+mixup` mixup, `+frozen` a training of the last layer alone, `+train=clahe`
    enhanced training images.
    """
    name = train.corruption
    if train.scheme:
        scheme = corruptions.augment.canonical(train.scheme) + (schemes.JSD if train.jsd_weight else "")
        name = scheme if name == augmentation.STANDARD else f"{scheme}+{name}"
    name += "+stability" if train.stability_weight else ""
    name += "+mixup" if train.mixup else ""
    name += "+frozen" if train.frozen else ""
    return name + (f"+{TRAINED}{train.enhance}" if train.enhance else "")


def model_dir(workdir: str | os.PathLike, corruption: str, seed: int) -> pathlib.Path:
    """Names the folder of a model within the workdir of its study."""
    return pathlib.Path(workdir) / "models" / schemes.canonical(corruption).replace("/", ".") / f"seed{seed}"


def write_timing(config: ConfigDict, workdir: pathlib.Path, keys: Iterable[tuple[str, int]]) -> None:
    """Writes timing.json, {model|seed: seconds of training} of finished models from their metrics."""
    seconds = {
        f"{model}|{seed}": round(
            run.training_seconds(model_dir(workdir, model, seed) / "metrics.jsonl", config.train.batch_size), 1
        )
        for model, seed in keys
    }
    write_json(workdir / "timing.json", {"training_seconds": seconds})


def comment(config: ConfigDict, record: Mapping[str, Any], *more: str) -> str:
    """Writes the line that tells a table's origin: data, network, epochs, `more`, device and revision of `provenance`."""
    head = (config.dataset.name, config.model.name, f"{config.train.epochs} epochs", *more, summary(record))
    return ", ".join(head)


def refuse_checkpoint(config: ConfigDict) -> None:
    """Refuses to start a training run from a checkpoint file.

    Raises:
      ValueError: config.model.checkpoint names one.
    """
    if config.model.get("checkpoint"):
        raise ValueError(
            "config.model.checkpoint is for eval.py, tools.calibrate and tools.msd, found it in training; to train "
            "from these weights give their file as config.train.init_from"
        )


def refuse_unnamed(config: ConfigDict) -> None:
    """Refuses settings that the names of a study's models do not tell (`name_of`).

    Raises:
      ValueError: stability training, mixup, frozen weights, or enhanced training images.
    """
    for section, recipe in (("train", config.train), ("study.finetune", config.study.finetune)):
        for key, plain in (
            ("enhance", ""),
            ("stability_weight", 0.0),
            ("stability_noise", 0.0),
            ("mixup", False),
            ("frozen", ""),
        ):
            if recipe.get(key, plain) != plain:
                raise ValueError(
                    f"expected config.{section}.{key} {plain!r} in a study, found {recipe[key]!r}; train.py trains a "
                    "model with it, projects.structural.enhancement_study with config.study.enhancements of train=NAME"
                )


def record_data(path: pathlib.Path, dataset: Dataset) -> None:
    """Records the training images in data.json; refuses to go on with other ones.

    Args:
      path: workdir of the run.
      dataset: data of the run.

    Raises:
      WorkdirError: the run was started with other images.
    """
    record = {"name": dataset.name, **dataset.provenance}
    stored = path / "data.json"
    before = distributed.from_main(lambda: read_json(stored) if stored.exists() else None)
    if before:
        settings.check_equal(_digests(before), _digests(record), f"{path} was trained on other images")
    write_json(stored, record)


def _digests(record):
    sources = (("first", record), ("mixed_in", record["mixed_in"]))
    return {name: source.get("train", {}).get("sha256", {}) for name, source in sources}
