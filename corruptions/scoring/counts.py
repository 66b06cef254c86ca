"""Counts of correct answers, and means of them over severities and corruptions: of one classifier, on one test set, of whole
rows.
"""

import collections
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from corruptions.core import registry
from corruptions.scoring.conditions import CLEAN, RANDOM, Condition


class Count(NamedTuple):
    """Correct answers of a classifier under a condition.

    Attributes:
      corruption: qualified name, or `clean`.
      severity: level, fraction of the range (float), or `random` (drawn for each image); 0 for `clean`.
      correct: images classified correctly, 0..total.
      total: images shown, at least 1.
    """

    corruption: str
    severity: int | float | str
    correct: int
    total: int

    @classmethod
    def from_correct(cls, condition: Condition, correct: np.ndarray) -> Self:
        """Counts the images, bool [N], that are classified correctly under a condition."""
        return cls(condition.corruption, condition.label, int(correct.sum()), correct.size)

    @property
    def error(self) -> float:
        """Fraction of images that are classified wrongly, in [0, 1]."""
        return 1 - self.correct / self.total


def mean_error(counts: Iterable[Count]) -> float:
    """Computes the mean error of counts of `evaluate`: over the severities of each corruption, then over the corruptions.

    Clean images do not count.

    Args:
      counts: of one classifier on one test set; each corruption at random severities, or at as many levels as the others
        or as it has.

    Returns:
      A fraction in [0, 1].

    Raises:
      ValueError: no corruption, or counts whose mean would weigh corruptions unequally; names them.
    """
    by_corruption = of_one_evaluation(counts)
    by_corruption.pop(CLEAN, None)
    if not by_corruption:
        raise ValueError("expected counts under at least one corruption, found none")
    severities = {name: [count.severity for count in rows] for name, rows in by_corruption.items()}
    as_numbered = (uneven(_numbered(severities, one), one) for one in registry.benchmarks())
    if (odd := uneven(severities)) and all(as_numbered):
        raise ValueError(f"expected the same severities of every corruption, {odd}; evaluate what is missing")
    return mean((name, count.error) for name, rows in by_corruption.items() for count in rows)


def mean(values: Iterable[tuple[str, Any]]) -> Any:
    """Averages numbers or arrays (corruption, value) over each corruption, then over these."""
    by_corruption: dict[str, list[Any]] = {}
    for name, value in values:
        by_corruption.setdefault(name, []).append(value)
    means = [sum(of_one) / len(of_one) for of_one in by_corruption.values()]
    return sum(means) / len(means)


def below_chance(correct: int, total: int, classes: int) -> str:
    """Says that a classifier is right on clean images far less often than by chance, "" where it is not.

    By chance so few are right at most once in 10,000 times: exp(-N KL(p || 1 / classes)), Chernoff's bound.
    """
    right, chance = correct / total, 1 / classes
    if right >= chance:
        return ""
    divergence = (1 - right) * math.log((1 - right) / (1 - chance))
    divergence += right * math.log(right / chance) if right else 0.0
    if total * divergence < math.log(10_000):
        return ""
    return f"{100 * right:.3g} % of clean images are right, {100 * chance:.3g} % would be by chance: are the labels shifted, or of another order?"


def of_one_evaluation(counts: Iterable[Count]) -> dict[str, list[Count]]:
    """Groups counts by corruption, `clean` too.

    Raises ValueError where they are of two classifiers or test sets: a condition twice, or other numbers of images.
    """
    counts = list(counts)
    for count in counts:
        if not isinstance(count, Count) or not 0 <= count.correct <= count.total or count.total < 1:
            raise ValueError(
                "expected counts as corruptions.evaluate returns them, 0 <= correct <= total and total at least 1, found "
                f"{count!r}"
            )
    conditions = collections.Counter(count[:2] for count in counts)
    conditions |= {(CLEAN, 0): sum(count.corruption == CLEAN for count in counts)}
    if twice := [condition for condition, number in conditions.items() if number > 1]:
        raise ValueError(
            f"expected counts of one classifier, each condition once, found {' '.join(map(str, twice[0]))} "
            f"{conditions[twice[0]]} times; give the counts of one call of corruptions.evaluate"
        )
    if len(totals := sorted({count.total for count in counts})) > 1:
        raise ValueError(
            f"expected counts on one test set, found totals of {totals[0]} and {totals[-1]} images; give the counts of one "
            "call of corruptions.evaluate"
        )
    by_corruption: dict[str, list[Count]] = {}
    for count in counts:
        by_corruption.setdefault(count.corruption, []).append(count)
    for name, rows in by_corruption.items():
        if len(rows) > 1 and any(row.severity == RANDOM for row in rows):
            raise ValueError(
                f"expected {name} at random severities or at levels, found both; evaluate into two folders"
            )
    return by_corruption


def uneven(severities: Mapping[str, Collection[Any]], benchmark: str | None = None) -> str:
    """Says, after "found", which corruption would weigh otherwise in a mean; "" where none does.

    Corruptions go together at random severities, at the same ones, or each at all that it, or the benchmark, has.

    Args:
      severities: {corruption: its severities}, as its records name them; as a benchmark numbers them where it selects some.
    """
    random = [name for name, found in severities.items() if RANDOM in found]
    if random and len(random) < len(severities):
        other = next(name for name in severities if name not in random)
        return f"found random ones of {random[0]}, levels of {other}"
    most = max(severities.values(), key=len)
    odd = {name: found for name, found in severities.items() if set(found) != set(most)}
    if not odd or all(len(found) == len(_all_of(name, benchmark)) for name, found in severities.items()):
        return ""
    name, found = min(odd.items(), key=lambda one: len(one[1]))
    return f"found {', '.join(map(str, found))} of {name}, {', '.join(map(str, most))} of others"


def _all_of(name: str, benchmark: str | None) -> Sequence[Any]:
    """Lists the severities that a corruption has, or that a benchmark selects of it; none where it is not registered."""
    try:
        member = benchmark is not None and name in registry.names(benchmark)
        return registry.severities(name, benchmark if member else None)
    except ValueError:
        return ()


def _numbered(severities: Mapping[str, list[Any]], benchmark: str) -> dict[str, list[Any]]:
    """Numbers the levels that a benchmark selects, as it does; others stay."""
    members = registry.names(benchmark)
    selected = {name: registry.selected_levels(name, benchmark) or () for name in severities if name in members}
    return {
        name: [selected[name].index(one) + 1 for one in found] if set(found) <= set(selected.get(name, ())) else found
        for name, found in severities.items()
    }
