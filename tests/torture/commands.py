"""Commands as processes of their own: forked from this one, which has imported everything, or
started anew.

A fork runs the script as `python SCRIPT ...` does, without the seconds that imports take. It needs
a parent in which JAX has started no device; the children start their own.
"""

import atexit
import contextlib
import dataclasses
import importlib
import io
import os
import pathlib
import resource
import runpy
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 240.0  # seconds after which a command counts as hanging
_ENDS = (signal.SIGINT, signal.SIGTERM)
_SCRIPTS = ("train", "eval", "overlap", "select_noc")
_TOOLS = ("adapt", "calibrate", "msd", "report", "strength")


class Clock:
    """Seconds in which this process ran: those for which it was stopped (SIGSTOP, a machine asleep)
    do not count.
    """

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


def import_all() -> None:
    """Imports what the commands import, so that forks find it in memory."""
    for name in (*_SCRIPTS, *(f"tools.{name}" for name in _TOOLS), "corruptions.write.__main__", "data.image_folder"):
        importlib.import_module(name)
    for name in (*_SCRIPTS, *(f"tools.{name}" for name in _TOOLS), "corruptions.write.__main__"):
        del sys.modules[name]  # each process runs its script as __main__


class Process:
    """A command that runs: `argv` as after `python`, a script with arguments or `-m MODULE ...`.

    Args:
      argv: of the command.
      environment: variables that are set besides this process's own.
      anew: start a Python of its own in place of a fork.
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
        self._output, self._began, self._status = b"", CLOCK.tick(), None
        self._pipe, end = os.pipe()  # no file, whose size would be limited
        os.set_blocking(self._pipe, False)
        prepare = _prepared(environment or {}, file_size)
        if anew:
            whole = [sys.executable, *argv]
            self._child = subprocess.Popen(
                whole, cwd=ROOT, stdout=end, stderr=end, preexec_fn=prepare, start_new_session=True
            )
            self.pid = self._child.pid
        else:
            self.pid = fork(lambda: (prepare(), _run(argv)), end)
        os.close(end)
        _LIVE.add(self)

    def running(self) -> bool:
        """Whether the process has not ended yet."""
        self._read()
        if self._status is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self._read()
                os.close(self._pipe)
                self._status = os.waitstatus_to_exitcode(status)
                _LIVE.discard(self)
        return self._status is None

    def _read(self):
        with contextlib.suppress(BlockingIOError):
            while self._status is None and (part := os.read(self._pipe, 2**16)):
                self._output += part

    def send(self, number: int) -> None:
        """Sends a signal to the process."""
        os.kill(self.pid, number)

    def wait(self, kill: int | None = None, due: Callable[[float], bool] = lambda seconds: False) -> Ending:
        """Waits for the end, and sends the signal `kill` once when `due(seconds since the start)`
        says so.
        """
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
        output = self._output.decode(errors="replace")
        return Ending(self._status, output, CLOCK.tick() - self._began, disturbed, hung)


_LIVE: set[Process] = set()


def end_all() -> None:
    """Kills the processes that still run, when a case is given up."""
    for process in list(_LIVE):
        process.send(signal.SIGKILL)
        process.wait()


def run(argv: Sequence[str], **options) -> Ending:
    """Runs a command to its end, see `Process`."""
    return Process(argv, **options).wait()


def fork(function: Callable[[], object], output: int | None = None) -> int:
    """Calls `function` in a forked process, whose output goes to a file descriptor; returns its
    id.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)  # until the child has handlers of its own
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
        return pid
    status = 70
    try:
        _own_signals()
        os.setsid()  # Ctrl-C is for the parent
        if output is not None:
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.stdout = _text(1)
            sys.stderr = _text(2)
        status = _status_of(function)
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
        os._exit(status)


def _text(descriptor):
    return io.TextIOWrapper(io.FileIO(descriptor, "w", closefd=False), line_buffering=True, write_through=True)


def _status_of(function):
    """What Python would end with."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
        function()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException as error:  # noqa: BLE001 - as the interpreter does at its top
        traceback.print_exc()
        status = 130 if isinstance(error, KeyboardInterrupt) else 1
    threading._shutdown()
    atexit._run_exitfuncs()
    return status & 255


def _run(argv):
    os.chdir(ROOT)
    if argv[0] == "-m":
        sys.argv = [argv[1], *argv[2:]]
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(argv)
        sys.path.insert(0, str(ROOT))
        runpy.run_path(argv[0], run_name="__main__")


def _own_signals():
    """As Python has them, whatever the parent or the shell that started it chose."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _prepared(environment, file_size):
    def prepare():
        _own_signals()
        os.environ.update(environment)
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, resource.RLIM_INFINITY))

    return prepare
