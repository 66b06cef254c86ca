"""Two real processes over loopback train one model like one process, stop together, and continue after a death; signals."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from corruptions import write_dataset
from runtime import distributed
from tests import processes
from tests.refusing import refuses
from tests.runtime.pair import PATIENCE, ROOT, Pair, environment
from tests.training import tiny
from training.checkpoints import Checkpoints

SMALL = ("dataset.train_limit=64", "dataset.test_limit=71", "train.batch_size=32")
SMALL += ("train.epochs=8", "eval.batch_size=32")
TRAIN = [str(ROOT / "train.py"), f"--config={ROOT / 'tests/fixtures/small.py'}:noc/border", "--workdir=work"]
TRAIN += [f"--config.{setting}" for setting in (*SMALL, "train.checkpoint_epochs=2")]
EVAL = [str(ROOT / "eval.py"), f"--config={ROOT / 'configs' / 'default.py'}", "--workdir=work"]
EVAL += ["--config.eval.corruptions=('noc/hue',)", "--config.eval.batch_size=32"]
STEPS = 16


def losses(workdir):
    return tiny.metrics(workdir, "step", "loss")


def table(path):
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def run_alone(place, *commands):
    """Runs commands as one process with two devices; returns the workdir."""
    for command in commands:
        done = processes.run([sys.executable, *command], cwd=place, env=environment(2), timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
    return place / "work"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return run_alone(tmp_path_factory.mktemp("alone"), TRAIN, EVAL)


def assert_trained_alike(work, alone, steps):
    assert json.loads((work / "final.json").read_text()) == json.loads((alone / "final.json").read_text())
    assert losses(work) == losses(alone) and losses(work)[-1][0] == steps
    assert json.loads((work / "provenance.json").read_text())["processes"] == 2
    assert [p.name for p in (work.parents[1] / "host1").iterdir()] == ["output"]  # only process 0 writes


def test_two_processes_train_like_one(tmp_path):
    """Each streams the images of its own device; alone, the images are in device memory."""
    short = [*TRAIN, "--config.train.epochs=1"]
    with Pair(tmp_path, *short, "--config.dataset.placement=stream") as pair:
        assert pair.wait() == [0, 0], pair.output()
    (tmp_path / "alone").mkdir()
    assert_trained_alike(tmp_path / "host0" / "work", run_alone(tmp_path / "alone", short), 2)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("killed", [1, 0])
def test_two_processes_stopped_twice_end_like_one(alone, tmp_path, killed):
    work = tmp_path / "host0" / "work"

    def steps():
        folder = tmp_path / "shared" / "work" / "checkpoints"
        return max((int(p.name) for p in folder.iterdir() if p.name.isdigit()), default=0) if folder.exists() else 0

    with Pair(tmp_path, *TRAIN) as pair:  # SIGTERM to one: both save the same step and leave
        pair.wait_for((work / "metrics.jsonl").exists)  # process 0 has begun, and handles the signal
        pair.send(0, signal.SIGTERM)
        assert pair.wait() == [143, 143], pair.output()
        assert "the same command continues" in pair.output(0)
    saved = steps()
    assert 0 < saved < STEPS and not (work / "final.json").exists()

    with Pair(tmp_path, *TRAIN, heartbeat=5) as pair:  # SIGKILL of one: the other says so and ends, soon
        pair.wait_for(lambda: steps() > saved)
        pair.send(killed, signal.SIGKILL)
        ended = pair.wait(60)
        assert ended[killed] == -signal.SIGKILL and ended[1 - killed] not in (0, 143), (ended, pair.output())
        said = pair.output(1 - killed)
        assert "Another process of this run has probably stopped" in said or "another task died" in said, said
    assert not (work / "final.json").exists()

    for command in (TRAIN, EVAL):
        with Pair(tmp_path, *command) as pair:
            assert pair.wait() == [0, 0], pair.output()
    assert_trained_alike(work, alone, STEPS)
    counts = table(work / "counts.csv")
    assert counts == table(alone / "counts.csv") and any("noc/hue" in row for row in counts)


def test_processes_with_different_settings_refuse(tmp_path):
    with Pair(tmp_path, *TRAIN, differently=["--config.seed=3"]) as pair:
        assert pair.wait() == [1, 1], pair.output()
        for process in (0, 1):
            assert "config.seed: 0 in process 0, 3 in process 1" in pair.output(process)
            assert "Traceback" not in pair.output(process)
    assert not (tmp_path / "host0" / "work").exists()


def test_processes_with_different_variables_refuse(tmp_path):
    """Each of them gave another model, or a wait of minutes for checkpoints that the other wrote elsewhere."""
    other = {
        "JAX_DEFAULT_PRNG_IMPL": "rbg",
        "JAX_ENABLE_X64": "1",
        "JAX_CORRUPTIONS_CHECKPOINTS": str(tmp_path / "own"),
    }
    with Pair(tmp_path, *TRAIN, other=other) as pair:
        assert pair.wait(60) == [1, 1], pair.output()
        for process in (0, 1):
            lines = pair.output(process)
            assert "64 bits: False' in process 0, 'rbg, partitionable: True, 64 bits: True' in process 1" in lines
            assert "own' in process 1" in lines and "Traceback" not in lines
    assert not (tmp_path / "host0" / "work").exists()


def write_images(folder, change=lambda paths: None):
    """Writes data/CLASS/NUMBER.png of four classes of six images, then changes some of the files."""
    for number, pixels in enumerate(np.random.default_rng(0).integers(0, 256, (24, 32, 32, 3), np.uint8)):
        path = folder / "data" / "abcd"[number % 4] / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    change(folder / "data")


def other_pixels(data):
    Image.fromarray(np.zeros((32, 32, 3), np.uint8)).save(data / "b" / "05.png")


def exchanged(data):
    for old, new in (("b", "e"), ("c", "b"), ("e", "c")):
        (data / old).rename(data / new)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (other_pixels, ("b/05.png", "b/05.png")),
        (lambda data: (data / "c" / "06.png").unlink(), ("c/06.png", "c/10.png")),
        (exchanged, ("b/01.png", "b/02.png")),
    ],
)
def test_processes_with_different_images_refuse(tmp_path, change, found):
    """Each of them trained, and process 0 recorded its own data as that of the run."""
    write_images(tmp_path / "host0")
    write_images(tmp_path / "host1", change)
    with Pair(tmp_path, *TRAIN, "--config.dataset.name=image_folder", "--config.dataset.data_dir=data") as pair:
        assert pair.wait(100) == [1, 1], pair.output()
        for process in (0, 1):
            (line,) = (line for line in pair.output(process).splitlines() if "expected the same" in line)
            assert "image_folder in all processes" in line and "Traceback" not in pair.output(process)
            here, there = line.partition("found ")[2].split(" in process 0 and ")
            assert here.startswith(found[0]) and there.startswith(found[1]) and "in process 1" in there
    assert not list(tmp_path.glob("host0/work/metrics.jsonl"))


def test_processes_with_different_stored_images_refuse(tmp_path):
    for host in ("host0", "host1"):
        images = np.random.default_rng(0).integers(0, 256, (6, 16, 16, 3), np.uint8)
        write_dataset(tmp_path / host / "set", (images, np.arange(6)), corruptions="noc/contrast", severities=[0.5, 1])
    path = tmp_path / "host1" / "set" / "contrast.npy"
    stat, content = path.stat(), path.read_bytes()
    path.write_bytes(content[:-9] + bytes(9))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as the manifest has them, so that nothing is read again
    with Pair(tmp_path, *EVAL, "--config.eval.stored=set") as pair:
        assert pair.wait(100) == [1, 1], pair.output()
        for process in (0, 1):
            assert "content of set in all processes, found contrast.npy" in pair.output(process)


TALK = """
import sys
import jax, numpy as np
from runtime import distributed

given = dict(argument.lstrip("-").split("=") for argument in sys.argv[1:])
me = int(given["process_id"])
distributed.initialize(given["coordinator"], int(given["num_processes"]), me, int(given["heartbeat_seconds"]))

assert distributed.is_main() == (me == 0)
assert distributed.from_main(lambda: {"from": [me]}) == {"from": [0]}
assert distributed.from_main(lambda: bytes([me, 255])) == bytes([0, 255])
assert distributed.from_main(lambda: None) is None
assert distributed.on_main(lambda: {me}) == ({0} if me == 0 else None)
inner = distributed.on_main(lambda: [distributed.from_main(lambda: me), distributed.on_main(lambda: me)])
assert inner == ([0, 0] if me == 0 else None)  # within a call of process 0 further calls are its own

def fail():
    raise OSError("disk full")

try:
    distributed.on_main(fail)
except Exception as error:
    assert type(error) is (OSError if me == 0 else distributed.ProcessError) and "disk full" in str(error)
else:
    raise AssertionError("an error of process 0 did not reach the others")

distributed.check_same({"a": 1})
assert distributed.all_equal([1, 2]) and not distributed.all_equal(me)
lines = [str(number) for number in range(2500)]
distributed.check_lines("numbers", lines, "count again")
for mine, found in (
    ([*lines[:2100], *lines[2100 + me:]], ["2100", "2101"]),
    (lines[: 2499 + me], ["nothing", "2499"]),
    ([str(me), *lines[1:]], ["0", "1"]),
):
    try:
        distributed.check_lines("numbers", mine, "count again")
    except distributed.ProcessError as error:
        assert f"found {found[0]} in process 0 and {found[1]} in process 1; count again" in str(error), error
    else:
        raise AssertionError("other lines were not found")
assert distributed.anyone(me == 1) and not distributed.anyone(False)
told = iter([False, me == 1, False, False])
ask = distributed.anyone_before(lambda: next(told))
assert [ask() for _ in range(4)] == [False, False, True, False]

mesh = jax.sharding.Mesh(np.asarray(jax.devices()), ("data",))
whole = np.arange(6.0, dtype=np.float32).reshape(2, 3)
for axes in ((), ("data",)):
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))
    np.testing.assert_array_equal(distributed.fetch(jax.make_array_from_callback((2, 3), sharding, lambda i: whole[i])), whole)
print("all said")
"""


def test_what_processes_tell_each_other(tmp_path):
    with Pair(tmp_path, "-c", TALK) as pair:
        assert pair.wait() == [0, 0], pair.output()
        assert all("all said" in pair.output(process) for process in (0, 1))


def test_a_single_process_asks_nobody():
    assert distributed.is_main() and distributed.anyone(True) and not distributed.anyone(False)
    found = object()
    assert distributed.from_main(lambda: found) is found and distributed.on_main(lambda: found) is found
    assert distributed.anyone_before(distributed.is_main) is distributed.is_main
    np.testing.assert_array_equal(distributed.fetch(jnp.arange(3)), [0, 1, 2])


def test_half_of_an_address_is_refused():
    refuses(lambda: distributed.initialize("127.0.0.1:1", None, 0), "--num_processes and --process_id together")


def test_checkpoints_can_lie_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_CORRUPTIONS_CHECKPOINTS", str(tmp_path / "elsewhere"))
    monkeypatch.chdir(tmp_path)
    for folder in ("runs/one/checkpoints", "../two/checkpoints"):
        with contextlib.closing(Checkpoints(folder)):
            assert (tmp_path / "elsewhere" / folder.removeprefix("../")).is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]


WAITS = """
import sys, jax, jax.numpy as jnp
from runtime import distributed, log
log.configure()
long = jax.jit(lambda x: jax.lax.while_loop(lambda y: y[0, 0] < 9, lambda y: y @ y, x))
with distributed.watch_signals() as stop:
    stop.stopping, stop.saved = (lambda: "stopping after step 3 of 9"), (lambda: "runs/a is saved at step 2 of 9")
    endless = long(jnp.eye(500))
    print("waits", flush=True)
    if sys.argv[1] == "in polls" and not stop.passed(endless):
        print("passed", flush=True)
    endless.block_until_ready()
"""


@pytest.mark.parametrize("number, name", [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_a_process_that_waits_for_the_device_answers_and_a_second_control_c_ends_it(number, name):
    waits = "in polls" if number == signal.SIGTERM else "for the device"
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, waits], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "waits\n"
        began = time.monotonic()
        process.send_signal(number)
        assert process.stderr.readline() == f"{name}: stopping after step 3 of 9. (A second Ctrl-C ends at once.)\n"
        if waits == "in polls":
            assert process.stdout.readline() == "passed\n"
            process.send_signal(signal.SIGTERM)  # a scheduler may send it again
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130 and time.monotonic() - began < 10
        assert process.stderr.read() == "Ended at once by a second Ctrl-C; runs/a is saved at step 2 of 9.\n"
    finally:
        process.kill()
