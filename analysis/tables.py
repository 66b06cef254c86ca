"""Counts of correct answers, accuracy and robustness with their standard errors, and the names of conditions."""

import math
import re
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

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
      severity: integer level, fraction of the range (float), or `random` (drawn per image); 0 for `clean`.
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
        """Gives (model, seed, corruption, severity), which identify the measurement."""
        return self[:4]

    @property
    def error(self) -> float:
        """Part of the images that were classified wrongly, in [0, 1]."""
        return 1 - self.correct / self.total


def check_count(count: Count) -> Count:
    """Checks a count and normalises its severity (None is `random`, or 0 for clean).

    Raises:
      ValueError: a name that a table cannot hold, a severity that does not fit, or counts outside 0 <= correct <=
        total, total >= 1.
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


def accuracy(correct: ArrayLike, total: ArrayLike) -> np.ndarray:
    """Computes correct / total in [0, 1]; arrays broadcast. Refuses total < 1 and correct outside 0..total."""
    correct, total = np.asarray(correct, float), np.asarray(total, float)
    if np.any(total < 1) or np.any(correct < 0) or np.any(correct > total):
        raise ValueError(
            f"expected 0 <= correct <= total and total >= 1, found correct {correct.tolist()}, total {total.tolist()}"
        )
    return correct / total


def standard_error(correct: ArrayLike, total: ArrayLike) -> np.ndarray:
    """Computes the binomial standard error sqrt(p (1 - p) / total) of p = correct / total."""
    p = accuracy(correct, total)
    return np.sqrt(p * (1 - p) / np.asarray(total, float))


def robustness(corrupted_accuracy: ArrayLike, clean_accuracy: ArrayLike) -> np.ndarray:
    """Computes R = A_c / A_0, the accuracy of a model on a corruption over its own clean accuracy.

    Source: Laugros et al., robustness score. Arrays broadcast. Refuses a clean accuracy of 0.
    """
    corrupted, clean = _fractions(corrupted_accuracy), _fractions(clean_accuracy)
    if np.any(clean == 0):
        raise ValueError("expected a clean accuracy above 0, found 0: robustness is undefined")
    return corrupted / clean


def robustness_standard_error(
    corrupted_accuracy: ArrayLike, clean_accuracy: ArrayLike, number: ArrayLike, clean_number: ArrayLike | None = None
) -> np.ndarray:
    """Computes SE(R), SE^2 = R^2 [(1 - A_c) / (N A_c) + (1 - A_0) / (N_0 A_0)], by the delta method.

    The two accuracies are taken as independent. On the same images they are positively correlated, so SE(R) is an
    upper bound.

    Args:
      corrupted_accuracy, clean_accuracy: A_c and A_0, in [0, 1].
      number: test images N.
      clean_number: N_0; None is N.
    """
    ratio = robustness(corrupted_accuracy, clean_accuracy)
    corrupted, clean = _fractions(corrupted_accuracy), _fractions(clean_accuracy)
    number = np.asarray(number, float)
    clean_number = number if clean_number is None else np.asarray(clean_number, float)
    if np.any(number < 1) or np.any(clean_number < 1):
        raise ValueError(f"expected at least 1 test image, found {number} and {clean_number}")
    # R^2 multiplied in, so that A_c = 0 needs no division.
    variance = corrupted * (1 - corrupted) / number + ratio**2 * clean * (1 - clean) / clean_number
    return np.sqrt(variance) / clean


def _fractions(values):
    values = np.asarray(values, float)
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError(f"expected fractions in [0, 1] (not percent), found {values.tolist()}")
    return values
