"""A study: train what is missing, evaluate every model under every condition, keep all counts."""

import functools
import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict
from tqdm import tqdm

import data
from data.union import union
from training import augment, batch_norm, calibration, distributed, evaluation, imported, loop, stream
from training import mesh as meshes
from training.answers import Answers
from training.metrics import training_seconds as training_seconds_of
from training.workdir import open_workdir

FREE = (  # where files and images are does not determine a result
    "dataset.data_dir", "dataset.placement", "ranges", "train.transforms", "train.mix_in.data_dir",
)  # fmt: skip


def _bar(unit, items=None, total=None):
    hidden = not distributed.is_main()
    return tqdm(items, total=total, desc=f"{unit}s", unit=unit, dynamic_ncols=True, disable=hidden)


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
    calibration.check_image_shape(config.get("ranges"), dataset.image_shape)
    return dataset, *stream.place(dataset, config.dataset.placement, mesh, placed)


def model_config(config, corruption, seed, devices=1):
    """The part of a study's config that determines one of its models, whose batches are split over `devices`."""
    settings = {key: config[key].to_dict() for key in ("dataset", "model", "train")}
    for key in imported.OPTIONS:
        settings["model"].pop(key, None)
    one = ConfigDict(settings)
    one.seed = seed
    one.train.corruption = augment.canonical(corruption)
    one.train.batch_norm = batch_norm.canonical(one.train.batch_norm, devices)
    if one.train.scheme:
        name = augment.schemes.canonical(one.train.scheme)  # of a file it tells the content
        if augment.schemes.is_stored(one.train.scheme) and name != one.train.scheme:
            one.train.transforms = os.path.abspath(one.train.scheme.partition("=")[2])
        one.train.scheme = name
    options = one.train.corruption_options.to_dict()
    one.train.corruption_options = {name: options[name] for name in augment.members(corruption) if name in options}
    return one


def finetuned_config(config, standard, corruption, devices=1):
    """`model_config` of a model that starts from the study's standard model of config `standard`, with its seed."""
    one = model_config(config, corruption, standard.seed, devices)
    one.train.update(config.study.finetune)
    one.start = {"train": standard.train.to_dict()}  # another standard model makes another fine-tuned one
    return one


def model_dir(workdir, corruption, seed):
    return pathlib.Path(workdir) / "models" / augment.canonical(corruption).replace("/", ".") / f"seed{seed}"


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
    imported.refuse(config)
    if config.train.init_from not in ("", augment.STANDARD):
        raise ValueError(
            f"expected config.train.init_from '' or 'standard' in a study, found {config.train.init_from!r}; "
            "train.py starts from the model of any workdir"
        )
    if config.train.scheme:
        raise ValueError(
            f"expected config.train.scheme '' in a study, found {config.train.scheme!r}; train.py trains with schemes"
        )
    keys = [(augment.canonical(c), seed) for seed in seeds for c in trainings]
    finetuned = [key for key in keys if config.train.init_from and key[0] != augment.STANDARD]
    fresh = [key for key in keys if key not in finetuned]
    found, configs = {}, {}
    with _bar("model", total=len(keys)) as bar:
        for part in filter(None, (fresh, finetuned)):
            rows = meshes.training_mesh(mesh, config.study.parallel, len(part), config.train.batch_size)
            jobs = []
            for corruption, seed in part:
                if part is finetuned:
                    one = finetuned_config(config, configs[augment.STANDARD, seed], corruption, rows.shape["data"])
                else:
                    one = configs[corruption, seed] = model_config(config, corruption, seed, rows.shape["data"])
                directory = model_dir(workdir, corruption, seed)
                jobs.append(
                    loop.Job(
                        one,
                        functools.partial(open_workdir, directory, one.to_dict(), free=FREE),
                        description=f"{corruption} seed {seed}",
                        title=f"Model {keys.index((corruption, seed)) + 1} of {len(keys)}: {corruption}, seed {seed}.",
                        initial=found[augment.STANDARD, seed][1] if part is finetuned else None,
                    )
                )
            trained = loop.train_jobs(
                jobs, split, dataset.num_classes, mesh=rows, target=mesh, on_finish=functools.partial(bar.update, 1)
            )
            found |= dict(zip(part, trained))
    return {key: found[key] for key in keys}


def evaluate_models(config, models, found_conditions, workdir, split, mesh, prepare=None):
    """Evaluates what is missing; returns {condition: {(model, seed): bool [N]}}.

    Args:
      models: {(model, seed): (graphdef, state)}.
      found_conditions: list of `evaluation.Condition`.
      prepare: `(model, shown) -> model`, the model for a condition, from its images, an `evaluation.Shown`.
    """
    options = augment.static_options(config.train)
    answers = Answers(workdir, split.images.shape[0], {"seed": config.eval.seed, "options": options})
    results = {}
    for condition in _bar("condition", found_conditions):
        known = answers.read(condition)
        missing = [key for key in models if key not in known]
        if missing:
            shown = (split, condition, config.eval.seed, options.get(condition.corruption), config.eval.batch_size)
            chosen = {key: models[key] for key in missing}
            if prepare:
                images = evaluation.Shown(mesh, *shown)
                chosen = {key: prepare(model, images) for key, model in chosen.items()}
            known |= evaluation.answers(mesh, chosen, *shown)
            answers.write(condition, known)
        results[condition] = {key: known[key] for key in models}
    return results


def evaluate_stored(config, models, source, workdir, mesh):
    """Evaluates every model on a stored corrupted dataset, streamed from disk, each condition once.

    Args:
      models: {(model, seed): (graphdef, state)}.
      source: a `data.corrupted.CorruptedDataset`.
      workdir: directory of this dataset's answers.

    Returns:
      {condition: {(model, seed): bool [N]}}.
    """
    answers = Answers(workdir, source.number, {"source": dict(source.provenance)})
    results = {}
    for name, severity in _bar("condition", source.conditions()):
        condition = evaluation.Condition(name, str(severity))
        known = answers.read(condition)
        missing = [key for key in models if key not in known]
        if missing:
            parts = {key: [] for key in missing}
            for images, labels in source.batches(name, severity, config.eval.batch_size):
                images, labels = jnp.asarray(images), jnp.asarray(labels)
                for key in missing:
                    bits = evaluation.correctness(mesh, *models[key], images, labels, config.eval.batch_size)
                    parts[key].append(bits)
            known |= {key: np.concatenate(bits) for key, bits in parts.items()}
            answers.write(condition, known)
        results[condition] = {key: known[key] for key in models}
    return results


def training_seconds(config, workdir, keys):
    """{model|seed: seconds of training} of finished models, from their metrics."""
    return {
        f"{model}|{seed}": round(
            training_seconds_of(model_dir(workdir, model, seed) / "metrics.jsonl", config.train.batch_size), 1
        )
        for model, seed in keys
    }


def counts(results):
    """Rows (model, seed, corruption, severity, correct, total) of `counts.csv`."""
    return [
        (model, seed, condition.corruption, condition.label, int(bits.sum()), int(bits.size))
        for condition, by_model in results.items()
        for (model, seed), bits in by_model.items()
    ]


def enable_compilation_cache():
    """Compiled programs are kept between processes, unless the user configured JAX's cache otherwise.

    Small ones too, which JAX by itself compiles anew: a study runs some eighty, a few kB each.
    """
    if jax.config.jax_compilation_cache_dir is None:
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
        jax.config.update("jax_compilation_cache_dir", str(cache / "jax-corruptions" / "xla"))
        if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
