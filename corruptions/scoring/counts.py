"""Correct answers to a condition, and mean errors over conditions."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from corruptions.scoring.conditions import CLEAN


class Count(NamedTuple):
    """Correct answers of a classifier under a condition.

    Attributes:
      corruption: qualified name, or `clean`.
      severity: level, fraction of the range (float), or `random` (drawn for each image); 0 for
        `clean`.
      correct: images classified correctly, 0..total.
      total: images shown, at least 1.
    """

    corruption: str
    severity: int | float | str
    correct: int
    total: int

    @property
    def error(self) -> float:
        """Fraction of images that are classified wrongly, in [0, 1]."""
        return 1 - self.correct / self.total


def mean_error(counts: Iterable[Count]) -> float:
    """Computes the mean error of counts of `evaluate`: over the severities of each corruption, then over
    the corruptions; in [0, 1]. Clean images do not count.

    Raises:
      ValueError: there are no counts under a corruption.
    """
    errors = [(count.corruption, count.error) for count in counts if count.corruption != CLEAN]
    if not errors:
        raise ValueError("expected counts under at least one corruption, found none")
    return mean(errors)


def mean(values: Iterable[tuple[str, Any]]) -> Any:
    """Averages numbers or arrays (corruption, value) over each corruption, then over these."""
    by_corruption: dict[str, list[Any]] = {}
    for name, value in values:
        by_corruption.setdefault(name, []).append(value)
    means = [sum(of_one) / len(of_one) for of_one in by_corruption.values()]
    return sum(means) / len(means)
