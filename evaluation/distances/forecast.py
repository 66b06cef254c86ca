"""How fast images go through a network, and how long those that are left will take."""

import time
from collections.abc import Callable

from runtime.log import log

_AFTER = 10.0
"""Seconds of work before a rate is told: the first of it is compiling and filling caches."""


class Forecast:
    """Counts images as they are done and says, once, what that means for the others.

    Args:
      images: how many there are to do.
      clock: seconds, rising.
    """

    def __init__(self, images: int, clock: Callable[[], float] = time.perf_counter):
        self._left, self._clock = images, clock
        self._begun: float | None = None
        self._done, self._told = 0, False

    def saw(self, images: int) -> None:
        """Counts images that are done; those of the first call, which compiles, are in no rate."""
        self._left -= images
        if self._begun is None:
            self._begun = self._clock()
            return
        self._done += images
        if not self._told and self._clock() - self._begun >= _AFTER:
            self._told = True
            log.info("%s images/s: %s images are left, about %s.", self._rate(), f"{self._left:,}", self._duration())

    def end(self) -> None:
        """Says how fast all of it was, where a forecast was made."""
        if self._told:
            log.info("%s images/s over all.", self._rate())

    def _seconds(self):
        return (self._clock() - self._begun) / self._done

    def _rate(self):
        return f"{1 / self._seconds():,.0f}"

    def _duration(self):
        seconds = max(self._left, 0) * self._seconds()
        for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
            if seconds >= 1.5 * length:
                return f"{seconds / length:.2g} {unit}"
        return f"{seconds:.0f} seconds"
