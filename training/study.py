"""A study: its data, the config, the name and the folder of each of its models, and the training of missing models."""

import dataclasses
import functools
import os
import pathlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from flax import nnx
from jax.sharding import Mesh
from ml_collections import ConfigDict

import corruptions
import data
from data import hosts
from data.dataset import Dataset, Split, same_images, sampled, union
from data.listed import choose
from runtime import meshes, settings
from runtime.artifacts import summary
from runtime.log import bar
from runtime.workdirs import PLACES, TRAINED, Workdir, open_workdir, write_json
from training import augmentation, loop, memory, ranges, run, states
from training.sections import SETTINGS, TrainSettings
from training.states import Spec, TrainState

IMPORT_OPTIONS = ("checkpoint", "class_stride")  # settings of config.model that only evaluation.trained_models reads
AT_ONCE = 32
"""Number of models held at the same time, where more are trained than fit."""
Key = tuple[str, int]
"""(training, seed) of a model."""
Model = tuple[nnx.GraphDef, TrainState]
"""A trained network, as `training.loop.read_back` returns it."""
JSD_WEIGHT = 12.0
"""Weight of the consistency loss of `NAME+jsd` (Hendrycks et al., AugMix, 2020)."""
STUDY_FREE = (  # settings that choose results but do not change them: runs of one workdir may differ in them
    *PLACES,
    *("seed", "study", "train.corruption", "eval.corruptions", "eval.severity", "eval.batch_size", "eval.adapt"),
    *("eval.enhance", "eval.reference", "eval.reference_mismatch", "eval.pseudo_count", "eval.temperature"),
    *("eval.ensemble", "eval.images", "calibrate", "msd", "search", "adain", "adapt"),
    *(f"model.{key}" for key in IMPORT_OPTIONS),
)


def load_data(
    config: ConfigDict, mesh: Mesh, mixed: bool = False, placed: Collection[str] = ("train", "test"), listed: str = ""
) -> tuple[Dataset, Split, Split]:
    """Loads (dataset, train split, test split), uint8, on the mesh where they fit (`memory.place_splits`).

    With `mixed` the training images of config.train.mix_in are among them, as for training. Only the splits `placed`
    leave the host. The file `listed` (`data.listed`) names the test images to keep; "" keeps all.
    """
    dataset = load_dataset(config, mixed)
    if listed:
        dataset = choose(dataset, listed)
        hosts.check_dataset(dataset)
    return dataset, *memory.place_splits(dataset, config.dataset.placement, mesh, placed)


def load_dataset(config: ConfigDict, mixed: bool = False) -> Dataset:
    """Loads the dataset of `load_data` and leaves it on the host.

    Raises ProcessError where processes of one run have other data.
    """
    optional = ("data_dir", "train_size", "train_limit", "test_limit", "turn")  # "", 0 and False mean the default
    given = {k: v for k, v in config.dataset.items() if k != "placement" and (k not in optional or v)}
    if given["name"] not in data.of_files():
        given.pop("turn", None)  # it is for the folders of config.frost and config.bank
    dataset = sampled(data.load(**given))
    if mixed and config.train.mix_in.name:
        try:
            second = sampled(data.load(**given | {k: v for k, v in config.train.mix_in.items() if v}))
            dataset = union(dataset, second)
        except (FileNotFoundError, ValueError) as error:
            raise type(error)(f"config.train.mix_in: {error}") from None
    if config.get("ranges"):
        ranges.check_image_shape(config.ranges, dataset.image_shape)
    hosts.check_dataset(dataset)
    return dataset


def load_for_training(config: ConfigDict, mesh: Mesh, workdir: Workdir) -> tuple[Dataset, Split, Split]:
    """Loads data as `load_data` for a run in a workdir, with the images of config.train.mix_in.

    The images are recorded in data.json of the workdir; a run that began with other training images is refused
    (WorkdirError).
    """
    dataset, *splits = load_data(config, mesh, mixed=True)
    record = {"name": dataset.name, "class_names": list(dataset.class_names), **dataset.provenance}
    if workdir.exists("data.json"):
        before, now = other_images(workdir.read_json("data.json"), record)
        settings.check_equal(before, now, f"{workdir} was trained on other images")
    workdir.write_json("data.json", record)
    return dataset, *splits


def other_images(stored: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compares two records of training data; returns the digests of training images that differ, stored and now."""
    differ = {}
    for name in ("first", "mixed_in"):
        before, after = (
            (record if name == "first" else record.get(name, {})).get("train", {}) for record in (stored, now)
        )
        known = "sha256" in before or "sample" in before  # earlier versions recorded no sample
        if known and not same_images(before, after):
            differ[name] = [split.get("sha256", split.get("sample", {})) for split in (before, after)]
    return {name: pair[0] for name, pair in differ.items()}, {name: pair[1] for name, pair in differ.items()}


def model_config(config: ConfigDict, corruption: str, seed: int, devices: int = 1) -> ConfigDict:
    """Extracts from a study's config the settings that determine one of its models.

    `corruption` is the model's augmentation (`augmentation.members`); its batches are split over `devices` devices.

    Raises:
      ValueError: an unknown corruption or scheme, or another setting of BatchNorm.
    """
    network = {
        key: value
        for key, value in config.model.to_dict().items()
        if key not in IMPORT_OPTIONS and (value or key not in states.OF_THE_NETWORK)
    }
    if config.train.reading == "code" and not config.model.get("checkpoint"):
        network = states.RELEASED | network  # settings of the config win
    parts = {"dataset": config.dataset.to_dict(), "model": network, "train": config.train.to_dict(), "seed": seed}
    model = ConfigDict(settings.recorded(parts))
    if config.get("imports"):
        model.imports = config.imports  # so that loading the model can resolve its corruption
    model.train.corruption = augmentation.canonical(corruption)
    model.train.batch_norm = augmentation.batch_norm(model.train.batch_norm, devices)
    if model.train.scheme:
        name = corruptions.augment.canonical(model.train.scheme)  # for a file, the name contains its digest
        if corruptions.augment.is_stored(model.train.scheme) and name != model.train.scheme:
            model.train.transforms = os.path.abspath(model.train.scheme.partition("=")[2])
        model.train.scheme = name
    options = model.train.corruption_options.to_dict()
    members = augmentation.members(corruption)
    model.train.corruption_options = {name: options[name] for name in members if name in options}
    return model


def with_scheme(config: ConfigDict, training: str) -> ConfigDict:
    """Copies a config of a study and sets its training to a scheme or `standard`."""
    changed = ConfigDict(config.to_dict())
    changed.train.scheme = "" if training == augmentation.STANDARD else training.removesuffix(augmentation.JSD)
    changed.train.jsd_weight = JSD_WEIGHT if training.endswith(augmentation.JSD) else 0.0
    return changed


def finetuned_config(config: ConfigDict, standard: ConfigDict, corruption: str, devices: int = 1) -> ConfigDict:
    """Makes the `model_config` of a model that starts from the standard model of the config `standard`."""
    model = model_config(config, corruption, standard.seed, devices)
    model.train.update(config.study.finetune)
    model.train.batch_norm = augmentation.batch_norm(model.train.batch_norm, devices)
    model.start = {"train": standard.train.to_dict()}  # a different base model must change the config
    return model


def is_finetuned(config: ConfigDict, training: str) -> bool:
    """Returns True if the models of a training start from the standard model of their seed."""
    return bool(config.train.init_from) and training != augmentation.STANDARD


def batch_size(config: ConfigDict, training: str) -> int:
    """Returns the images in a step of the models of a training."""
    own = config.study.finetune if is_finetuned(config, training) else {}
    return own.get("batch_size", config.train.batch_size)


def name_of(train: TrainSettings) -> str:
    """Names a training: `standard`, a corruption, a mixture, or a scheme.

    `+jsd` stands for the consistency loss of a scheme; a scheme and a corruption used together are joined by `+`.
    `+stability` is stability training, `+mixup` mixup, `+frozen` a training of only the last layer, `+train=clahe`
    enhanced training images.
    """
    parts = [train.corruption]
    if train.scheme:
        scheme = corruptions.augment.canonical(train.scheme) + (augmentation.JSD if train.jsd_weight else "")
        parts = [scheme, *(name for name in parts if name != augmentation.STANDARD)]
    marks = {"stability": train.stability_weight, "mixup": train.mixup, "frozen": train.frozen}
    marks[f"{TRAINED}{train.enhance}"] = train.enhance
    return "+".join([*parts, *(mark for mark, given in marks.items() if given)])


def model_dir(workdir: str | os.PathLike, name: str, seed: int) -> pathlib.Path:
    """Names the folder of a model in the workdir of its study; `name` as `augmentation.canonical_training` spells it."""
    return pathlib.Path(workdir) / "models" / name.replace("/", ".") / f"seed{seed}"


def write_timing(config: ConfigDict, workdir: pathlib.Path, keys: Iterable[tuple[str, int]]) -> None:
    """Writes timing.json, {model|seed: seconds of training} of finished models from their metrics."""
    seconds = {}
    for model, seed in keys:
        path = model_dir(workdir, model, seed) / "metrics.jsonl"
        seconds[f"{model}|{seed}"] = round(run.training_seconds(path, batch_size(config, model)), 1)
    write_json(workdir / "timing.json", {"training_seconds": seconds})


def comment(config: ConfigDict, record: Mapping[str, Any], *more: str) -> str:
    """Writes the line of a table's origin: data, network, epochs, `more`, device and revision of `provenance`."""
    head = (config.dataset.name, config.model.name, f"{config.train.epochs} epochs", *more, summary(record))
    return ", ".join(head)


def refuse_checkpoint(config: ConfigDict) -> None:
    """Raises ValueError where config.model.checkpoint names a file: no training starts from it."""
    if config.model.get("checkpoint"):
        raise ValueError(
            "config.model.checkpoint is for eval.py, tools.calibrate and tools.msd, found it in training; to train "
            "from these weights give their file as config.train.init_from"
        )


def refuse_unnamed(config: ConfigDict) -> None:
    """Raises ValueError for stability training, mixup, frozen weights and enhancements: no model of a study is named so.

    The same holds in study.finetune for other corruptions and schemes than the study names.
    """
    unnamed = ("enhance", "stability_weight", "stability_noise", "mixup", "frozen")
    of_start = ("corruption", "corruption_options", "scheme", "transforms", "jsd_weight", "init_from")
    for section, train, keys in (
        ("train", config.train, unnamed),
        ("study.finetune", config.study.finetune, (*unnamed, *of_start)),
    ):
        for key in keys:
            plain = SETTINGS[f"train.{key}"].default
            if train.get(key, plain) != plain:
                raise ValueError(
                    f"expected config.{section}.{key} {plain!r} in a study, found {train[key]!r}; train.py trains a "
                    "model with it, projects.structural.enhancement_study with config.study.enhancements of train=NAME"
                )


@dataclasses.dataclass(frozen=True, eq=False)
class Trainings:
    """The models of a study, one for each training and seed, and their training images.

    Raises:
      ValueError: settings of a single training run.
    """

    config: ConfigDict  # config of the study
    # Augmentations (`augmentation.members`) or schemes, `standard` among them where others start from it.
    trainings: Sequence[str]
    seeds: Sequence[int]  # seeds of the models of each training
    workdir: str | os.PathLike  # folder of the study
    dataset: Dataset  # gives the number of classes
    split: Split  # training images, replicated over `mesh`
    mesh: Mesh  # with one row, see `meshes.study_mesh`

    def __post_init__(self):
        """Refuses settings of a single training run."""
        refuse_checkpoint(self.config)
        train = self.config.train
        if train.init_from not in ("", augmentation.STANDARD):
            raise ValueError(
                f"expected config.train.init_from '' or 'standard' in a study, found {train.init_from!r}; "
                "train.py starts from the model of any workdir"
            )
        if train.scheme:
            raise ValueError(
                f"expected config.train.scheme '' in a study, found {train.scheme!r}; tools.scheme_study trains "
                "with each of config.study.schemes, train.py with one scheme"
            )

    @functools.cached_property
    def _given(self) -> dict[str, str]:
        """{canonical name of a training: its name in the settings, which tells where stored transforms lie}."""
        return {augmentation.canonical_training(name): name for name in self.trainings}

    @functools.cached_property
    def _keys(self) -> list[Key]:
        return [(name, seed) for seed in self.seeds for name in self._given]

    def train(self) -> dict[Key, Model]:
        """Trains every model that is not finished and reads the others back: {(training, seed): (graphdef, state)}.

        config.study.parallel models train at once, on separate devices, with one compiled train step. With
        config.train.init_from `standard`, the other models start from the standard one of their seed and train with
        the settings of config.study.finetune, once all standard models are trained. Raises as `loop.train_jobs`.
        """
        models = {}
        for part in self.train_in_parts():
            models |= part
        return {key: models[key] for key in self._keys}

    def train_in_parts(self, at_most: int = 0) -> Iterator[dict[Key, Model]]:
        """Trains as `train` does and yields the models part by part, so that not all of them need be held at once.

        Models of a part share one compiled train step: models with the JSD loss, with float32 images and with uint8
        images are apart from each other. A part has at most `at_most` models, rounded up to whole rounds of
        models that train at once; 0 is no bound.
        """
        starts: dict[int, tuple[ConfigDict, TrainState]] = {}  # seed -> the standard model, where others start from it
        needs_starts = any(map(self._is_finetuned, self._keys))
        with bar("model", total=len(self._keys)) as progress:
            step = functools.partial(progress.update, 1)
            for part, rows in self._parts(at_most):
                jobs = [self._job(key, rows.shape["data"], starts) for key in part]
                trained = loop.train_jobs(
                    jobs, self.split, self.dataset.num_classes, mesh=rows, target=self.mesh, on_finish=step
                )
                models = dict(zip(part, trained))
                for name, seed in part:
                    if needs_starts and name == augmentation.STANDARD:
                        config = self._config((name, seed), rows.shape["data"])
                        starts[seed] = config, models[name, seed][1]
                yield models
                del models, trained  # free these models before the next group trains

    def planned(self) -> Iterator[tuple[dict[Key, ConfigDict], Mesh]]:
        """Yields the parts that `train` would train: {key: config} of models that share a program, and their mesh."""
        for part, rows in self._parts(0):
            yield {key: self._config_of(key, rows.shape["data"]) for key in part}, rows

    def _config_of(self, key: Key, devices: int, standard: ConfigDict | None = None) -> ConfigDict:
        """Makes the config of a model; `standard` is the config of the trained model that it starts from."""
        if not self._is_finetuned(key):
            return self._config(key, devices)
        name, seed = key
        standard = standard or self._config((augmentation.STANDARD, seed), devices)
        return finetuned_config(self.config, standard, name, devices)

    def _parts(self, at_most: int) -> Iterator[tuple[list[Key], Mesh]]:
        """Yields the keys of models that share a program, and the mesh they train on."""
        groups: dict[Any, list[Key]] = {}
        for key in self._keys:
            if not self._is_finetuned(key):
                recipe = self._config(key).train
                scheme = augmentation.scheme_of(recipe.scheme, recipe.transforms)
                kind = bool(recipe.jsd_weight), augmentation.stays_uint8(scheme, recipe.jsd_weight)
                groups.setdefault(kind, []).append(key)
        finetuned = list(filter(self._is_finetuned, self._keys))
        for group in filter(None, (*groups.values(), finetuned)):
            size = batch_size(self.config, group[0][0])
            rows = meshes.training_mesh(self.mesh, self.config.study.parallel, len(group), size)
            together = rows.shape["model"]
            length = -(-(at_most or len(group)) // together) * together
            for first in range(0, len(group), length):
                yield group[first : first + length], rows

    def _job(self, key: Key, devices: int, starts: Mapping[int, tuple[ConfigDict, TrainState]]) -> run.Job:
        name, seed = key
        standard, initial = starts[seed] if self._is_finetuned(key) else (None, None)
        config = self._config_of(key, devices, standard)
        folder = model_dir(self.workdir, name, seed)
        return run.Job(
            Spec.of(config),
            functools.partial(open_workdir, folder, config.to_dict(), free=PLACES),
            description=f"{name} seed {seed}",
            title=f"Model {self._keys.index(key) + 1} of {len(self._keys)}: {name}, seed {seed}.",
            initial=initial,
        )

    def _is_finetuned(self, key: Key) -> bool:
        return is_finetuned(self.config, key[0])

    def _config(self, key: Key, devices: int = 1) -> ConfigDict:
        """Makes the config of a model that starts from drawn parameters."""
        name, seed = key
        training = self._given[name]
        if augmentation.is_scheme(training):
            return model_config(with_scheme(self.config, training), augmentation.STANDARD, seed, devices)
        return model_config(self.config, training, seed, devices)
