"""Jobs that run beside the main thread."""

import collections
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Background:
    """One thread that runs jobs in order, so that the device computes while files are written.

    Jobs after a failed one are skipped: a block whose images could not be written must not be recorded as complete.
    """

    def __init__(self, ahead: int) -> None:
        """Makes the thread; at most `ahead` jobs wait."""
        self._ahead = ahead
        self._thread = ThreadPoolExecutor(1)
        self._pending: collections.deque[Future[None]] = collections.deque()
        self._failed = False

    def run(self, function: Callable[..., object], *arguments: Any) -> None:
        """Queues a job; waits while the queue is full. Raises the error of an earlier job."""
        self._pending.append(self._thread.submit(self._guarded, function, *arguments))
        while len(self._pending) > self._ahead:
            self._pending.popleft().result()

    def _guarded(self, function, *arguments):
        if self._failed:
            return
        try:
            function(*arguments)
        except BaseException:
            self._failed = True
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self._failed = self._failed or kind is not None
        self._thread.shutdown()
        if kind is None:
            for future in self._pending:
                future.result()
