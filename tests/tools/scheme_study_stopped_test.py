"""tools.scheme_study killed in the middle, and in two processes: the tables of a run that nothing disturbed (slow)."""

import os
import signal
import sys
import time

import pytest

from tests import processes
from tests.analysis.made_up import read_counts
from tests.runtime.pair import PATIENCE, ROOT, Pair, environment

TABLES = ("counts.csv", "scores.csv", "errors.csv", "errors_summary.csv", "schemes.csv", "scheme_corruptions.csv")
SETTINGS = (
    "dataset.train_limit=160",
    "dataset.test_limit=70",
    "train.batch_size=32",
    "train.epochs=4",
    "eval.batch_size=70",
    "eval.severity=3",
    "eval.corruptions=('imagenet_c/contrast','imagenet_c/fog','imagenet_c/brightness')",
    "study.schemes=('standard','patch_gaussian','augmix=rotate')",  # two programs
)
COMMAND = ["-m", "tools.scheme_study", f"--config={ROOT / 'configs' / 'scheme_study.py'}:smoke", "--workdir=work"]
COMMAND += [f"--config.{setting}" for setting in SETTINGS]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def start(folder, devices=1):
    """The command as a user runs it, its workdir in `folder`."""
    command = [sys.executable, *COMMAND]
    return processes.Process(command, cwd=folder, env=environment(devices), output=folder / "output")


def finish(folder, devices=1):
    assert start(folder, devices).wait(PATIENCE) == 0, (folder / "output").read_text()[-5000:]


def results(workdir):
    """The lines of every table but those that tell when and where it was made."""
    return {
        name: [line for line in (workdir / name).read_text().splitlines() if not line.startswith("#")]
        for name in TABLES
    }


def finished(workdir):
    return {path: path.stat().st_mtime_ns for path in workdir.glob("models/*/*/final.json")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """{devices: tables of a study that ran to its end on them}."""
    found = {}
    for devices in (1, 2):
        folder = tmp_path_factory.mktemp(f"undisturbed{devices}")
        finish(folder, devices)
        found[devices] = results(folder / "work")
    return found


def test_killed_while_it_trains_and_while_it_evaluates_it_ends_in_the_same_tables(undisturbed, tmp_path):
    work = tmp_path / "work"
    kept = {}
    for begun in (lambda: len(finished(work)) >= 1, lambda: len(finished(work)) >= 3, lambda: answered(work)):
        process = start(tmp_path)
        while process.poll() is None and not begun():
            time.sleep(0.01)
        assert process.poll() is None, (tmp_path / "output").read_text()[-5000:]
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
        assert not (work / "schemes.csv").exists()
        after = finished(work)
        assert kept.items() <= after.items()  # what was finished is not trained again
        kept = after
    finish(tmp_path)
    assert len(finished(work)) == 6 and kept.items() <= finished(work).items()
    assert results(work) == undisturbed[1]
    assert len(read_counts(work / "counts.csv")) == 6 * (1 + 3)


def answered(workdir):
    return any((workdir / "answers").glob("*.npz"))


def test_two_processes_end_in_the_tables_of_one_with_two_devices(undisturbed, tmp_path):
    with Pair(tmp_path, *COMMAND) as pair:
        assert pair.wait() == [0, 0], pair.output()
    assert results(tmp_path / "host0" / "work") == undisturbed[2]
    assert os.listdir(tmp_path / "host1") == ["output"]  # only process 0 writes
