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


def mce(bins: Bins) -> float:
    """Largest gap of a bin; one image may decide it."""
    return float(bins.gap.max())


def rms(bins: Bins) -> float:
    """Root mean square of the gaps, sqrt(sum_b n_b/N gap_b^2)."""
    return math.sqrt(float((bins.weight * bins.gap**2).sum()))


def debiased_square(bins: Bins) -> float:
    """Squared calibration error without the bias of finite bins: sum_b n_b/N [gap_b^2 - acc_b (1 - acc_b) / (n_b - 1)].

    It may be negative; a bin of one image gives 0. For bins of equal mass; Kumar, Liang, Ma (2019).
    """
    several = bins.number > 1
    noise = bins.accuracy * (1 - bins.accuracy) / np.where(several, bins.number - 1, 1)
    return float((bins.weight * np.where(several, bins.gap**2 - noise, 0.0)).sum())


def rms_of_groups(confidence: ArrayLike, correct: ArrayLike, size: int = 100, released: bool = False) -> float:
    """RMS calibration error of groups of `size` answers in the order of confidence, the last with the remainder.

    Args:
      released: as the code of AugMix and PixMix: the last group is left out, and 0 where it is the only one of 100 to 199
        answers.

    Raises:
      ValueError: as of `binned`; `released` with fewer answers than one group.
    """
    k, hit = _confidences(confidence, correct)
    if size < 1:
        raise ValueError(f"expected groups of at least one answer, found {size}")
    order = np.argsort(k, kind="stable")
    if released and len(k) < size:
        raise ValueError(f"expected at least {size} answers, found {len(k)}")
    cuts = np.arange(1, max(1, len(k) // size)) * size
    groups = np.split(order, cuts)[: -1 if released else None]
    return math.sqrt(sum(len(of) * (k[of].mean() - hit[of].mean()) ** 2 for of in groups) / len(k))


def class_wise_ece(probabilities: ArrayLike, labels: ArrayLike, bins: int = BINS) -> float:
    """Mean over the classes c of the ECE of (p[:, c], [y = c]); probabilities [N, C], labels int [N]."""
    p, y = np.asarray(probabilities, np.float64), np.asarray(labels)
    return float(np.mean([ece(binned(p[:, c], y == c, bins)) for c in range(p.shape[1])]))


# Proper scores, from whole vectors; `Confidence.loss` and `.brier` hold them for stored answers.


def losses(probabilities: ArrayLike, labels: ArrayLike, eps: float = 0.0) -> np.ndarray:
    """-ln p of the label, nats, [N]: infinite where p is 0, unless `eps` is its least value."""
    p = _of_labels(probabilities, labels)
    with np.errstate(divide="ignore"):
        return -np.log(np.maximum(p, eps))


def brier(probabilities: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """sum_c (p_c - [c = y])^2, in 0..2, [N]."""
    p = np.asarray(probabilities, np.float64)
    return 1 - 2 * _of_labels(p, labels) + (p**2).sum(1)


def entropies(probabilities: ArrayLike) -> np.ndarray:
    """-sum_c p_c ln p_c, nats, [N]; 0 ln 0 is 0."""
    p = np.asarray(probabilities, np.float64)
    return -(p * np.log(np.where(p > 0, p, 1))).sum(1)


def _of_labels(probabilities, labels):
    p, y = np.asarray(probabilities, np.float64), np.asarray(labels)
    if p.ndim != 2 or y.shape != p.shape[:1] or not len(y):
        raise ValueError(f"expected probabilities [N, C] with labels [N], found {list(p.shape)} and {list(y.shape)}")
    if y.min() < 0 or y.max() >= p.shape[1]:
        raise ValueError(f"expected labels in 0..{p.shape[1] - 1}, found {y.min()}..{y.max()}")
    if p.min() < 0 or abs(p.sum(1) - 1).max() > 1e-3:
        raise ValueError("expected probabilities of at least 0 that sum to 1, found others")
    return p[np.arange(len(y)), y]


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


def excess_aurc(of: Ranked, continuous: bool = False) -> float:
    """AURC minus the least one of as many errors, which are then last; `continuous` takes r + (1 - r) ln(1 - r) for it,
    r the error rate, which is smaller by about r / 2N. Y. Geifman, G. Uziel, R. El-Yaniv (2019).
    """
    number, wrong = int(of.number.sum()), round(float(of.wrong.sum()))
    rate = wrong / number
    if continuous:
        least = 1.0 if rate == 1 else rate + (1 - rate) * math.log(1 - rate)
    else:
        i = np.arange(1, wrong + 1)
        least = float((i / (number - wrong + i)).sum()) / number
    return aurc(of) - least


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


def accuracy_at(of: Ranked, coverage: float) -> float:
    """Accuracy of the ceil(coverage N) most confident answers.

    Raises:
      ValueError: a coverage outside (0, 1].
    """
    if not 0 < coverage <= 1:
        raise ValueError(f"expected a coverage in (0, 1], found {coverage}")
    number = int(of.number.sum())
    return float(1 - risk(of)[math.ceil(round(coverage * number, 9)) - 1])


# Parts of the scores.


class Parts(NamedTuple):
    """Parts of the Brier score of the top label, mean (k - h)^2 = REL - RES + UNC + WBV - WBC exactly.

    Attributes:
      reliability: REL, sum_b w_b (conf_b - acc_b)^2.
      resolution: RES, sum_b w_b (acc_b - acc)^2.
      uncertainty: UNC, acc (1 - acc).
      within_variance: WBV, mean (k - conf_b)^2.
      within_covariance: WBC, 2 mean (k - conf_b)(h - acc_b).
    """

    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float


def parts(confidence: ArrayLike, correct: ArrayLike, bins: int = BINS, debiased: bool = False) -> Parts:
    """Parts the Brier score of the top label in bins of equal width.

    With `debiased` REL and RES lose sum_b w_b acc_b (1 - acc_b) / (n_b - 1), RES and UNC gain acc (1 - acc) / (N - 1):
    the sum stays. J. Broecker (2012); C. Ferro, T. Fricker (2012). NaN of one answer.
    """
    k, hit = _checked(confidence, correct)
    of = binned(k, hit, bins)
    places = np.searchsorted(edges(k, bins, False), k, side="left")
    _, inside = np.unique(places, return_inverse=True)
    mean = float(hit.mean())
    apart, right = k - of.confidence[inside], hit - of.accuracy[inside]
    reliability, resolution = (of.weight * of.gap**2).sum(), (of.weight * (of.accuracy - mean) ** 2).sum()
    uncertainty = mean * (1 - mean)
    if debiased:
        several = of.number > 1
        lost = (of.weight * of.accuracy * (1 - of.accuracy) / np.where(several, of.number - 1, 1))[several].sum()
        gained = uncertainty / (len(k) - 1) if len(k) > 1 else math.nan
        reliability, resolution, uncertainty = reliability - lost, resolution - lost + gained, uncertainty + gained
    within = (apart**2).mean(), 2 * (apart * right).mean()
    return Parts(*map(float, (reliability, resolution, uncertainty, *within)))


class ClassParts(NamedTuple):
    """Parts of a score of whole vectors by predicted class: near reliability - resolution + uncertainty."""

    reliability: float
    resolution: float
    uncertainty: float


def class_parts(probabilities: ArrayLike, labels: ArrayLike, likelihood: bool = False) -> ClassParts:
    """Parts Brier - 1, or with `likelihood` NLL, by predicted class.

    d_k are the label frequencies where class k is predicted, q those of all, w_k shares: for Brier UNC = -sum q^2, RES =
    sum_k w_k |q - d_k|^2, REL = mean |d_pred - p|^2; for NLL entropies and Kullback-Leibler divergences. Near and not
    equal to the score: the covariance within a part is left out. Y. Ovadia et al. (2019).
    """
    p = np.asarray(probabilities, np.float64)
    _of_labels(p, labels)
    target = np.eye(p.shape[1])[np.asarray(labels)]
    predicted = p.argmax(1)
    overall = target.mean(0)
    found, place, number = np.unique(predicted, return_inverse=True, return_counts=True)
    of_part = np.stack([target[predicted == k].mean(0) for k in found])
    weight = number / len(p)
    if likelihood:
        uncertainty = float(entropies(overall[None])[0])
        resolution = float((weight * _divergence(of_part, overall[None])).sum())
        reliability = float(_divergence(of_part[place], p).mean())
    else:
        uncertainty = -float((overall**2).sum())
        resolution = float((weight * ((overall - of_part) ** 2).sum(1)).sum())
        reliability = float(((of_part[place] - p) ** 2).sum(1).mean())
    return ClassParts(reliability, resolution, uncertainty)


def _divergence(p, q):
    """sum p ln(p / q), [N], infinite where q is 0 and p is not."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0, p * (np.log(np.where(p > 0, p, 1)) - np.log(q)), 0.0).sum(1)


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
