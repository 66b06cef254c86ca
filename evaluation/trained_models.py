"""Trained models of a workdir, for what comes after training: evaluation, calibration, distances, fine-tuning."""

import contextlib
import pathlib

import jax
import jax.numpy as jnp
from ml_collections import ConfigDict

from evaluation import imported
from runtime import distributed
from runtime.workdirs import lock, read_for_all
from training import augmentation, loop, states, study


@contextlib.contextmanager
def open_workdir(workdir, config):
    """Locks a workdir that holds models; yields the config they were trained with, data being where `config` says.

    Images are placed as `config` says too: the device may be another than that of training.

    With config.model.checkpoint the workdir is first made of those weights (`evaluation.imported`).

    Raises:
      FileNotFoundError: no such directory.
    """
    if config.model.checkpoint:
        one = study.model_config(config, augmentation.STANDARD, config.seed)
        imported.prepare(one, config.model, workdir, free=study.FREE)
    if not distributed.from_main(workdir.is_dir):
        raise FileNotFoundError(f"expected a workdir with trained models, found no directory {workdir}")
    with lock(workdir):
        own = ConfigDict(read_for_all(workdir / "config.json"))
        if config.dataset.data_dir:
            own.dataset.data_dir = config.dataset.data_dir
        own.dataset.placement = config.dataset.placement
        yield own


def read_models(workdir, num_classes, image_size, mesh):
    """{(name, seed): (graphdef, state)} of every finished model in a workdir of train.py or overlap.py.

    The name is what the model was trained with: `standard`, a corruption, a mixture, or an augmentation scheme (with
    `+jsd` for its consistency loss); `+bn=SCHEME` when its BatchNorm statistics were adapted by tools.adapt.
    """
    workdir = pathlib.Path(workdir)
    directories = [workdir] if loop.finished(workdir) else _finished_models(workdir)
    if not directories:
        raise FileNotFoundError(f"expected a workdir with trained models, found none in {workdir}; run train.py first")
    found = {}
    for directory in directories:
        imported.check_classes(directory, num_classes)
        one = ConfigDict(read_for_all(directory / "config.json"))
        found[model_name(one), one.seed] = loop.read_back(one, image_size, num_classes, directory, mesh=mesh)
    return found


def _finished_models(workdir):
    found = distributed.from_main(lambda: sorted(str(p.parent) for p in workdir.glob("models/*/*/final.json")))
    return [pathlib.Path(path) for path in found]


def model_name(config):
    """What a model's config says it was trained with."""
    scheme = config.train.get("scheme", "")
    name = config.train.corruption
    if scheme:
        name = augmentation.schemes.canonical(scheme) + ("+jsd" if config.train.jsd_weight else "")
        name += "" if config.train.corruption == augmentation.STANDARD else f"+{config.train.corruption}"
    return name + (f"+bn={config.adapt.scheme or augmentation.STANDARD}" if "adapt" in config else "")


def read_start(workdir, config, dataset, mesh):
    """TrainState of the only, or the standard, model in a workdir, for a run of `config` to start from.

    Raises:
      ValueError: the model there is of another architecture, or which one is meant is not clear.
    """
    models = read_models(workdir, dataset.num_classes, dataset.image_shape[0], mesh)
    standard = [key for key in models if key[0] == augmentation.STANDARD]
    chosen = list(models) if len(models) == 1 else standard
    if len(chosen) != 1:
        raise ValueError(f"expected one model or one standard model in {workdir}, found {sorted(models)}")
    graphdef, state = models[chosen[0]]
    wanted, params, _ = states.build_model(config, dataset.num_classes, dataset.image_shape[0])
    if wanted != graphdef or jax.tree.map(jnp.shape, params) != jax.tree.map(jnp.shape, state.params):
        raise ValueError(f"expected a {config.model.name} as config.model says in {workdir}, found another network")
    return state
