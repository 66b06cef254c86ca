"""What clean accuracy alone tells about natural shifts, and whether two shifts are one.

Any benchmark is to be compared with this: accuracy under a shift follows clean accuracy closely,
and a benchmark that only repeats clean accuracy predicts it too.
"""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from analysis.natural_shift import resampling
from analysis.natural_shift.effective import logit
from analysis.natural_shift.prediction import residuals_of
from analysis.natural_shift.resampling import Estimate, estimate
from analysis.natural_shift.table import Table


class FromClean(NamedTuple):
    """Clean accuracy as a predictor of accuracy under a shift.

    Attributes:
      shift: name.
      pearson, spearman: with the accuracy on all clean images.
      r2: of logits, with that on clean images of the same classes.
      models: with these accuracies; for r2 only those with a logit.
    """

    shift: str
    pearson: Estimate
    spearman: Estimate
    r2: Estimate
    models: int


class Together(NamedTuple):
    """Correlation of what is left of the logits under two shifts after clean accuracy."""

    first: str
    second: str
    correlation: Estimate


def from_clean(table: Table, shifts: Iterable[str], complete: np.ndarray, weights: np.ndarray) -> list[FromClean]:
    """Judges clean accuracy as a predictor.

    Args:
      table: of N models.
      shifts: natural shifts of the table.
      complete: bool [N], the models that are compared.
      weights: [R, complete models], of `resampling.draw`.
    """
    rows = []
    for shift in shifts:
        accuracy, clean = table.natural[shift].accuracy[complete], table.clean[complete]
        r = resampling.pearson(logit(accuracy), logit(table.natural[shift].clean[complete]), weights)
        rows.append(
            FromClean(
                shift,
                estimate(resampling.pearson(accuracy, clean, weights)),
                estimate(resampling.spearman(accuracy, clean, weights)),
                estimate(r**2),
                int(complete.sum()),
            )
        )
    return rows


def together(table: Table, shifts: Iterable[str], complete: np.ndarray, weights: np.ndarray) -> list[Together]:
    """Correlates every pair of shifts beyond clean accuracy, near 1 where they measure the same;
    arguments as of `from_clean`.
    """
    residuals = {}
    for shift in shifts:
        natural = table.natural[shift]
        residuals[shift] = residuals_of(natural.accuracy[complete], natural.clean[complete], weights)
    return [
        Together(a, b, estimate(resampling.pearson(residuals[a], residuals[b], weights)))
        for a, b in itertools.combinations(residuals, 2)
    ]
