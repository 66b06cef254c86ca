"""What a machine does to a long run: a disk that fills, a clock that jumps. Real processes; the
result is the same."""

import contextlib
import json
import os
import pathlib
import resource
import shlex
import subprocess
import time

import pytest

from runtime import workdirs
from tests import compiling
from tests.processes import ROOT
from tests.training.running import COMMAND, start, without_none

EPOCHS = 8
LONGER = f"--config.train.epochs={EPOCHS}"
JUMPING_CLOCK = """
import random, time
draw, clock, clock_ns = random.Random(0).uniform, time.time, time.time_ns
time.time = lambda: clock() + draw(-9, 9) * 365 * 86400  # each reading years before or after the last
time.time_ns = lambda: clock_ns() + int(draw(-9, 9) * 365 * 86400e9)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A cache of compiled programs of its own, where train.py puts it by itself."""
    cache = str(tmp_path_factory.mktemp("cache"))
    own = {"XDG_CACHE_HOME": cache, "JAXC_CACHE_DIR": None}
    own |= {compiling.LEVEL: compiling.environment()[compiling.LEVEL]}
    return own | {"JAX_COMPILATION_CACHE_DIR": None, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": None}


def finish(workdir, environment):
    """Output of the run that begins or continues in `workdir`, and what it ended with."""
    process = start(workdir, LONGER, **environment)
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 0, output
    return output, json.loads((workdir / "final.json").read_text())


def programs(environment):
    folder = pathlib.Path(environment["XDG_CACHE_HOME"], "jax-corruptions", "xla")
    return {path.name for path in folder.glob("*-cache")}


@pytest.fixture(scope="module")
def expected(tmp_path_factory, environment):
    """What the run ends with when nothing disturbs it, and the programs it compiled."""
    found = finish(tmp_path_factory.mktemp("undisturbed") / "run", environment)[1]
    return found, programs(environment)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, environment, expected):
    """(workdir, output) of a run whose disk was full after the first checkpoint."""
    workdir = tmp_path_factory.mktemp("stopped") / "run"
    process = start(workdir, LONGER, **environment)
    while process.poll() is None and not (workdir / "checkpoints" / "5").exists():
        time.sleep(0.005)
    assert process.poll() is None
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 1, output
    return workdir, output


@contextlib.contextmanager
def full_disk():
    """No file of this process can grow: the limit on file sizes acts as a full disk does, for any
    user."""
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


def test_training_on_a_disk_that_fills_stops_with_one_message_and_keeps_its_checkpoints(stopped):
    workdir, output = stopped
    (message,) = [line for line in output.splitlines() if "File too large" in line]
    assert str(workdir) in message and "make room, and the same command continues" in message
    assert "Traceback" not in output and not (workdir / "final.json").exists()
    assert (workdir / "checkpoints" / "5").is_dir()


def test_a_second_process_compiles_nothing_anew(stopped, expected, environment):
    assert len(expected[1]) > 10 and programs(environment) == expected[1]


def test_with_room_again_and_a_clock_that_jumps_the_result_is_the_same(tmp_path, stopped, expected, environment):
    """Each reading of the wall clock is years off, and the files of the run get dates of other
    years."""
    workdir, _ = stopped
    (tmp_path / "sitecustomize.py").write_text(JUMPING_CLOCK)
    for number, path in enumerate(sorted(workdir.rglob("*"))):
        day = time.time() + (-1) ** number * 3000 * 86400  # before and after now
        os.utime(path, (day, day))
    began = time.monotonic()
    output, found = finish(workdir, environment | {"PYTHONPATH": str(tmp_path)})
    assert "Resuming" in output and found == expected[0]
    lines = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(5, 5 * EPOCHS + 1, 5))
    assert all(line["images_per_second"] > 0 for line in lines)
    seconds = sum(5 * 32 / line["images_per_second"] for line in lines[-3:])  # of this process for certain
    assert seconds < time.monotonic() - began
    kept = sorted(int(p.name) for p in (workdir / "checkpoints").iterdir())
    assert kept == [5 * EPOCHS - 5, 5 * EPOCHS]  # the newest, and nothing half-written
    stamps = [
        json.loads((workdir / "checkpoints" / str(step) / "_CHECKPOINT_METADATA").read_text())["init_timestamp_nsecs"]
        for step in kept
    ]
    assert all(abs(stamp / 1e9 - time.time()) > 86400 for stamp in stamps)  # the clock did jump


@pytest.mark.slow
def test_training_on_a_small_file_system(tmp_path, expected, environment):
    """The same with a real file system of 3 MB, where the third checkpoint does not fit (wants user
    namespaces)."""
    can = subprocess.run(["unshare", "-Urm", "mount", "-t", "tmpfs", "t", str(tmp_path)], capture_output=True)
    if can.returncode:
        pytest.skip("this machine lets users mount nothing")
    command = shlex.join([*COMMAND, LONGER, f"--workdir={tmp_path / 'run'}"])
    script = f"mount -t tmpfs -o size=3m t {tmp_path}; ({command}) && exit 9; mount -o remount,size=90m {tmp_path}; "
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", f"{script} {command} && cat {tmp_path}/run/final.json"],
        cwd=ROOT,
        env=without_none(os.environ | environment),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "No space left on device" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert "Resuming" in done.stderr and json.loads(done.stdout) == expected[0]
