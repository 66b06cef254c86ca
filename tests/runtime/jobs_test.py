"""runtime.jobs: texts that bash and YAML read, and submitit's local executor where it is installed, else skipped."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import yaml

from runtime import jobs
from runtime.settings import SettingsError
from tests.refusing import refuses

COMMAND = ["python", "-m", "tools.sweep", "--sweep=seed=0,1 2"]


def test_an_array_of_slurm_runs_the_numbers():
    text = jobs.slurm([1, 4], COMMAND)
    assert "#SBATCH --array=1,4\n" in text and f"cd {os.getcwd()}\n" in text
    assert "'--sweep=seed=0,1 2' --member=\"$SLURM_ARRAY_TASK_ID\"" in text
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_a_job_of_skypilot_runs_one_command():
    text = jobs.skypilot({0: "echo 'a: b' && echo c", 3: "echo d"})
    task = yaml.safe_load(text)
    assert task["envs"] == {"MEMBER": None} and "'.[study,cloud]' 'jax[cuda12]'" in task["setup"]
    for member, expected in (("0", "a: b\nc\n"), ("3", "d\n"), ("1", "")):
        done = subprocess.run(
            ["bash", "-c", task["run"]], env={**os.environ, "MEMBER": member}, capture_output=True, text=True
        )
        assert done.stdout == expected and (done.returncode == 0) == bool(expected)
    assert "expected --env MEMBER=0|3, found '1'" in done.stderr
    loop = next(line for line in text.splitlines() if "sky jobs launch" in line).removeprefix("#").strip()
    done = subprocess.run(["bash", "-c", loop.replace("sky", "echo")], capture_output=True, text=True, check=True)
    assert [line.split("MEMBER=")[1] for line in done.stdout.splitlines()] == ["0 FILE", "3 FILE"]


def test_options_of_jobs_are_checked(tmp_path):
    pytest.importorskip("submitit")
    refuses(lambda: jobs.launch("local", {}, tmp_path, ["gpus"]), "KEY=VALUE", kind=SettingsError)
    refuses(lambda: jobs.launch("local", {}, tmp_path, ["gpu=1"]), "gpu", kind=SettingsError)


def test_without_submitit_its_name_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    refuses(lambda: jobs.launch("local", {}, tmp_path, []), "pip install submitit", kind=SettingsError)


def test_a_preempted_job_stops_its_command_and_is_queued_again():
    pytest.importorskip("submitit")
    told = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(143)); print(1, flush=True); time.sleep(60)"
    job = jobs._Job([sys.executable, "-c", told])
    job.process = subprocess.Popen(job.command, stdout=subprocess.PIPE)
    job.process.stdout.readline()
    again = job.checkpoint()
    assert job.process.returncode == 143
    assert again.function.command == job.command and again.function.process is None


@pytest.mark.slow
def test_jobs_of_submitit_on_this_machine(tmp_path):
    """Statuses of commands, and what they print."""
    pytest.importorskip("submitit")
    code = "import sys; print('member', sys.argv[1]); sys.exit(75 * int(sys.argv[1]))"
    assert jobs.launch("local", {n: [sys.executable, "-c", code, str(n)] for n in (0, 1)}, tmp_path, []) == {
        0: 0,
        1: 75,
    }
    assert sorted(path.read_text().count("member 1") for path in tmp_path.glob("*/*.out")) == [0, 1]


SAVES = """
import pathlib, signal, sys, time
def save(*_):
    time.sleep(float(sys.argv[2]))
    pathlib.Path(sys.argv[1]).write_text('saved')
    sys.exit(143)
signal.signal(15, save)
pathlib.Path(sys.argv[1]).write_text('runs'); time.sleep(300)
"""
LAUNCHES = """
import sys
from runtime import jobs
commands = {n: [sys.executable, '-c', sys.argv[1], f'{sys.argv[2]}/mark{n}', sys.argv[3]] for n in (0, 1)}
jobs.launch('local', commands, __import__('pathlib').Path(sys.argv[2], 'jobs'), ['timeout_min=5'])
"""


def until(true, seconds=60):
    limit = time.monotonic() + seconds
    while not true() and time.monotonic() < limit:
        time.sleep(0.05)
    assert true()


def text(path):
    return path.read_text() if path.exists() else ""


def processes_with(argument):
    """Numbers of processes with such an argument, or a part of one."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if argument.encode() in path.read_bytes():
                yield int(path.parent.name)


@pytest.mark.parametrize(
    ("number", "group", "seconds"),
    [
        (signal.SIGTERM, False, 0.2),
        pytest.param(signal.SIGINT, False, 0.2, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, True, 2, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, False, 2, marks=pytest.mark.slow),
    ],
)
def test_jobs_on_this_machine_end_with_the_process_that_started_them(number, group, seconds, tmp_path):
    """A terminal sends Ctrl-C to the whole group. They save their state first, and the process waits for that."""
    pytest.importorskip("submitit")
    command = [sys.executable, "-c", LAUNCHES, SAVES, str(tmp_path), str(seconds)]
    marks = [tmp_path / "mark0", tmp_path / "mark1"]
    # A test in the background ignores SIGINT, and its processes would inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    launcher = subprocess.Popen(command, start_new_session=True)
    signal.signal(signal.SIGINT, before)
    try:
        until(lambda: [text(mark) for mark in marks] == ["runs"] * 2)
        (os.killpg if group else os.kill)(launcher.pid, number)
        status = launcher.wait(60)
        if number != signal.SIGKILL:
            assert [text(mark) for mark in marks] == ["saved"] * 2 and status
        until(lambda: [text(mark) for mark in marks] == ["saved"] * 2)
        until(lambda: not list(processes_with(str(tmp_path))))
    finally:
        for left in processes_with(str(tmp_path)):
            os.kill(left, signal.SIGKILL)
