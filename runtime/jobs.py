"""Jobs for schedulers: texts for SLURM and SkyPilot, and jobs that submitit starts.

A job is a command that continues where it stopped when it is given again, so all of them may be started anew.
"""

import contextlib
import os
import pathlib
import secrets
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from corruptions.files import take_lock
from runtime.log import log
from runtime.settings import SettingsError

_SLURM = """#!/bin/bash
#SBATCH --job-name=sweep
#SBATCH --array={numbers}
# Give sbatch what a task needs: sbatch --gpus=1 --time=2:00:00 FILE. When all tasks have ended, the last line without
# --member runs the missing members and writes the table.
cd {folder}
exec {command} --member="$SLURM_ARRAY_TASK_ID"
"""
_SKYPILOT = """# Starts a job for each member; add what a job needs, such as --gpus=L4:1 --use-spot (for TPUs jax[tpu] below):
#   for member in {numbers}; do sky jobs launch --yes --detach-run --name=sweep-$member --env MEMBER=$member FILE; done
# A job that was preempted starts again and continues from the bucket. When all jobs have ended, the command without
# --print writes the table.
name: sweep
workdir: .
envs:
  MEMBER: null
setup: |
  python -m pip install uv
  python -m uv venv --seed --python 3.12 .venv
  .venv/bin/python -m pip install -e '.[study,cloud]' 'jax[cuda12]'
run: |
  . .venv/bin/activate
  case $MEMBER in
{members}
  *) echo "expected --env MEMBER={choice}, found '$MEMBER'" >&2; exit 1 ;;
  esac
"""


def slurm(numbers: Sequence[int], command: Sequence[str]) -> str:
    """Writes a file for sbatch: an array with a task for each number, which runs `command --member=NUMBER`."""
    listed = ",".join(map(str, numbers))
    return _SLURM.format(numbers=listed, folder=shlex.quote(os.getcwd()), command=shlex.join(command))


def skypilot(commands: Mapping[int, str]) -> str:
    """Writes a YAML file for `sky jobs launch`, which runs the shell command of the number $MEMBER."""
    numbers = [str(number) for number in commands]
    members = "\n".join(f"  {number}) {command} ;;" for number, command in commands.items())
    return _SKYPILOT.format(numbers=" ".join(numbers), choice="|".join(numbers), members=members)


class _Job:
    """A command as submitit calls it. A job whose time ends, or that is preempted, is queued again and continues.

    A job of this machine ends with the process that started it: `wanted` is a file that this process holds a lock of.
    """

    def __init__(self, command: Sequence[str], wanted: pathlib.Path | None = None):
        self.command, self.wanted, self.process = list(command), wanted, None

    def __call__(self) -> int:
        # A session of its own: schedulers signal whole groups of processes, and a command knows SIGTERM alone.
        self.process = subprocess.Popen(self.command, start_new_session=True)
        try:
            while self._is_wanted():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return self.process.wait(1 if self.wanted else None)
        finally:
            self.stop()
        return self.process.returncode

    def _is_wanted(self):
        if self.wanted is None:
            return True
        try:
            with open(self.wanted, "r+") as file:
                return not take_lock(file, self.wanted.parent)
        except FileNotFoundError:
            return False

    def stop(self) -> None:
        """Ends the command, which saves its state first."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()

    def checkpoint(self) -> Any:
        """Returns what is queued in place of this job."""
        from submitit.helpers import DelayedSubmission

        self.stop()
        return DelayedSubmission(_Job(self.command, self.wanted))


def launch(
    cluster: str, commands: Mapping[int, Sequence[str]], folder: pathlib.Path, options: Sequence[str]
) -> dict[int, int]:
    """Starts a job for each of {number: command} through submitit; waits for local ones and returns their exit statuses.

    Where this process is stopped (Ctrl-C, SIGTERM), it stops local jobs and waits until they have saved their state.

    Args:
      cluster: `slurm`, or `local`: all at once on this machine.
      commands: arguments of the jobs' commands; each works in the present folder.
      folder: folder of submitit's files: the jobs and their output.
      options: `KEY=VALUE` of submitit's `update_parameters`, such as timeout_min=120, gpus_per_node=1,
        slurm_partition=NAME. Without timeout_min a job may take a day.

    Raises:
      SettingsError: submitit is not installed, or an option is not as described.
      SystemExit, KeyboardInterrupt: SIGTERM or Ctrl-C came.
    """
    try:
        import submitit
    except ImportError as error:
        raise SettingsError(f"a launch needs the package submitit ({error}); pip install submitit") from None
    parameters: dict[str, Any] = {"timeout_min": 24 * 60}
    for option in options:
        key, equals, value = option.partition("=")
        if not (key and equals):
            raise SettingsError(f"expected the options of a job as KEY=VALUE, found {option!r}")
        parameters[key] = int(value) if value.isdecimal() else value
    try:
        executor = submitit.AutoExecutor(folder=folder / "%j", cluster=cluster)
        executor.update_parameters(**parameters)
    except (NameError, RuntimeError, TypeError) as error:  # an unknown option; SLURM is not there
        raise SettingsError(f"the launch on {cluster} with these options: {error}") from None
    if cluster != "local":
        _start(executor, commands)
        return {}
    started: dict[int, Any] = {}
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with _wanting(folder) as wanted:
            started = _start(executor, commands, wanted)
            return {number: _wait(job) for number, job in started.items()}
    except BaseException:
        log.info("stopping %d jobs, which save their state first", len(started))
        for job in started.values():
            _wait(job)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _start(executor, commands, wanted=None):
    # A terminal sends Ctrl-C to all its processes. Jobs inherit that it is blocked: submitit would kill them after a second.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        with executor.batch():
            jobs = [executor.submit(_Job(command, wanted)) for command in commands.values()]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    for number, job in zip(commands, jobs, strict=True):
        log.info("member %d is job %s, which writes %s", number, job.job_id, job.paths.stdout)
    return dict(zip(commands, jobs))


@contextlib.contextmanager
def _wanting(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a file that is there, and locked, while the block runs: jobs end when it is not."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".wanted-{secrets.token_hex(4)}"
    with open(path, "x") as file:
        take_lock(file, folder)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


def _wait(job):
    """Waits for the end of a job and returns its exit status."""
    from submitit.core.utils import UncompletedJobError

    try:
        return job.result()
    except UncompletedJobError as error:
        log.error("job %s: %s", job.job_id, str(error).splitlines()[0])
        return 1
