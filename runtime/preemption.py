"""SIGTERM, which schedulers send before they take a machine away: training saves its state and exits with status 143.

Outside of training (evaluation, calibration), whose finished parts are files already, SIGTERM ends the process at once.
Of many processes one that is told to end is enough: all save together, at the end of the block after.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

from runtime import distributed


@contextlib.contextmanager
def watch() -> Iterator[Callable[[], bool]]:
    """Yields a function that says whether SIGTERM has come; meanwhile it does not end the process.

    Outside the main thread, where Python allows no handler, SIGTERM keeps its meaning and the answer is always no.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    came = []
    before = signal.signal(signal.SIGTERM, lambda *_: came.append(True))
    try:
        yield distributed.anyone_before(lambda: bool(came))
    finally:
        signal.signal(signal.SIGTERM, before)
    if distributed.anyone(came):  # in the last block: this run is finished, but nothing after it should begin
        leave()


def leave() -> NoReturn:
    """Ends the process with the exit status of one that SIGTERM ended."""
    raise SystemExit(128 + signal.SIGTERM)
