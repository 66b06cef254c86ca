"""A study small enough for tests: few images of the embedded dataset, the small network."""

import contextlib

from configs import default
from runtime import workdirs
from training import states, study
from training.checkpoint import Checkpoints, digest


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


def untrained_workdir(folder, given):
    """A workdir as train.py leaves it, of a network that saw no training: its first state is its
    last."""
    one = study.model_config(given, "standard", 0)
    params = states.build_model(one, 10, 32)[1:]
    with workdirs.open_workdir(folder, one.to_dict()), contextlib.closing(Checkpoints(folder / "checkpoints")) as files:
        state = states.initial_state(*params, states.make_optimizer(one.train, 1))
        files.save(state)
        workdirs.write_json(folder / "final.json", {"step": 0, "digest": digest(state)})
    return folder
