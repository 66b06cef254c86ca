"""Errors with fields. The library raises them where it refuses an argument; the fields make the one line that is printed."""

import copy
from typing import Any


class Refused(ValueError):
    """An argument is not what the call takes: "expected ..., found ...; what to do".

    Attributes:
      name: the argument: `images`, `severity`, `table`, ...
      expected: what the call takes, in words.
      actual: what was given: a value, shape, dtype or name of a type; or words, as in "values from 0 to 255".
      hint: what to do, mostly the call that works; "" where that is plain.
      place: which one it is of several, `image 3` or `noc/hue`; "" where there is one.
    """

    def __init__(self, name: str, expected: str, actual: Any, hint: str = "", place: str = "") -> None:
        # What pickle gives to the class again, in another process.
        super().__init__(name, expected, actual, hint, place)
        self.name, self.expected, self.actual, self.hint, self.place = name, expected, actual, hint, place

    def __str__(self) -> str:
        place, hint = self.place and f"{self.place}: ", self.hint and f"; {self.hint}"
        return f"{place}expected {self.expected}, found {self.actual}{hint}"

    def at(self, place: str) -> "Refused":
        """Returns the same error, of one among several."""
        error = copy.copy(self)
        error.place = f"{place}: {self.place}" if self.place else place
        return error


class RefusedType(Refused, TypeError):
    """An argument of another type or dtype than the call takes; a TypeError, too."""


class UnknownCorruption(Refused):
    """No corruption has this name, `actual`; `hint` has the nearest ones.

    Attributes:
      unknown_prefix: the part before the slash, where no registered corruption has it; "" otherwise.
    """

    unknown_prefix = ""


class MissingAssets(Refused):
    """A corruption needs pictures that this process has not read; `name` says which: `frost`, `bank`."""
