"""Counts of correct answers, what is measured: counts.csv, and what its conditions are called.

counts.csv        model,seed,corruption,severity,correct,total       what is measured
scores.csv        the same and accuracy, error, R, with standard errors   derived, for people
"""

import math
import pathlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from analysis.lines import NAME, read_lines, write_rows

COUNTS_HEADER = ("model", "seed", "corruption", "severity", "correct", "total")
SCORES_HEADER = (*COUNTS_HEADER, "accuracy", "accuracy_se", "error", "error_se", "R", "R_se")
CLEAN = "clean"
NATURAL = "natural/"  # before the name of a natural shift, which is a condition too
OF_CLASSES = "clean/"  # before the same name: clean images of the same classes
STANDARD = "standard"
RANDOM = "random"
_INTEGER = re.compile(r"0|[1-9][0-9]*")
_FRACTION = re.compile(r"[0-9]+\.[0-9]+(e-[0-9]+)?|[1-9][0-9]*e-[0-9]+")


class Count(NamedTuple):
    """Correct answers of one model on one test set.

    Attributes:
      model: name of the corruption it was trained with, or `standard`.
      seed: seed of the training run, >= 0.
      corruption: qualified name of the test corruption, or `clean`.
      severity: integer level, fraction of the range (float), or `random` (drawn per image);
        0 for `clean`.
      correct: images classified correctly, 0..total.
      total: images shown, >= 1.
    """

    model: str
    seed: int
    corruption: str
    severity: int | float | str
    correct: int
    total: int

    @property
    def key(self):
        """What identifies the measurement."""
        return self[:4]

    @property
    def error(self) -> float:
        """Part of the images that were classified wrongly, in [0, 1]."""
        return 1 - self.correct / self.total


def check_count(count: Count) -> Count:
    """Checks a count and normalises its severity (None is `random`, or 0 for clean).

    Raises:
      ValueError: a name that a table cannot hold, a severity that does not fit, or counts outside
        0 <= correct <= total, total >= 1.
    """
    model, seed, corruption, severity, correct, total = count
    for what, name in (("model", model), ("corruption", corruption)):
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ValueError(f"expected a {what} name without commas, quotes, # or white space, found {name!r}")
    seed, correct, total = int(seed), int(correct), int(total)
    if seed < 0:
        raise ValueError(f"expected a seed >= 0, found {seed}")
    if total < 1 or not 0 <= correct <= total:
        raise ValueError(f"expected 0 <= correct <= total and total >= 1, found correct {correct}, total {total}")
    if severity is None:
        severity = 0 if corruption == CLEAN else RANDOM
    if isinstance(severity, str):
        valid = severity == RANDOM
    else:
        severity = severity.item() if hasattr(severity, "item") else severity
        valid = isinstance(severity, int | float) and math.isfinite(severity) and severity >= 0
    if not valid:
        raise ValueError(f"expected a severity that is a level, a fraction or 'random', found {severity!r}")
    if corruption == CLEAN and severity != 0:
        raise ValueError(f"expected severity 0 for clean images, found {severity!r}")
    if corruption == CLEAN:
        severity = 0
    return Count(model, seed, corruption, severity, correct, total)


def read_counts(path: str | pathlib.Path, *, edited: bool = False) -> list[Count]:
    """Reads counts.csv into a list of `Count`, in the order of the file.

    Args:
      path: of the file.
      edited: read one that was edited, too.

    Raises:
      EditedTableError: it was edited.
      ValueError: a line that is cut off, has the wrong number of fields or a field of the wrong
        kind, correct > total, or a (model, seed, corruption, severity) that was given before.
    """
    rows, seen = [], {}
    for number, fields in read_lines(path, COUNTS_HEADER, edited=edited):
        where = f"{path}, line {number}"
        model, seed, corruption, severity, correct, total = fields
        try:
            numbers = _integer("seed", seed), _integer("correct", correct), _integer("total", total)
            count = check_count(Count(model, numbers[0], corruption, _severity(severity), *numbers[1:]))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        if count.key in seen:
            raise ValueError(
                f"{where}: expected every (model, seed, corruption, severity) once, found "
                f"{','.join(fields[:4])} again (first on line {seen[count.key]})"
            )
        seen[count.key] = number
        rows.append(count)
    return rows


def write_counts(path: str | pathlib.Path, counts: Iterable[Count | tuple], comment: str | None = None) -> None:
    """Writes counts.csv atomically, in the order given.

    Args:
      path: file to write.
      counts: iterable of `Count` or of tuples in its order.
      comment: optional text for a first line that starts with `#` (line breaks become spaces).
    """
    counts = [check_count(Count(*count)) for count in counts]
    keys = set()
    for count in counts:
        if count.key in keys:
            raise ValueError(f"{path}: expected every measurement once, found {count.key} twice")
        keys.add(count.key)
    write_rows(path, COUNTS_HEADER, counts, comment)


def _integer(what, text):
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"expected an integer {what}, found {text!r}")
    return int(text)


def _severity(text):
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) else text
