"""Long runs in real processes: a disk that fills, a clock that jumps, a kill in the middle of a study, level memory."""

import json
import os
import pathlib
import resource
import shlex
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from analysis.overlap.measured import read_overlap
from tests import compiling, processes
from tests.analysis.made_up import read_counts
from tests.processes import ROOT
from tests.training import tiny

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


def finish(workdir, environment, *more):
    """Output of the run that begins or continues in `workdir`, and what it ended with."""
    output = tiny.end(tiny.start(workdir, LONGER, *more, **environment))
    return output, json.loads((workdir / "final.json").read_text())


def programs(environment):
    folder = pathlib.Path(environment["XDG_CACHE_HOME"], "jax-corruptions", "xla")
    return {path.name for path in folder.glob("*-cache")}


@pytest.fixture(scope="module")
def expected(tmp_path_factory, environment):
    """Gives the result of an undisturbed run, and the programs that it compiled."""
    found = finish(tmp_path_factory.mktemp("undisturbed") / "run", environment)[1]
    return found, programs(environment)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, environment, expected):
    """(workdir, output) of a run whose disk was full after the first checkpoint."""
    workdir = tmp_path_factory.mktemp("stopped") / "run"
    process = tiny.start(workdir, LONGER, **environment)
    tiny.wait_for(process, (workdir / "checkpoints" / "5").exists)
    assert process.poll() is None
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 1, output
    return workdir, output


def test_training_on_a_disk_that_fills_stops_with_one_message_and_keeps_its_checkpoints(stopped):
    workdir, output = stopped
    (message,) = [line for line in output.splitlines() if "File too large" in line]
    assert str(workdir) in message and "make room, and the same command continues" in message
    assert "Traceback" not in output and not (workdir / "final.json").exists()
    assert (workdir / "checkpoints" / "5").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("renamed", [True, False])
def test_a_workdir_that_is_lost_while_it_trains_is_told(renamed, tmp_path, environment):
    workdir = tmp_path / "run"
    process = tiny.start(workdir, LONGER, **environment)
    tiny.wait_for(process, (workdir / "checkpoints" / "5").exists)
    workdir.rename(tmp_path / "elsewhere")
    if not renamed:
        shutil.rmtree(tmp_path / "elsewhere")
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 1, output
    (message,) = [line for line in output.splitlines() if "removed or renamed" in line]
    assert str(workdir) in message and "Traceback" not in output and "Results are in" not in output
    assert not workdir.exists()
    if renamed:
        finish((tmp_path / "elsewhere").rename(workdir), environment)


def test_a_second_process_compiles_nothing_anew(stopped, expected, environment):
    assert len(expected[1]) > 10 and programs(environment) == expected[1]


def test_with_room_again_and_a_clock_that_jumps_the_result_is_the_same(tmp_path, stopped, expected, environment):
    """Each reading of the wall clock is years off, and the files of the run get dates of other years."""
    workdir, _ = stopped
    (tmp_path / "sitecustomize.py").write_text(JUMPING_CLOCK)
    for number, path in enumerate(sorted(workdir.rglob("*"))):
        day = time.time() + (-1) ** number * 3000 * 86400  # a clock before and after the present
        os.utime(path, (day, day))
    began = time.monotonic()
    output, found = finish(workdir, environment | {"PYTHONPATH": str(tmp_path)})
    assert "Resuming" in output and found == expected[0]
    steps, rates = zip(*tiny.metrics(workdir, "step", "images_per_second"))
    assert steps == tuple(range(5, 5 * EPOCHS + 1, 5)) and min(rates) > 0
    seconds = sum(5 * 32 / rate for rate in rates[-3:])  # certainly in this process
    assert seconds < time.monotonic() - began
    kept = sorted(int(p.name) for p in (workdir / "checkpoints").iterdir())
    assert kept == [5 * EPOCHS - 5, 5 * EPOCHS]  # the newest, and nothing half-written
    stamps = [
        json.loads((workdir / "checkpoints" / str(step) / "_CHECKPOINT_METADATA").read_text())["init_timestamp_nsecs"]
        for step in kept
    ]
    assert all(abs(stamp / 1e9 - time.time()) > 86400 for stamp in stamps)  # the clock did jump


@pytest.mark.slow
def test_training_on_a_small_file_system(tmp_path, tmp_path_factory, environment):
    """The same with a real file system of 3 MB, where the third checkpoint does not fit (wants user namespaces)."""
    can = subprocess.run(["unshare", "-Urm", "mount", "-t", "tmpfs", "t", str(tmp_path)], capture_output=True)
    if can.returncode:
        pytest.skip("this machine lets users mount nothing")
    larger = ("--config.model.stem=24", "--config.model.widths=(48,96)")  # checkpoints of 1.3 MB
    expected = finish(tmp_path_factory.mktemp("undisturbed") / "run", environment, *larger)[1]
    command = shlex.join([*tiny.COMMAND, LONGER, *larger, f"--workdir={tmp_path / 'run'}"])
    script = f"mount -t tmpfs -o size=3m t {tmp_path}; ({command}) && exit 9; mount -o remount,size=90m {tmp_path}; "
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", f"{script} {command} && cat {tmp_path}/run/final.json"],
        cwd=ROOT,
        env=tiny.without_none(os.environ | environment),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "No space left on device" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert "Resuming" in done.stderr and json.loads(done.stdout) == expected


# train.py as it is, but each line of metrics.jsonl also tells the memory of the process.
PROBE = """
import gc, pathlib, resource, sys
import jax
import train
from runtime import command
from training import cli, run

def resident():
    pages = pathlib.Path("/proc/self/statm")  # Linux; elsewhere the peak, which grows when memory does
    return int(pages.read_text().split()[1]) * resource.getpagesize() if pages.exists() \\
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

write = run.MetricsLog.write
def probe(self, step, **values):
    write(self, step, **values)
    if step % 500 == 0:
        gc.collect()
        print("PROBE", step, resident(), len(jax.live_arrays()), flush=True)
run.MetricsLog.write = probe
cli.define_flags()
command.run(cli.main(train.train_and_evaluate), cli.parse)
"""


@pytest.mark.slow
def test_memory_does_not_grow_over_2000_steps(tmp_path):
    """20 epochs, with checkpoints: no array more is alive, and the process grows by less than 20 MiB."""
    settings = ["train.epochs=20", "train.batch_size=8", "dataset.train_limit=800", "dataset.image_size=16"]
    given = [*tiny.COMMAND[2:], *(f"--config.{s}" for s in settings), f"--workdir={tmp_path / 'run'}"]
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "1"}
    done = processes.run([sys.executable, "-c", PROBE, *given], env=environment)
    assert done.returncode == 0, done.stderr
    found = [tuple(map(int, line.split()[1:])) for line in done.stdout.splitlines() if line.startswith("PROBE")]
    assert [step for step, _, _ in found] == [500, 1000, 1500, 2000], done.stdout
    (_, early, arrays), *_, (_, late, arrays_late) = found
    assert arrays_late <= arrays
    grown = (late - early) / 2**20
    assert grown < 20, f"grew by {grown:.0f} MiB over 1,500 steps"


# Each model trains on a device of its own (25 images cannot be split over the two devices of a row), and XLA's thread
# pool, whose size decides in which order sums are taken on a CPU, is as large for one device as for eight.
SMALL = {"dataset.train_limit": 600, "dataset.test_limit": 200, "train.epochs": 10, "train.batch_size": 25}
SMALL |= {"train.learning_rate": 0.05, "train.checkpoint_epochs": 1, "eval.batch_size": 100}
SMALL |= {"study.corruptions": ("noc/border", "noc/hue")}
LARGE = SMALL | {"dataset.image_size": 224, "dataset.train_limit": 300, "dataset.test_limit": 100, "train.epochs": 8}


def start_study(workdir, settings, devices, parallel):
    """The study as a user runs it, on `devices` virtual CPU devices, `parallel` models at once."""
    settings = settings | {"study.parallel": parallel}
    given = [f"--workdir={workdir}", *(f"--config.{k}={v}" for k, v in settings.items())]
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": str(devices), "NPROC": "8"}  # threads of the pool
    return processes.Process([sys.executable, "overlap.py", *given], env=environment)


def end(process):
    _, errors = process.communicate(timeout=1500)
    assert process.returncode == 0, errors
    return errors


@pytest.mark.slow
@pytest.mark.timeout(3000)  # three runs, each of which `end` gives 1,500 s: a loaded machine takes many times as long
@pytest.mark.parametrize("settings", [SMALL, LARGE], ids=["32 pixels", "224 pixels"])
def test_a_killed_study_in_rows_ends_like_one_device(tmp_path, settings):
    """Bit for bit: parameters, counts and matrix."""
    eight, one = tmp_path / "eight", tmp_path / "one"
    start_study(eight, settings, 8, 3).kill_when(lambda: list(eight.glob("models/*/seed0/checkpoints/24")))
    assert not list(eight.glob("models/*/seed0/final.json"))
    errors = end(start_study(eight, settings, 8, 3))
    assert errors.count("Resuming") >= 1 and "expected" not in errors
    end(start_study(one, settings, 1, 1))
    assert json.loads((eight / "provenance.json").read_text())["device"].startswith("8 x")
    for workdir in (eight, one):
        assert json.loads((workdir / "compiles.json").read_text()) == {"train_models_block": 1, "network_logits": 1}
    for model in ("standard", "noc.border", "noc.hue"):
        final = [json.loads((workdir / f"models/{model}/seed0/final.json").read_text()) for workdir in (eight, one)]
        assert final[0] == final[1], model  # the digest of all parameters
    counts = [read_counts(workdir / "counts.csv") for workdir in (eight, one)]
    assert counts[0] == counts[1] and len(counts[0]) == 9
    (names, matrix), (_, other) = (read_overlap(workdir / "overlap.csv")[:2] for workdir in (eight, one))
    assert names == ("noc/border", "noc/hue") and np.isfinite(matrix).all()
    np.testing.assert_array_equal(matrix, other)
