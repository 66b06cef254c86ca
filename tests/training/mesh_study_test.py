"""A whole study on eight devices, killed in the middle and continued: one device's parameters,
counts and matrix.

Bit for bit: each model trains on a device of its own (25 images cannot be split over the two
devices of a row), and XLA's thread pool, whose size decides in which order sums are taken on a CPU,
is as large for one device as for eight.
"""

import json
import os
import signal
import sys
import time

import numpy as np
import pytest

from analysis.overlap.measured import read_overlap
from tests import processes
from tests.analysis.made_up import read_counts

SMALL = {
    "dataset.train_limit": 600,
    "dataset.test_limit": 200,
    "train.epochs": 10,
    "train.batch_size": 25,
    "train.learning_rate": 0.05,
    "train.checkpoint_epochs": 1,
    "eval.batch_size": 100,
    "study.corruptions": ("noc/border", "noc/hue"),
}
# Of ImageNet's size, drawn.
LARGE = SMALL | {
    "dataset.image_size": 224,
    "dataset.train_limit": 300,
    "dataset.test_limit": 100,
    "train.epochs": 8,
}


def start(workdir, settings, devices, parallel):
    """The study as a user runs it, on `devices` virtual CPU devices, `parallel` models at once."""
    settings = settings | {"study.parallel": parallel}
    given = [f"--workdir={workdir}", *(f"--config.{k}={v}" for k, v in settings.items())]
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": str(devices), "NPROC": "8"}  # threads of the pool
    return processes.Process([sys.executable, "overlap.py", *given], env=environment)


def end(process):
    _, errors = process.communicate(timeout=1500)
    assert process.returncode == 0, errors
    return errors


def kill_in_the_middle(process, workdir, step):
    """SIGKILL once some model has a checkpoint at `step`."""
    while process.poll() is None and not list(workdir.glob(f"models/*/seed0/checkpoints/{step}")):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not list(workdir.glob("models/*/seed0/final.json"))


def compare(eight, one):
    for model in ("standard", "noc.border", "noc.hue"):
        final = [json.loads((workdir / f"models/{model}/seed0/final.json").read_text()) for workdir in (eight, one)]
        assert final[0] == final[1], model  # the digest of all parameters
    counts = [read_counts(workdir / "counts.csv") for workdir in (eight, one)]
    assert counts[0] == counts[1] and len(counts[0]) == 9
    (names, matrix), (_, other) = (read_overlap(workdir / "overlap.csv")[:2] for workdir in (eight, one))
    assert names == ("noc/border", "noc/hue") and np.isfinite(matrix).all()
    np.testing.assert_array_equal(matrix, other)


def run(tmp_path, settings, killed_at):
    eight, one = tmp_path / "eight", tmp_path / "one"
    kill_in_the_middle(start(eight, settings, 8, 3), eight, killed_at)
    errors = end(start(eight, settings, 8, 3))
    assert errors.count("Resuming") >= 1 and "expected" not in errors
    end(start(one, settings, 1, 1))
    assert json.loads((eight / "provenance.json").read_text())["device"].startswith("8 x")
    for workdir in (eight, one):
        assert json.loads((workdir / "compiles.json").read_text()) == {"train_models_block": 1, "network_logits": 1}
    compare(eight, one)


@pytest.mark.slow
def test_a_killed_study_in_rows_ends_like_one_device(tmp_path):
    run(tmp_path, SMALL, 24)


@pytest.mark.slow
@pytest.mark.timeout(3000)  # three runs, each of which `end` gives 1,500 s: a loaded machine takes many times as long
def test_the_same_at_224_pixels(tmp_path):
    run(tmp_path, LARGE, 24)
