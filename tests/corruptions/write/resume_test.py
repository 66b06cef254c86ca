"""Runs that end early, by a kill or a full disk, are continued by the same command and lose nothing that was done."""

import errno
import json
import os
import resource
import shutil
import signal
import sys
import time

import numpy as np
import pytest

from corruptions.write import WriteError, write_dataset, writer
from tests import compiling, processes
from tests.corruptions.write.datasets import contents
from tests.refusing import refuses

NAMES = "noc/contrast,noc/hue"


def arrays(number, side=32):
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, (number, side, side, 3), np.uint8), rng.integers(0, 10, number)


def first_of(number):
    images, labels = arrays(1500)
    return images[:number], labels[:number]


def command(tmp_path, out, *more):
    source = tmp_path / "source.npz"
    if not source.exists():
        images, labels = arrays(1500)
        np.savez(source, images=images, labels=labels)
    flags = [f"--source={source}", f"--out={out}", f"--corruptions={NAMES}", "--seed=4", *more]
    return [sys.executable, "-m", "corruptions.write", *flags]


def run(arguments, **options):
    options = {"env": compiling.environment()} | options
    return processes.run(arguments, **options)


def written(out):
    """Blocks the manifest calls complete, by corruption."""
    path = out / "manifest.json"
    entries = json.loads(path.read_text())["corruptions"] if path.exists() else {}
    return {name: entry["written"] for name, entry in entries.items()}


def count(out):
    return sum(map(len, written(out).values()))


FOLDERS = ("--layout=folders", "--limit=200", "--severities=0,1", "--batch_size=50")
KILLED = {  # arguments, blocks, images, blocks at the kill, arguments of the same call
    "npy": ((), 10, 1500, 2, {}),
    "folders": (FOLDERS, 4, 200, 1, {"layout": "folders", "severities": [0, 1], "batch_size": 50}),
}


@pytest.mark.parametrize("layout", [pytest.param("npy", marks=pytest.mark.slow), "folders"])
def test_a_killed_command_continues(tmp_path, layout):
    more, blocks, number, at, options = KILLED[layout]
    out, whole = tmp_path / "killed", tmp_path / "whole"
    arguments = command(tmp_path, out, *more)
    processes.Process(arguments, env=compiling.environment()).kill_when(lambda: count(out) >= at, every=0.001)
    done = written(out)
    assert at <= count(out) < blocks and not (out / "hue.npy").exists()
    visible = {p.relative_to(out).as_posix() for p in out.glob("*/*") if p.parent.name in ("contrast", "hue")}
    assert visible <= {
        f"{name.split('/')[1]}/{s}" for name, some in done.items() for s in some
    }  # what is visible is complete
    left = blocks - count(out)
    second = run(arguments)
    assert second.returncode == 0, second.stderr
    assert f"{left} of {blocks} blocks to write" in second.stderr
    assert second.stdout.strip() == str(out / "manifest.json")
    found = json.loads((out / "manifest.json").read_text())
    assert found["complete"] and len(found["runs"]) == 2 and "--seed=4" in found["runs"][0]["command"]
    write_dataset(whole, first_of(number), corruptions=NAMES.split(","), seed=4, **options)
    assert contents(out) == contents(whole) and len(contents(out)) == {"npy": 3, "folders": 4 * 200 + 4}[layout]
    assert {path.name for path in out.iterdir()} == {path.name for path in whole.iterdir()}
    assert not (out / ".part").exists()


def test_ctrl_c_in_a_compilation_ends_with_one_line(tmp_path):
    arguments = command(tmp_path, tmp_path / "out", "--limit=300", "--severities=1", "--no-progress")
    arguments[-4] = "--corruptions=imagenet_c/elastic_transform"
    process = processes.Process(arguments, env=os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"})
    while not (tmp_path / "out/manifest.json").exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130 and "1 of 1 blocks to write" in said, said
    assert said.endswith("\ncorruptions.write: stopped; the same command continues\n") and said.count("\n") <= 3


def test_ctrl_c_in_the_garbage_collector_is_answered(tmp_path):
    code = (
        "import gc, os, runpy, signal, sys; sys.argv[1:] = sys.argv[2:];"
        "gc.callbacks.append(lambda *_: signal.getsignal(2) is signal.default_int_handler or os.kill(os.getpid(), 2));"
        "runpy.run_module('corruptions.write', run_name='__main__')"
    )
    done = run([sys.executable, "-c", code, *command(tmp_path, tmp_path / "out")[2:]])
    assert done.returncode == 130 and done.stderr.endswith("stopped; the same command continues\n"), done.stderr


def test_a_full_disk_is_a_clean_error_and_the_run_continues(tmp_path):
    out = tmp_path / "out"
    arguments = command(tmp_path, out, "--limit=400")  # one .npy takes 6.1 MB
    first = processes.Process(arguments, env=compiling.environment())
    resource.prlimit(first.pid, resource.RLIMIT_FSIZE, (5000 * 1024, resource.RLIM_INFINITY))
    _, errors = first.communicate()
    assert first.returncode == 1
    assert "error: the disk (or quota) is full" in errors and "run the same command again" in errors
    assert "Traceback" not in errors and count(out) == 0
    assert not list(out.glob("*contrast*"))  # nothing half-written stays to fill the disk
    write_dataset(out, first_of(400), corruptions=NAMES.split(","), seed=4)
    assert count(out) == 10


@pytest.mark.parametrize("layout", ["npy", "folders", "webdataset"])
def test_a_block_whose_writing_failed_is_not_called_complete(tmp_path, monkeypatch, layout):
    source = arrays(10)
    options = {"corruptions": NAMES.split(","), "layout": layout, "severities": [0, 0.5, 1]}
    out, whole = tmp_path / "out", tmp_path / "whole"
    original, calls = writer.LAYOUTS[layout].write, []

    def fails_on_the_second_block(self, *arguments):
        calls.append(1)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(writer.LAYOUTS[layout], "write", fails_on_the_second_block)
        refuses(lambda: write_dataset(out, source, **options), "space left on device", "continues", kind=WriteError)
    assert written(out) == {"noc/contrast": [0], "noc/hue": []}
    assert len(calls) == 2
    write_dataset(out, source, **options)
    write_dataset(whole, source, **options)
    assert contents(out) == contents(whole)


def test_space_is_counted_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9 - 10**5, 10**5))
    with pytest.raises(WriteError, match=r"needs 0\.0[0-9] GB more, 0\.00 GB are free"):
        write_dataset(tmp_path, arrays(1000), corruptions=NAMES.split(","))
    assert not list(tmp_path.glob("*contrast*"))


@pytest.mark.parametrize("layout", ["npy", "folders", "webdataset"])
def test_a_kill_between_record_and_rename_loses_nothing(tmp_path, layout):
    write_dataset(tmp_path, arrays(10), corruptions=["noc/hue"], severities=[0, 1], layout=layout)
    before = contents(tmp_path)
    named, aside = ("hue.npy", ".part/hue.npy") if layout == "npy" else ("hue/1", ".part/hue/1")
    (tmp_path / aside).parent.mkdir(parents=True, exist_ok=True)
    os.rename(tmp_path / named, tmp_path / aside)
    runs = json.loads((tmp_path / "manifest.json").read_text())["runs"]
    write_dataset(tmp_path, arrays(10), corruptions=["noc/hue"], severities=[0, 1], layout=layout)
    assert contents(tmp_path) == before
    assert json.loads((tmp_path / "manifest.json").read_text())["runs"] == runs  # nothing had to be computed


def test_the_second_of_two_commands_is_refused(tmp_path):
    out = tmp_path / "out"
    arguments = command(tmp_path, out, "--limit=400")
    first = processes.Process(arguments)
    while not (out / "manifest.json").exists() and first.poll() is None:
        time.sleep(0.001)
    first.send_signal(signal.SIGSTOP)
    try:
        refuses(
            lambda: write_dataset(out, first_of(400), corruptions=NAMES.split(","), seed=4),
            "another process is writing",
            kind=WriteError,
        )
    finally:
        first.kill()
        first.wait()
    # The lock dies with its process.
    write_dataset(out, first_of(400), corruptions=NAMES.split(","), seed=4)
    assert count(out) == 10


def test_two_devices_write_the_same_files(tmp_path):
    out, whole = tmp_path / "out", tmp_path / "whole"
    environment = compiling.environment() | {"JAX_NUM_CPU_DEVICES": "2"}
    done = run(command(tmp_path, out, "--batch_size=70", "--limit=150", "--severities=1"), env=environment)
    assert done.returncode == 0, done.stderr
    assert "2 x cpu" in json.loads((out / "manifest.json").read_text())["runs"][0]["device"]
    write_dataset(whole, first_of(150), corruptions=NAMES.split(","), severities=[1], seed=4)
    assert contents(out) == contents(whole)
