"""SIGTERM, which schedulers send before they take a machine away, and Ctrl-C: training saves its
state and ends.

The exit status is 143 or 130. A second Ctrl-C does not wait for the block that runs. Outside of
training (evaluation, calibration), whose finished parts are files already, both end the process at
once. Of many processes one that is told to end is enough: all save together, at the end of the
block after.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

from runtime import distributed


class Watch:
    """The signals that have come; calling it says whether this run ends, the same in all
    processes.
    """

    def __init__(self) -> None:
        self.came: list[int] = []
        self._asked: Callable[[], bool] = distributed.anyone_before(lambda: bool(self.came))

    def __call__(self) -> bool:
        return self._asked()

    def leave(self) -> NoReturn:
        """Ends the process for the signals that came to it.

        Raises:
          KeyboardInterrupt: Ctrl-C was among them; the command says so and chooses its status.
          SystemExit: with the status of one that SIGTERM ended, which came here or to another
            process.
        """
        if signal.SIGINT in self.came:
            raise KeyboardInterrupt
        raise SystemExit(128 + signal.SIGTERM)


@contextlib.contextmanager
def watch() -> Iterator[Watch]:
    """Yields a `Watch` for SIGTERM and Ctrl-C; meanwhile they do not end the process.

    Outside the main thread, where Python allows no handler, they keep their meaning and the answer
    is always no.
    """
    watched = Watch()
    if threading.current_thread() is not threading.main_thread():
        yield watched
        return

    def note(number, _):
        if number == signal.SIGINT and signal.SIGINT in watched.came:
            raise KeyboardInterrupt
        watched.came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield watched
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if distributed.anyone(watched.came):  # in the last block: this run is finished, but nothing after should begin
        watched.leave()
