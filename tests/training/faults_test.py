"""What a machine does to a long run: a disk that fills, a clock that jumps. Real processes; the result is the same."""

import contextlib
import json
import os
import resource
import shlex
import signal
import subprocess
import time

import pytest

from tests.training.running import COMMAND, ROOT, start
from training import workdir as workdirs
from training.metrics import training_seconds

EPOCHS = 20
LONGER = f"--config.train.epochs={EPOCHS}"
JUMPING_CLOCK = """
import random, time
draw, clock, clock_ns = random.Random(0).uniform, time.time, time.time_ns
time.time = lambda: clock() + draw(-9, 9) * 365 * 86400  # each reading years before or after the last
time.time_ns = lambda: clock_ns() + int(draw(-9, 9) * 365 * 86400e9)
"""


def finish(workdir, **environment):
    """Output of the run that begins or continues in `workdir`, and what it ended with."""
    process = start(workdir, LONGER, **environment)
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 0, output
    return output, json.loads((workdir / "final.json").read_text())


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What the run ends with when nothing disturbs it."""
    return finish(tmp_path_factory.mktemp("undisturbed") / "run")[1]


def wait_for_checkpoint(process, workdir):
    while process.poll() is None and not (workdir / "checkpoints" / "5").exists():
        time.sleep(0.005)
    assert process.poll() is None


@contextlib.contextmanager
def full_disk():
    """No file of this process can grow: the limit on file sizes acts as a full disk does, for any user."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_on_a_full_disk_keeps_its_old_value_and_is_named(tmp_path):
    path = tmp_path / "value.json"
    workdirs.write_json(path, {"a": 1})
    with full_disk(), pytest.raises(OSError, match=r"too large: '.*value\.json'"):
        workdirs.write_json(path, {"a": 2})
    assert workdirs.read_json(path) == {"a": 1} and [p.name for p in tmp_path.iterdir()] == ["value.json"]


def test_training_on_a_disk_that_fills_says_so_and_continues_once_there_is_room(tmp_path, expected):
    workdir = tmp_path / "run"
    process = start(workdir, LONGER)
    wait_for_checkpoint(process, workdir)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 1 and "Traceback" not in output, output
    (message,) = [line for line in output.splitlines() if "File too large" in line]
    assert str(workdir) in message and "make room, and the same command continues" in message
    assert not (workdir / "final.json").exists()
    output, found = finish(workdir)
    assert "Resuming" in output and found == expected
    left = sorted(p.name for p in (workdir / "checkpoints").iterdir())
    assert left == sorted(str(5 * epoch) for epoch in (EPOCHS - 1, EPOCHS))  # nothing half-written


@pytest.mark.slow
def test_training_on_a_small_file_system(tmp_path, expected):
    """The same with a real file system of 3 MB, where the third checkpoint does not fit (wants user namespaces)."""
    can = subprocess.run(["unshare", "-Urm", "mount", "-t", "tmpfs", "t", str(tmp_path)], capture_output=True)
    if can.returncode:
        pytest.skip("this machine lets users mount nothing")
    command = shlex.join([*COMMAND, LONGER, f"--workdir={tmp_path / 'run'}"])
    script = f"mount -t tmpfs -o size=3m t {tmp_path}; ({command}) && exit 9; mount -o remount,size=90m {tmp_path}; "
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", f"{script} {command} && cat {tmp_path}/run/final.json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0 and "No space left on device" in done.stderr, done.stderr
    assert "Resuming" in done.stderr and json.loads(done.stdout) == expected


def test_a_clock_that_jumps_changes_nothing(tmp_path, expected):
    """Each reading of the wall clock is years off; the run is also killed, and its files get dates of other years."""
    site, workdir = tmp_path / "site", tmp_path / "run"
    site.mkdir()
    (site / "sitecustomize.py").write_text(JUMPING_CLOCK)
    began = time.monotonic()
    process = start(workdir, LONGER, PYTHONPATH=str(site))
    wait_for_checkpoint(process, workdir)
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for number, path in enumerate(sorted(workdir.rglob("*"))):
        day = time.time() + (-1) ** number * 3000 * 86400
        os.utime(path, (day, day))
    output, found = finish(workdir, PYTHONPATH=str(site))
    assert "Resuming" in output and found == expected
    lines = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(5, 5 * EPOCHS + 1, 5))
    assert all(line["images_per_second"] > 0 for line in lines)
    assert 0 < training_seconds(workdir / "metrics.jsonl", 32) < time.monotonic() - began
    kept = sorted(int(p.name) for p in (workdir / "checkpoints").iterdir())
    assert kept == [5 * EPOCHS - 5, 5 * EPOCHS]
    stamps = [
        json.loads((workdir / "checkpoints" / str(step) / "_CHECKPOINT_METADATA").read_text())["init_timestamp_nsecs"]
        for step in kept
    ]
    assert all(abs(stamp / 1e9 - time.time()) > 86400 for stamp in stamps)  # the clock did jump


def test_a_run_that_ended_before_it_was_marked_finished_is_marked(tmp_path, expected):
    workdir = tmp_path / "run"
    assert finish(workdir)[1] == expected
    lines = (workdir / "metrics.jsonl").read_text()
    (workdir / "final.json").unlink()
    assert finish(workdir)[1] == expected
    assert (workdir / "metrics.jsonl").read_text() == lines
