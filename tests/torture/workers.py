"""A process that runs cases of attacks which need no process each; another takes its place when it
dies.
"""

import contextlib
import multiprocessing
import os
import pathlib
import signal
import traceback
from collections.abc import Callable, Mapping

import numpy as np

from tests.torture import commands
from tests.torture.outcomes import Outcome

_LIMIT = 300.0  # seconds a case may take
_LONGEST = 400  # cases of one process


class Worker:
    """Cases in a forked process that keeps its compiled programs.

    Args:
      attacks: name -> function of (generator, folder) that returns an Outcome.
    """

    def __init__(self, attacks: Mapping[str, Callable[[np.random.Generator, pathlib.Path], Outcome]]):
        self._attacks, self._pid, self._pipe, self._cases = attacks, None, None, 0

    def case(self, attack: str, rng: np.random.Generator, folder: pathlib.Path) -> Outcome:
        """Runs one case; a process that dies or hangs is a failure of the case it had."""
        if self._pid is None or self._cases >= _LONGEST:
            self.close()
            self._start()
        self._cases += 1
        try:
            self._pipe.send((attack, rng, folder))
            began = commands.CLOCK.tick()
            while commands.CLOCK.tick() - began < _LIMIT:
                if self._pipe.poll(1.0):
                    return self._pipe.recv()
            story = f"no answer within {_LIMIT:.0f} s"
        except (EOFError, OSError):
            story = "the process died"
        status = self.close()
        return Outcome("lost", f"{story} (status {status}, case {self._cases} of this process)")

    def _start(self):
        self._pipe, theirs = multiprocessing.Pipe()
        mine = self._pipe

        def serve():
            mine.close()
            with contextlib.suppress(EOFError):
                while True:
                    theirs.send(self._answer(*theirs.recv()))

        silent = os.open(os.devnull, os.O_WRONLY)
        self._pid, self._cases = commands.fork(serve, silent), 0
        os.close(silent)
        theirs.close()

    def _answer(self, attack, rng, folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return self._attacks[attack](rng, folder)
        except Exception:  # noqa: BLE001 - whatever the attacked code raises is what we look for
            return Outcome("unclear", traceback.format_exc()[-3000:])

    def close(self) -> int | None:
        """Ends the process; returns its exit status, None where there was none."""
        if self._pid is None:
            return None
        self._pipe.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        _, status = os.waitpid(self._pid, 0)
        self._pid = None
        return os.waitstatus_to_exitcode(status)
