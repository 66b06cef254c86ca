"""A whole study on eight devices, killed in the middle and continued: the counts and the matrix of one device."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from analysis import overlap_files, tables

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = {
    "dataset.train_limit": 600,
    "dataset.test_limit": 200,
    "train.epochs": 6,
    "train.batch_size": 50,
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
    "train.batch_size": 25,
}


def start(workdir, settings, devices, parallel):
    """The study as a user runs it, on `devices` virtual CPU devices, `parallel` models at once."""
    flags = (os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={devices}").strip()
    settings = settings | {"study.parallel": parallel}
    return subprocess.Popen(
        [sys.executable, "overlap.py", f"--workdir={workdir}", *(f"--config.{k}={v}" for k, v in settings.items())],
        cwd=ROOT,
        env=os.environ | {"XLA_FLAGS": flags},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


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
    """Sums in another order differ in the last bit, and training makes that grow: a hundred steps later a few answers of
    hundreds differ. Mistakes in seeds, batches or corruptions show in the first epoch's loss."""
    for model in ("standard", "noc.border", "noc.hue"):
        lines = [(workdir / f"models/{model}/seed0/metrics.jsonl").read_text().splitlines() for workdir in (eight, one)]
        losses = np.array([[json.loads(line)["loss"] for line in run] for run in lines])
        np.testing.assert_allclose(losses[0, 0], losses[1, 0], rtol=1e-4)
        np.testing.assert_allclose(losses[0], losses[1], rtol=0.02)
    counts = [tables.read_counts(workdir / "counts.csv") for workdir in (eight, one)]
    assert [row[:4] for row in counts[0]] == [row[:4] for row in counts[1]] and len(counts[0]) == 9
    correct = np.array([[row.correct / row.total for row in rows] for rows in counts])
    assert np.abs(correct[0] - correct[1]).max() <= 0.03, correct
    (names, matrix), (_, other) = (overlap_files.read_overlap(workdir / "overlap.csv") for workdir in (eight, one))
    assert names == ("noc/border", "noc/hue")
    np.testing.assert_allclose(matrix, other, atol=0.15)  # a ratio of small gains: an answer in 200 moves it by .03


def run(tmp_path, settings, killed_at):
    eight, one = tmp_path / "eight", tmp_path / "one"
    kill_in_the_middle(start(eight, settings, 8, 3), eight, killed_at)
    errors = end(start(eight, settings, 8, 3))
    assert errors.count("Resuming") >= 1 and "expected" not in errors
    end(start(one, settings, 1, 1))
    assert json.loads((eight / "provenance.json").read_text())["device"].startswith("8 x")
    for workdir in (eight, one):
        assert json.loads((workdir / "compiles.json").read_text()) == {"train_models_block": 1, "correct_answers": 1}
    compare(eight, one)


def test_a_killed_study_in_rows_ends_like_one_device(tmp_path):
    run(tmp_path, SMALL, 24)


@pytest.mark.slow
def test_the_same_at_224_pixels(tmp_path):
    run(tmp_path, LARGE, 24)
