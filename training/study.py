"""A study: train what is missing, evaluate every model under every condition, keep all counts."""

import functools
import os
import pathlib
from collections.abc import Collection, Iterable, Sequence

from flax import nnx
from jax.sharding import Mesh
from ml_collections import ConfigDict

import corruptions
import data
from data.dataset import Dataset, Split
from data.union import union
from runtime import distributed, meshes, settings
from runtime.progress import bar
from runtime.workdirs import open_workdir, read_json, write_json
from training import augmentation, batch_norm, loop, metrics, ranges, states, stream
from training.states import TrainState

FREE = (  # where files and images are does not determine a result
    "dataset.data_dir",
    "dataset.placement",
    "ranges",
    "frost",  # its digest is among the options of the corruption
    "train.transforms",
    "train.mix_in.data_dir",
)
IMPORT_OPTIONS = ("checkpoint", "class_stride")  # settings of config.model that only concern evaluation.imported


def load_data(
    config: ConfigDict, mesh: Mesh, mixed: bool = False, placed: Collection[str] = ("train", "test")
) -> tuple[Dataset, Split, Split]:
    """Loads (dataset, train split, test split), uint8, on the mesh where they fit.

    Args:
      config: see configs/default.py.
      mesh: what fits is replicated over it, see `stream.place_splits`.
      mixed: with the training images of config.train.mix_in too, as for training.
      placed: the splits that are needed; the others stay where they are.
    """
    optional = ("data_dir", "train_size", "train_limit", "test_limit")  # "" and 0 stand for the default
    given = {k: v for k, v in config.dataset.items() if k != "placement" and (k not in optional or v)}
    dataset = data.load(**given)
    if mixed and config.train.mix_in.name:
        dataset = union(dataset, data.load(**given | {k: v for k, v in config.train.mix_in.items() if v}))
    ranges.check_image_shape(config.get("ranges"), dataset.image_shape)
    return dataset, *stream.place_splits(dataset, config.dataset.placement, mesh, placed)


def model_config(config: ConfigDict, corruption: str, seed: int, devices: int = 1) -> ConfigDict:
    """Extracts from a study's config what determines one of its models.

    Args:
      config: of the study.
      corruption: the model's augmentation, see `augmentation.members`.
      seed: of the model.
      devices: over which its batches are split.

    Raises:
      ValueError: an unknown corruption or scheme, or another setting of BatchNorm.
    """
    parts = {key: config[key].to_dict() for key in ("dataset", "model", "train")}
    for key in IMPORT_OPTIONS:
        parts["model"].pop(key, None)
    parts["model"] = {key: value for key, value in parts["model"].items() if key not in states.OF_THE_NETWORK or value}
    if config.train.reading == "code" and not config.model.get("checkpoint"):
        parts["model"] = states.RELEASED | parts["model"]  # what is given wins
    model = ConfigDict(parts)
    model.seed = seed
    model.train.corruption = augmentation.canonical(corruption)
    model.train.batch_norm = batch_norm.canonical(model.train.batch_norm, devices)
    if model.train.scheme:
        name = corruptions.augment.canonical(model.train.scheme)  # of a file it tells the content
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
      config: of the study.
      standard: `model_config` of its standard model.
      corruption, devices: as of `model_config`.
    """
    model = model_config(config, corruption, standard.seed, devices)
    model.train.update(config.study.finetune)
    model.start = {"train": standard.train.to_dict()}  # another standard model, another fine-tuned one
    return model


def model_dir(workdir: str | os.PathLike, corruption: str, seed: int) -> pathlib.Path:
    """Names the folder of a model within the workdir of its study."""
    return pathlib.Path(workdir) / "models" / augmentation.canonical(corruption).replace("/", ".") / f"seed{seed}"


def train_models(
    config: ConfigDict,
    trainings: Sequence[str],
    seeds: Sequence[int],
    workdir: str | os.PathLike,
    dataset: Dataset,
    split: Split,
    mesh: Mesh,
) -> dict[tuple[str, int], tuple[nnx.GraphDef, TrainState]]:
    """Trains every (corruption, seed) that is not finished; reads the others back.

    config.study.parallel models train at once, on devices of their own, with one compiled train
    step. With config.train.init_from `standard`, the other models start from the standard one of
    their seed and train with the settings of config.study.finetune, once all standard models are
    there.

    Args:
      config: of the study.
      trainings: augmentations (see `augmentation.members`), `standard` among them where others
        start from it.
      seeds: of the models of each augmentation.
      workdir: of the study.
      dataset: gives the number of classes.
      split: what to train on, replicated over `mesh`.
      mesh: with one row, see `meshes.study_mesh`.

    Returns:
      {(corruption, seed): (graphdef, state)}.

    Raises:
      ValueError: settings of a single training run.
      NonFiniteLossError, SystemExit: as `loop.train_jobs`.
    """
    refuse_checkpoint(config)
    if config.train.init_from not in ("", augmentation.STANDARD):
        raise ValueError(
            f"expected config.train.init_from '' or 'standard' in a study, found {config.train.init_from!r}; "
            "train.py starts from the model of any workdir"
        )
    if config.train.scheme:
        raise ValueError(
            f"expected config.train.scheme '' in a study, found {config.train.scheme!r}; train.py trains with schemes"
        )
    keys = [(augmentation.canonical(c), seed) for seed in seeds for c in trainings]
    finetuned = [key for key in keys if config.train.init_from and key[0] != augmentation.STANDARD]
    fresh = [key for key in keys if key not in finetuned]
    models, configs = {}, {}
    with bar("model", total=len(keys)) as progress:
        for part in filter(None, (fresh, finetuned)):
            rows = meshes.training_mesh(mesh, config.study.parallel, len(part), config.train.batch_size)
            jobs = []
            for corruption, seed in part:
                devices = rows.shape["data"]
                if part is finetuned:
                    job_config = finetuned_config(config, configs[augmentation.STANDARD, seed], corruption, devices)
                else:
                    job_config = configs[corruption, seed] = model_config(config, corruption, seed, devices)
                directory = model_dir(workdir, corruption, seed)
                jobs.append(
                    loop.Job(
                        job_config,
                        functools.partial(open_workdir, directory, job_config.to_dict(), free=FREE),
                        description=f"{corruption} seed {seed}",
                        title=f"Model {keys.index((corruption, seed)) + 1} of {len(keys)}: {corruption}, seed {seed}.",
                        initial=models[augmentation.STANDARD, seed][1] if part is finetuned else None,
                    )
                )
            trained = loop.train_jobs(
                jobs,
                split,
                dataset.num_classes,
                mesh=rows,
                target=mesh,
                on_finish=functools.partial(progress.update, 1),
            )
            models |= dict(zip(part, trained))
    return {key: models[key] for key in keys}


def training_seconds(
    config: ConfigDict, workdir: str | os.PathLike, keys: Iterable[tuple[str, int]]
) -> dict[str, float]:
    """Reads {model|seed: seconds of training} of finished models from their metrics."""
    return {
        f"{model}|{seed}": round(
            metrics.training_seconds(model_dir(workdir, model, seed) / "metrics.jsonl", config.train.batch_size), 1
        )
        for model, seed in keys
    }


def refuse_checkpoint(config: ConfigDict) -> None:
    """Refuses to start a training run from a checkpoint file.

    Raises:
      ValueError: config.model.checkpoint names one.
    """
    if config.model.get("checkpoint"):
        raise ValueError(
            "config.model.checkpoint is for eval.py, tools.calibrate and tools.msd, found it in training; to train "
            "from these weights, evaluate them once with eval.py and give its workdir as config.train.init_from"
        )


def record_data(path: pathlib.Path, dataset: Dataset) -> None:
    """Writes what a model is trained on to data.json; refuses to go on with other training images.

    Args:
      path: workdir of the run.
      dataset: what it is trained on.

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
