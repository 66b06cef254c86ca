"""Commands as processes, forked or started anew; a process for many cases; the seconds in which this process ran."""

import contextlib
import dataclasses
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tests import processes
from tests.processes import ROOT
from tests.torture.outcomes import Outcome

LIMIT = 240.0  # CPU seconds of a command that hangs, or seconds in which it takes none


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


class Watch:
    """Tells whether a process hangs: it takes many CPU seconds, or none at all for minutes. A busy machine makes it
    slow, not hanging. `seconds` are those of CPU time since the watch began, `hung` whether it ever hung.
    """

    def __init__(self, pid: int):
        self._pid, self._began, self._looked, self._moved = pid, _cpu_seconds(pid), -1.0, CLOCK.tick()
        self.seconds, self.hung = 0.0, False

    def look(self) -> float:
        """Returns the CPU seconds of the process and its children since the beginning."""
        now = _cpu_seconds(self._pid) - self._began
        if now > self.seconds:
            self.seconds, self._moved = now, CLOCK.tick()
        return self.seconds

    def hangs(self) -> bool:
        """Looks every tenth of a second."""
        now = CLOCK.tick()
        if now - self._looked > 0.1:
            self._looked = now
            self.hung = self.hung or self.look() > LIMIT or now - self._moved > LIMIT
        return self.hung


@dataclasses.dataclass(frozen=True)
class Ending:
    """How a process ended: exit status (negative: the signal), what it printed, seconds, whether a
    signal was sent while it ran, and the CPU seconds that it took before and after that."""

    status: int
    output: str
    seconds: float
    disturbed: bool = False
    hung: bool = False
    before: float = 0.0
    after: float = 0.0

    @property
    def traceback(self) -> bool:
        return "Traceback (most recent call last)" in self.output

    @property
    def importing(self) -> bool:
        """Whether Ctrl-C came while Python started or imported its first packages, and ended it with status 1."""
        first = "Fatal Python error: init_import_site" in self.output or (self.traceback and self.before < 0.5)
        return self.status == 1 and self.disturbed and first

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
      streams: a shell's words behind the command, such as `>&-` or `| true`; it starts anew then.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        anew: bool = False,
        file_size: int | None = None,
        streams: str = "",
    ):
        command, own, self._began = [sys.executable, *argv], os.environ | dict(environment or {}), CLOCK.tick()
        anew = anew or bool(streams)
        self._file = tempfile.TemporaryFile() if anew else None  # noqa: SIM115
        if streams:
            command = ["bash", "-c", f'set -o pipefail; "$0" "$@" {streams}', *command]
        if anew:
            outputs = {"stdout": self._file, "stderr": subprocess.STDOUT}
            self._process = subprocess.Popen(command, cwd=ROOT, env=own, start_new_session=True, **outputs)
        else:
            self._process = processes.Process(command, env=own, together=True)
        if file_size is not None:
            resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (file_size, resource.RLIM_INFINITY))
        _LIVE.add(self)

    def running(self) -> bool:
        """Tells whether the process still runs."""
        if self._process.poll() is None:
            return True
        _LIVE.discard(self)
        return False

    def send(self, number: int) -> None:
        """Sends a signal to the process; SIGKILL to the commands that it started, too."""
        started = _children(self._process.pid) if number == signal.SIGKILL else []
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            self._process.send_signal(number)
        for pid in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def wait(
        self,
        kill: int | None = None,
        due: Callable[[float], bool] = lambda seconds: False,
        again: float | None = None,
    ) -> Ending:
        """Waits for the end, and sends the signal `kill` when `due(seconds since the start)` says so, and once more
        `again` seconds later."""
        watch = Watch(self._process.pid)
        sent, before = None, 0.0
        while self.running():
            seconds = CLOCK.tick() - self._began
            if sent is None and kill is not None and due(seconds):
                before = watch.look()
                self.send(kill)
                sent = seconds
            if sent is not None and again is not None and seconds > sent + again:
                self.send(kill)
                again = None
            if watch.hangs():
                self.send(signal.SIGKILL)
            time.sleep(0.01)
        after = 0.0 if sent is None else max(0.0, watch.seconds - before)
        seconds = CLOCK.tick() - self._began
        return Ending(self._process.returncode, self._output(), seconds, sent is not None, watch.hung, before, after)

    def _output(self):
        if self._file is None:
            return self._process.communicate()[0]
        self._file.seek(0)
        return self._file.read().decode(errors="replace")


def _children(pid):
    """Processes that a process started and that run, at any depth."""
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, path.read_text().split()):
                found += [child, *_children(child)]
    return found


def _cpu_seconds(pid):
    """CPU seconds so far of a process, and of the processes that it started."""
    found = 0
    for one in (pid, *_children(pid)):
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            found += sum(map(int, words[11:15]))
    return found / os.sysconf("SC_CLK_TCK")


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


_LONGEST = 400  # cases of one process


class Worker:
    """Cases in a process of its own, which keeps its compiled programs; `attacks` are functions by name."""

    def __init__(self, attacks: Mapping[str, Callable[[np.random.Generator, pathlib.Path], Outcome]]):
        self._attacks, self._process, self._pipe, self._cases = attacks, None, None, 0

    def case(self, attack: str, rng: np.random.Generator, folder: pathlib.Path) -> Outcome:
        """Runs one case; a process that dies or hangs is a failure of the case it had."""
        if self._process is None or self._cases >= _LONGEST:
            self.close()
            self._process, self._pipe = processes.fork(_serve, dict(self._attacks), dict(os.environ))
            self._cases = 0
        self._cases += 1
        try:
            self._pipe.send((attack, rng, folder))
            watch = Watch(self._process.pid)
            while not watch.hangs():
                if self._pipe.poll(1.0):
                    return self._pipe.recv()
            story = f"no answer after {watch.seconds:.0f} CPU seconds"
        except (EOFError, OSError):
            story = "the process died"
        status = self.close()
        return Outcome("lost", f"{story} (status {status}, case {self._cases} of this process)")

    def close(self) -> int | None:
        """Ends the process; returns its exit status, None where there was none."""
        if self._process is None:
            return None
        self._pipe.close()
        self._process.kill()
        self._process.join()
        status, self._process = self._process.exitcode, None
        return status


def _serve(pipe, attacks, environment):
    """The process: answers (attack, generator, folder) with an Outcome, silently, until the pipe is closed."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    processes.adopt(environment)
    with contextlib.suppress(EOFError):
        while True:
            attack, rng, folder = pipe.recv()
            folder.mkdir(parents=True, exist_ok=True)
            try:
                outcome = attacks[attack](rng, folder)
            except Exception:  # noqa: BLE001 - whatever the attacked code raises is what we look for
                outcome = Outcome("unclear", traceback.format_exc()[-3000:])
            pipe.send(outcome)
