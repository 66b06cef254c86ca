"""SIGTERM, which schedulers send before they take a machine away, and Ctrl-C: training saves its state and ends.

The exit status is 143 or 130. A second Ctrl-C does not wait for the block that runs. Outside of training (evaluation,
calibration), whose finished parts are files already, both end the process at once.
Of many processes one that is told to end is enough: all save together, at the end of the block after.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

from runtime import distributed

_STATUS = 128 + signal.SIGTERM


@contextlib.contextmanager
def watch() -> Iterator[Callable[[], bool]]:
    """Yields a function that says whether SIGTERM or Ctrl-C has come; meanwhile they do not end the process.

    Outside the main thread, where Python allows no handler, they keep their meaning and the answer is always no.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    came = []

    def note(number, _):
        if number == signal.SIGINT and signal.SIGINT in came:
            raise KeyboardInterrupt
        came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield distributed.anyone_before(lambda: bool(came))
    except SystemExit as end:
        if signal.SIGINT in came and end.code == _STATUS:
            raise KeyboardInterrupt from end  # saved; the command says so and chooses its status
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if distributed.anyone(came):  # in the last block: this run is finished, but nothing after it should begin
        if signal.SIGINT in came:
            raise KeyboardInterrupt
        leave()


def leave() -> NoReturn:
    """Ends the process with the exit status of one that SIGTERM ended."""
    raise SystemExit(_STATUS)
