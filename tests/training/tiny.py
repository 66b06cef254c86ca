"""A study small enough for tests: few images of the embedded dataset, the small network; and train.py as a process."""

import contextlib
import json
import os
import shutil
import sys
import time

import jax
import numpy as np

from runtime import meshes, workdirs
from tests import processes
from tests.fixtures import small
from training import batches, states, study
from training.batches import Plan
from training.checkpoints import Checkpoints, digest
from training.sections import TrainSettings

KEYS = batches.Keys(*(jax.random.key(k) for k in (6, 7, 8, 9)))


class QuickRobustness:
    """In place of `tools.calibrate.Robustness`: every range is the same."""

    clean = 0.9

    def __init__(self, *args, **options):
        pass

    def calibrated(self, targets):
        return {"range": [2.0, 4.0]}


def config(**train):
    """A config shrunk to seconds; keyword arguments override config.train."""
    tiny = small.get_config()
    tiny.dataset.update({"train_limit": 160, "test_limit": 70})
    tiny.eval.batch_size = 32
    tiny.train.update({"epochs": 2, "batch_size": 32, "learning_rate": 0.05, "milestones": (1,)} | train)
    return tiny


def recipe(**train):
    """The settings of such a training."""
    return TrainSettings.of(config(**train).train)


def block(split, begin=0, order=None, keys=KEYS, **train):
    """(plan, order, images, labels) of the block of such a training that begins at a step."""
    plan = Plan(recipe(**train), split.images.shape)
    order = batches.epoch_order(jax.random.key(5), plan.images_per_epoch) if order is None else order
    images, labels = batches.block(plan, split, order, begin, keys, meshes.data_mesh(plan.batch_size))
    return plan, np.asarray(order), np.asarray(images), np.asarray(labels)


def untrained_workdir(folder, given, classes=10):
    """A workdir as train.py leaves it, of a network that saw no training: its first state is its last."""
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


def metrics(workdir, *names):
    """Values of these names in each line of metrics.jsonl."""
    lines = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    return [tuple(line[name] for name in names) for line in lines]


COMMAND = [sys.executable, "train.py", "--config=tests/fixtures/small.py:noc/border"]
COMMAND += ["--config.dataset.train_limit=160", "--config.dataset.test_limit=70", "--config.train.batch_size=32"]
COMMAND += ["--config.train.epochs=6", "--config.eval.batch_size=70"]


def start(workdir, *arguments, **environment):
    """The process, whose streams are one; environment variables that are None are removed."""
    own = without_none(os.environ | environment)
    return processes.Process([*COMMAND, *arguments, f"--workdir={workdir}"], env=own, together=True)


def end(process):
    """Waits for a run that must succeed; returns all that it printed."""
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 0, output
    return output


def wait_for(process, condition):
    """Waits until a condition holds, while the process runs."""
    while process.poll() is None and not condition():
        time.sleep(0.01)


def without_none(environment):
    return {name: value for name, value in environment.items() if value is not None}


def checkpoints_begun(workdir):
    """Highest number of epochs whose checkpoint exists, finished or not (5 steps an epoch)."""
    names = [path.name.split(".")[0] for path in workdir.glob("checkpoints/*")]
    return max((int(name) for name in names if name.isdigit()), default=0) // 5
