"""Jobs for schedulers: texts for SLURM and SkyPilot, and jobs that submitit starts.

A job is a command that continues where it stopped when it is given again, so all of them may be started anew.
"""

import os
import pathlib
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

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
    """A command as submitit calls it. A job whose time ends, or that is preempted, is queued again and continues."""

    def __init__(self, command: Sequence[str]):
        self.command, self.process = list(command), None

    def __call__(self) -> int:
        # A session of its own: schedulers signal whole groups of processes, and a command knows SIGTERM alone.
        self.process = subprocess.Popen(self.command, start_new_session=True)
        try:
            return self.process.wait()
        finally:
            self.stop()

    def stop(self) -> None:
        """Ends the command, which saves its state first."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()

    def checkpoint(self) -> Any:
        """Returns what is queued in place of this job."""
        from submitit.helpers import DelayedSubmission

        self.stop()
        return DelayedSubmission(_Job(self.command))


def launch(
    cluster: str, commands: Mapping[int, Sequence[str]], folder: pathlib.Path, options: Sequence[str]
) -> list[Any]:
    """Starts a job for each of {number: command} through submitit; returns submitit's jobs, for `wait`.

    Args:
      cluster: `slurm`, or `local`: all at once on this machine.
      commands: arguments of the jobs' commands; each works in the present folder.
      folder: folder of submitit's files: the jobs and their output.
      options: `KEY=VALUE` of submitit's `update_parameters`, such as timeout_min=120, gpus_per_node=1,
        slurm_partition=NAME. Without timeout_min a job may take a day.

    Raises:
      SettingsError: submitit is not installed, or an option is not as described.
    """
    try:
        import submitit
    except ImportError as error:
        raise SettingsError(f"--launch needs the package submitit ({error}); pip install submitit") from None
    parameters: dict[str, Any] = {"timeout_min": 24 * 60}
    for option in options:
        key, equals, value = option.partition("=")
        if not (key and equals):
            raise SettingsError(f"expected --job KEY=VALUE, found {option!r}")
        parameters[key] = int(value) if value.isdecimal() else value
    try:
        executor = submitit.AutoExecutor(folder=folder / "%j", cluster=cluster)
        executor.update_parameters(**parameters)
    except (NameError, RuntimeError, TypeError) as error:  # an unknown option; SLURM is not there
        raise SettingsError(f"--launch={cluster} and --job: {error}") from None
    with executor.batch():
        jobs = [executor.submit(_Job(command)) for command in commands.values()]
    for number, job in zip(commands, jobs, strict=True):
        log.info("member %d is job %s, which writes %s", number, job.job_id, job.paths.stdout)
    return jobs


def wait(job: Any) -> int:
    """Waits for the end of a job that `launch` started and returns its exit status."""
    from submitit.core.utils import UncompletedJobError

    try:
        return job.result()
    except UncompletedJobError as error:
        log.error("job %s: %s", job.job_id, str(error).splitlines()[0])
        return 1
