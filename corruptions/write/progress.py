"""A progress bar, and jobs that run beside the main thread."""

import collections
import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

EVERY = 10.0
"""Seconds between two lines of text."""


@contextlib.contextmanager
def bar(total: int | None, description: str, progress: bool | None) -> Iterator[Any]:
    """Yields a progress bar that counts images (tqdm), or lines of text without tqdm.

    `total` is None if the number of images is not known. `progress` is True, False, or None for where standard error
    is a terminal; nothing is shown where standard error is closed.
    """
    shown = sys.stderr is not None and (progress or (progress is None and sys.stderr.isatty()))
    try:
        from tqdm import tqdm  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        yield _Lines(total, description, shown)
        return
    with tqdm(total=total, desc=description, unit="img", unit_scale=True, disable=not shown) as counter:
        yield counter


class _Lines:
    """Shows progress as lines of text, one for each description and one every `EVERY` seconds."""

    def __init__(self, total: int | None, description: str, shown: bool) -> None:
        self._of = f" of {total:,}" if total else ""
        self._shown, self._count, self._text, self._said = shown, 0, description, time.monotonic()

    def set_description(self, text: str) -> None:
        self._text, self._said = text, -math.inf
        self.update(0)

    def update(self, count: int) -> None:
        self._count += count
        if self._shown and time.monotonic() - self._said >= EVERY:
            print(f"{self._text}: {self._count:,}{self._of} images", file=sys.stderr, flush=True)
            self._said = time.monotonic()


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
