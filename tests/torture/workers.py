"""A process that runs cases of attacks which need no process each; another takes its place when it dies."""

import contextlib
import os
import pathlib
import traceback
from collections.abc import Callable, Mapping

import numpy as np

from tests import processes
from tests.torture import commands
from tests.torture.outcomes import Outcome

_LONGEST = 400  # cases of one process


class Worker:
    """Cases in a process of its own, which keeps its compiled programs.

    Args:
      attacks: name -> function of (generator, folder) that returns an Outcome.
    """

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
            watch = commands.Watch(self._process.pid)
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
