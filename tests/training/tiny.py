"""A study small enough for tests: few images of the embedded dataset, the small network."""

import contextlib
import shutil

import jax
import numpy as np

from configs import default
from runtime import meshes, workdirs
from training import batches, states, study
from training.batches import Plan
from training.checkpoint import Checkpoints, digest
from training.sections import TrainSettings

KEYS = batches.Keys(*(jax.random.key(k) for k in (6, 7, 8, 9)))


def config(**train):
    """Default config shrunk to seconds; keyword arguments override config.train."""
    tiny = default.get_config()
    tiny.dataset.train_limit = 160
    tiny.dataset.test_limit = 70
    tiny.train.epochs = 2
    tiny.train.batch_size = 32
    tiny.train.learning_rate = 0.05
    tiny.train.milestones = (1,)
    tiny.eval.batch_size = 32
    tiny.train.update(train)
    return tiny


def recipe(**train):
    """The settings of such a training."""
    return TrainSettings.of(config(**train).train)


def block(split, begin=0, order=None, keys=KEYS, **train):
    """(plan, order, images, labels) of the block of such a training that begins at a step."""
    plan = Plan(recipe(**train), split.images.shape)
    order = batches.epoch_order(jax.random.key(5), plan.views) if order is None else order
    images, labels = batches.block(plan, split, order, begin, keys, meshes.data_mesh(plan.batch_size))
    return plan, np.asarray(order), np.asarray(images), np.asarray(labels)


def untrained_workdir(folder, given, classes=10):
    """A workdir as train.py leaves it, of a network that saw no training: its first state is its
    last."""
    with workdirs.open_workdir(folder, study.model_config(given, "standard", given.seed).to_dict()):
        finish(folder, given, classes=classes)
    return folder


def train_again(folder, given):
    """Gives such a workdir another model of the same settings, as training on other hardware may."""
    finish(folder, given, state_of_seed=1)


def finish(folder, given, state_of_seed=0, classes=10):
    """Gives a workdir its only checkpoint, and the mark of its end."""
    single = study.model_config(given, "standard", state_of_seed)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    state = states.initial_state(*states.build_model(single, classes, 32)[1:], states.make_optimizer(single.train, 1))
    with contextlib.closing(Checkpoints(folder / "checkpoints")) as checkpoints:
        checkpoints.save(state)
    workdirs.write_final(folder, step=0, digest=digest(state), num_classes=classes)
