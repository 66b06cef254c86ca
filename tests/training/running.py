"""train.py as a process of its own, on a study small enough for tests."""

import os
import sys

from tests import processes

COMMAND = [sys.executable, "train.py", "--config=configs/aug.py:noc/border"] + [
    f"--config.{setting}"
    for setting in (
        "dataset.train_limit=160",
        "dataset.test_limit=70",
        "train.batch_size=32",
        "train.epochs=6",
        "eval.batch_size=70",
    )
]


def start(workdir, *arguments, **environment):
    """The process, whose streams are one; environment variables that are None are removed."""
    own = without_none(os.environ | environment)
    return processes.Process([*COMMAND, *arguments, f"--workdir={workdir}"], env=own, together=True)


def without_none(environment):
    return {name: value for name, value in environment.items() if value is not None}


def checkpoints_begun(workdir):
    """Highest number of epochs whose checkpoint exists, finished or not (5 steps an epoch)."""
    folder = workdir / "checkpoints"
    found = (
        [int(p.name.split(".")[0]) for p in folder.iterdir() if p.name.split(".")[0].isdigit()]
        if folder.exists()
        else []
    )
    return max(found, default=0) // 5
