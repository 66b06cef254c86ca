"""A count of correct answers, and the names of conditions."""

import math
import re
from typing import NamedTuple

CLEAN = "clean"
NATURAL = "natural/"  # before the name of a natural shift, which is a condition too
OF_CLASSES = "clean/"  # before the same name: clean images of the same classes
STANDARD = "standard"
RANDOM = "random"
_NAME = re.compile(r"[^\s,\"'#]+")


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
        if not isinstance(name, str) or not _NAME.fullmatch(name):
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
