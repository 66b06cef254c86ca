"""Calibration, likelihood and ranks of N answers, exact and in float64.

Every function takes the confidence k [N] in [0, 1] of the predictions, or a score that ranks them, and whether they are
right, [N] of bool or 0/1. A metric that is not defined is NaN. Near 1, k has too few digits for ranks: give -(1 - k), the
negated `rest` of `corruptions.scoring.confidence.Confidence`, as the score.

Bins are (j/B, (j + 1)/B], the first with 0; empty ones contribute nothing.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

BINS = 15


class Bins(NamedTuple):
    """The non-empty bins of N answers.

    Attributes:
      weight: n_b / N.
      confidence: mean k of the bin.
      accuracy: share of right answers in the bin.
      number: n_b.
    """

    weight: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray
    number: np.ndarray

    @property
    def gap(self) -> np.ndarray:
        """abs(confidence - accuracy)."""
        return np.abs(self.confidence - self.accuracy)


def binned(confidence: ArrayLike, correct: ArrayLike, bins: int = BINS, mass: bool = False) -> Bins:
    """Sorts answers into bins of equal width, or of equal mass.

    Bins of equal mass: the sorted confidences are cut into min(B, N) groups as even as possible, the first N mod B one
    larger; a boundary is the midpoint of its neighbours, and equal boundaries are one. Equal values are never parted, so
    that the order of the answers does not matter; A. Kumar, P. Liang, T. Ma, "Verified Uncertainty Calibration" (2019).

    Raises:
      ValueError: no answers, arrays of different lengths, confidences outside [0, 1], or no bins.
    """
    k, hit = _confidences(confidence, correct)
    if bins < 1:
        raise ValueError(f"expected at least one bin, found {bins}")
    places = edges(k, bins, mass)
    return _of_places(np.searchsorted(places, k, side="left"), k, hit, len(places) + 1)


def edges(confidence: np.ndarray, bins: int, mass: bool) -> np.ndarray:
    """Computes the inner edges of the bins of `binned`, rising."""
    if not mass:
        return np.arange(1, bins) / bins
    ordered = np.sort(confidence)
    cuts = np.cumsum([len(part) for part in np.array_split(ordered, min(bins, len(ordered)))])[:-1]
    return np.unique((ordered[cuts - 1] + ordered[cuts]) / 2)


def _of_places(places, k, hit, number):
    counts = np.bincount(places, minlength=number)
    kept = counts > 0
    sums = (np.bincount(places, weights=values, minlength=number)[kept] for values in (k, hit))
    means = [values / counts[kept] for values in sums]
    return Bins(counts[kept] / len(k), *means, counts[kept])


def ece(bins: Bins) -> float:
    """Expected calibration error, sum_b n_b/N abs(conf_b - acc_b). With bins of equal mass it is called ACE."""
    return float((bins.weight * bins.gap).sum())


def debiased_square(bins: Bins) -> float:
    """Squared calibration error without the bias of finite bins: sum_b n_b/N [gap_b^2 - acc_b (1 - acc_b) / (n_b - 1)].

    It may be negative; a bin of one image gives 0. For bins of equal mass; Kumar, Liang, Ma (2019).
    """
    several = bins.number > 1
    noise = bins.accuracy * (1 - bins.accuracy) / np.where(several, bins.number - 1, 1)
    return float((bins.weight * np.where(several, bins.gap**2 - noise, 0.0)).sum())


# Ranks: how well a score tells right answers from wrong ones. Ties count as if in random order.


class Ranked(NamedTuple):
    """Right answers among the most confident ones, by groups of equal scores, the highest first.

    Attributes:
      number: answers in each group.
      wrong: errors in each group.
    """

    number: np.ndarray
    wrong: np.ndarray

    @property
    def errors(self) -> np.ndarray:
        """E_i, the expected number of errors among the first i, [N]; errors spread evenly over a tie."""
        return np.cumsum(np.repeat(self.wrong / self.number, self.number))


def ranked(score: ArrayLike, correct: ArrayLike) -> Ranked:
    """Groups answers by their score, the largest first.

    Raises:
      ValueError: no answers, or arrays of different lengths.
    """
    score, hit = _checked(score, correct)
    _, place, number = np.unique(-score, return_inverse=True, return_counts=True)
    return Ranked(number, np.bincount(place, weights=1 - hit))


def risk(of: Ranked) -> np.ndarray:
    """E_i / i, the risk at the coverages 1/N, 2/N .. 1, [N]."""
    errors = of.errors
    return errors / np.arange(1, len(errors) + 1)


def aurc(of: Ranked) -> float:
    """Area under the curve of risk against coverage, (1/N) sum_i E_i / i. 1 - AURC is AURRA."""
    return float(risk(of).mean())


def excess_aurc(of: Ranked) -> float:
    """AURC minus the least one of as many errors, which are then last. Y. Geifman, G. Uziel, R. El-Yaniv (2019)."""
    number, wrong = int(of.number.sum()), round(float(of.wrong.sum()))
    i = np.arange(1, wrong + 1)
    return aurc(of) - float((i / (number - wrong + i)).sum()) / number


def auroc(of: Ranked) -> float:
    """P(score of a right answer > of a wrong one) + 1/2 P(equal); NaN without either."""
    right = of.number - of.wrong
    wrong_below = of.wrong.sum() - np.cumsum(of.wrong)
    pairs = right.sum() * of.wrong.sum()
    return float((right * (wrong_below + of.wrong / 2)).sum() / pairs) if pairs else math.nan


def fpr95(of: Ranked) -> float:
    """Share of the wrong answers at or above the largest threshold that keeps 95 % of the right ones; NaN without either."""
    right = of.number - of.wrong
    if not right.sum() or not of.wrong.sum():
        return math.nan
    enough = np.argmax(np.cumsum(right) >= math.ceil(0.95 * right.sum()))
    return float(of.wrong[: enough + 1].sum() / of.wrong.sum())


def _checked(values, correct):
    values, hit = np.asarray(values, np.float64), np.asarray(correct, np.float64)
    if values.ndim != 1 or values.shape != hit.shape or not len(values):
        raise ValueError(
            f"expected as many scores [N] as answers, at least one, found {list(values.shape)} and {list(hit.shape)}"
        )
    if np.isnan(values).any():
        raise ValueError("expected scores, found NaN among them")
    return values, hit


def _confidences(values, correct):
    values, hit = _checked(values, correct)
    if values.min() < 0 or values.max() > 1:
        raise ValueError(f"expected confidences in [0, 1], found {values.min():.4g}..{values.max():.4g}")
    return values, hit
