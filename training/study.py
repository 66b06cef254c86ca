"""A study: train what is missing, evaluate every model under every condition, keep all counts."""

import functools
import os
import pathlib

from ml_collections import ConfigDict

import data
from data.union import union
from runtime import distributed, meshes, settings
from runtime.progress import bar
from runtime.workdirs import open_workdir, read_json, write_json
from training import augmentation, batch_norm, loop, ranges, stream
from training.metrics import training_seconds as training_seconds_of

FREE = (  # where files and images are does not determine a result
    "dataset.data_dir", "dataset.placement", "ranges", "train.transforms", "train.mix_in.data_dir",
)  # fmt: skip


IMPORT_OPTIONS = ("checkpoint", "class_stride")  # settings of config.model that only concern evaluation.imported


def load_data(config, mesh, mixed=False, placed=("train", "test")):
    """(dataset, train split, test split) with uint8 images, replicated over the mesh where they fit (`stream.place`).

    Args:
      mixed: with the training images of config.train.mix_in too, as for training.
      placed: the splits that are needed; the others stay where they are.
    """
    optional = ("data_dir", "train_size", "train_limit", "test_limit")  # "" and 0 stand for the default
    given = {k: v for k, v in config.dataset.items() if k != "placement" and (k not in optional or v)}
    dataset = data.load(**given)
    if mixed and config.train.mix_in.name:
        dataset = union(dataset, data.load(**given | {k: v for k, v in config.train.mix_in.items() if v}))
    ranges.check_image_shape(config.get("ranges"), dataset.image_shape)
    return dataset, *stream.place(dataset, config.dataset.placement, mesh, placed)


def model_config(config, corruption, seed, devices=1):
    """The part of a study's config that determines one of its models, whose batches are split over `devices`."""
    parts = {key: config[key].to_dict() for key in ("dataset", "model", "train")}
    for key in IMPORT_OPTIONS:
        parts["model"].pop(key, None)
    one = ConfigDict(parts)
    one.seed = seed
    one.train.corruption = augmentation.canonical(corruption)
    one.train.batch_norm = batch_norm.canonical(one.train.batch_norm, devices)
    if one.train.scheme:
        name = augmentation.schemes.canonical(one.train.scheme)  # of a file it tells the content
        if augmentation.schemes.is_stored(one.train.scheme) and name != one.train.scheme:
            one.train.transforms = os.path.abspath(one.train.scheme.partition("=")[2])
        one.train.scheme = name
    options = one.train.corruption_options.to_dict()
    one.train.corruption_options = {name: options[name] for name in augmentation.members(corruption) if name in options}
    return one


def finetuned_config(config, standard, corruption, devices=1):
    """`model_config` of a model that starts from the study's standard model of config `standard`, with its seed."""
    one = model_config(config, corruption, standard.seed, devices)
    one.train.update(config.study.finetune)
    one.start = {"train": standard.train.to_dict()}  # another standard model makes another fine-tuned one
    return one


def model_dir(workdir, corruption, seed):
    return pathlib.Path(workdir) / "models" / augmentation.canonical(corruption).replace("/", ".") / f"seed{seed}"


def train_models(config, trainings, seeds, workdir, dataset, split, mesh):
    """Trains every (corruption, seed) that is not finished; returns {(corruption, seed): (graphdef, state)}.

    Finished models are read back. config.study.parallel of them train at once, on devices of their own, with one
    compiled train step. With config.train.init_from `standard`, the other models start from the standard one of their
    seed and train with the settings of config.study.finetune, once all standard models are there.

    Args:
      trainings: augmentations (see `augment.members`), `standard` among them where others start from it.
      split: data.Split replicated over `mesh`.
      mesh: with one row, see `meshes.study_mesh`.
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
    found, configs = {}, {}
    with bar("model", total=len(keys)) as progress:
        for part in filter(None, (fresh, finetuned)):
            rows = meshes.training_mesh(mesh, config.study.parallel, len(part), config.train.batch_size)
            jobs = []
            for corruption, seed in part:
                if part is finetuned:
                    one = finetuned_config(config, configs[augmentation.STANDARD, seed], corruption, rows.shape["data"])
                else:
                    one = configs[corruption, seed] = model_config(config, corruption, seed, rows.shape["data"])
                directory = model_dir(workdir, corruption, seed)
                jobs.append(
                    loop.Job(
                        one,
                        functools.partial(open_workdir, directory, one.to_dict(), free=FREE),
                        description=f"{corruption} seed {seed}",
                        title=f"Model {keys.index((corruption, seed)) + 1} of {len(keys)}: {corruption}, seed {seed}.",
                        initial=found[augmentation.STANDARD, seed][1] if part is finetuned else None,
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
            found |= dict(zip(part, trained))
    return {key: found[key] for key in keys}


def training_seconds(config, workdir, keys):
    """{model|seed: seconds of training} of finished models, from their metrics."""
    return {
        f"{model}|{seed}": round(
            training_seconds_of(model_dir(workdir, model, seed) / "metrics.jsonl", config.train.batch_size), 1
        )
        for model, seed in keys
    }


def refuse_checkpoint(config):
    """Raises ValueError when a training run is asked to start from a checkpoint."""
    if config.model.get("checkpoint"):
        raise ValueError(
            "config.model.checkpoint is for eval.py, tools.calibrate and tools.msd, found it in training; to train "
            "from these weights, evaluate them once with eval.py and give its workdir as config.train.init_from"
        )


def record_data(path, dataset):
    """Writes what a model is trained on to data.json; refuses to go on with other training images.

    Raises:
      WorkdirError: the run was started with other images.
    """
    found = {"name": dataset.name, **dataset.provenance}
    stored = path / "data.json"
    before = distributed.from_main(lambda: read_json(stored) if stored.exists() else None)
    if before:
        settings.check_equal(_digests(before), _digests(found), f"{path} was trained on other images")
    write_json(stored, found)


def _digests(found):
    both = (("first", found), ("mixed_in", found["mixed_in"]))
    return {name: one.get("train", {}).get("sha256", {}) for name, one in both}
