"""runtime.jobs: texts that bash and YAML read, and submitit's local executor where it is installed, else skipped."""

import os
import signal
import subprocess
import sys
import time

import pytest
import yaml

from runtime import jobs
from runtime.settings import SettingsError

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
    with pytest.raises(SettingsError, match="expected --job KEY=VALUE, found 'gpus'"):
        jobs.launch("local", {}, tmp_path, ["gpus"])
    with pytest.raises(SettingsError, match=r"--launch=local and --job: .*gpu"):
        jobs.launch("local", {}, tmp_path, ["gpu=1"])


def test_without_submitit_its_name_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(SettingsError, match=r"--launch needs the package submitit .*; pip install submitit"):
        jobs.launch("local", {}, tmp_path, [])


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
    """Statuses of commands, what they print, and a job that is stopped while its command runs."""
    pytest.importorskip("submitit")
    code = "import sys; print('member', sys.argv[1]); sys.exit(75 * int(sys.argv[1]))"
    started = jobs.launch("local", {n: [sys.executable, "-c", code, str(n)] for n in (0, 1)}, tmp_path, [])
    assert [jobs.wait(job) for job in started] == [0, 75]
    assert "member 1" in started[1].stdout()
    mark = tmp_path / "mark"
    waits = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(15, lambda *_: (pathlib.Path(sys.argv[1]).write_text('told'), sys.exit(143)))\n"
        "pathlib.Path(sys.argv[1]).write_text('runs'); time.sleep(300)"
    )
    # A test in the background ignores SIGINT, and its jobs would inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    (job,) = jobs.launch("local", {0: [sys.executable, "-c", waits, str(mark)]}, tmp_path, ["timeout_min=5"])
    signal.signal(signal.SIGINT, before)
    limit = time.monotonic() + 120
    while not mark.exists() and time.monotonic() < limit:
        time.sleep(0.1)
    os.kill(int(job.job_id), signal.SIGINT)
    while mark.read_text() != "told" and time.monotonic() < limit:
        time.sleep(0.1)
    assert mark.read_text() == "told"
