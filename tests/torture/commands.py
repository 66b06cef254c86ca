"""Commands as processes of their own, forked or started anew, and the seconds in which this process ran."""

import contextlib
import dataclasses
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence

from tests import processes
from tests.processes import ROOT

LIMIT = 240.0  # seconds after which a command counts as hanging


class Clock:
    """Seconds in which this process ran: those for which it was stopped (SIGSTOP, a machine asleep) do not count."""

    def __init__(self):
        self._seconds, self._last = 0.0, time.monotonic()

    def tick(self) -> float:
        """Returns the seconds so far; asked every few seconds at least."""
        now = time.monotonic()
        self._seconds += min(now - self._last, 10.0)
        self._last = now
        return self._seconds


CLOCK = Clock()


@dataclasses.dataclass(frozen=True)
class Ending:
    """How a process ended: exit status (negative: the signal), what it printed, seconds, and
    whether a signal was sent while it ran."""

    status: int
    output: str
    seconds: float
    disturbed: bool = False
    hung: bool = False

    @property
    def traceback(self) -> bool:
        return "Traceback (most recent call last)" in self.output

    def tail(self, characters: int = 600) -> str:
        """The end of the output, progress bars left out."""
        lines = [line.split("\r")[-1].strip() for line in self.output.split("\n")]
        return "\n".join(line for line in lines if line)[-characters:]


class Process:
    """A command that runs: `argv` as after `python`, a script with arguments or `-m MODULE ...`.

    Args:
      argv: of the command.
      environment: variables that are set besides this process's own.
      anew: start a Python that imports everything by itself, in place of a fork.
      file_size: no file may grow beyond so many bytes, as on a full disk.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        anew: bool = False,
        file_size: int | None = None,
    ):
        command, own, self._began = [sys.executable, *argv], os.environ | dict(environment or {}), CLOCK.tick()
        self._file = tempfile.TemporaryFile() if anew else None  # noqa: SIM115
        if anew:
            streams = {"stdout": self._file, "stderr": subprocess.STDOUT}
            self._process = subprocess.Popen(command, cwd=ROOT, env=own, start_new_session=True, **streams)
        else:
            self._process = processes.Process(command, env=own, together=True)
        if file_size is not None:
            resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (file_size, resource.RLIM_INFINITY))
        _LIVE.add(self)

    def running(self) -> bool:
        """Whether the process has not ended yet."""
        if self._process.poll() is None:
            return True
        _LIVE.discard(self)
        return False

    def send(self, number: int) -> None:
        """Sends a signal to the process."""
        self._process.send_signal(number)

    def wait(self, kill: int | None = None, due: Callable[[float], bool] = lambda seconds: False) -> Ending:
        """Waits for the end, and sends the signal `kill` once when `due(seconds since the start)` says so."""
        disturbed = hung = False
        while self.running():
            seconds = CLOCK.tick() - self._began
            if not disturbed and kill is not None and due(seconds):
                self.send(kill)
                disturbed = True
            if seconds > LIMIT:
                self.send(signal.SIGKILL)
                hung = True
            time.sleep(0.004)
        return Ending(self._process.returncode, self._output(), CLOCK.tick() - self._began, disturbed, hung)

    def _output(self):
        if self._file is None:
            return self._process.communicate()[0]
        self._file.seek(0)
        return self._file.read().decode(errors="replace")


_LIVE: set[Process] = set()


def end_all() -> None:
    """Kills the processes that still run, when a case is given up."""
    for process in list(_LIVE):
        with contextlib.suppress(ProcessLookupError):
            process.send(signal.SIGKILL)
        process.wait()


def run(argv: Sequence[str], **options) -> Ending:
    """Runs a command to its end, see `Process`."""
    return Process(argv, **options).wait()
