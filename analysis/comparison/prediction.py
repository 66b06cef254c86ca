"""Does a cheap distance in feature space predict the expensive overlap?

Overlap O_ij costs a training for each corruption; the distance between the features of i and j in
one standard model costs a few thousand forward passes. Given both for the same corruptions this
module asks

- how well their ranks agree: Spearman's rho between -distance and O over pairs (`rank_agreement`),
- which overlap a distance predicts: a decreasing step function (isotonic regression), each pair
  predicted from pairs that share no corruption with it (`predicted_overlap`),
- what a selection from predictions is worth: Algorithm 1 on the predicted matrix, judged by the
  measured one (`compare_selections`).

Limits. Pairs are not independent: n corruptions are n observations, and intervals resample
corruptions, not pairs; with fewer than about ten they are wide and only roughly of their nominal
coverage. Both matrices hold measurement noise, which lowers rho, and O clipped at 0 ties at 0.
Distances depend on the model, its features and the severities; O is symmetric, so a directed
distance (MSD) must be made symmetric first. The step function is calibrated on overlaps that were
measured in the same study: it says how much could be saved for further corruptions of the same
kind, and nothing about other data or networks; it cannot predict values outside of those seen.
Agreement is no explanation: two corruptions can be near in features while training on one does not
help against the other.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from analysis.comparison import studies
from analysis.selection import algorithm

MAX_SETS = 20_000  # random sets that are drawn when there are more


class Comparison(NamedTuple):
    """A benchmark selected from predicted overlaps, judged by measured ones.

    Attributes:
      benchmarks: `analysis.comparison.studies.BenchmarkAgreement`; `first` is selected from the
        predicted matrix, `second` from the measured one.
      predicted_overlap: mean overlap of the predicted selection as predicted.
      mean_overlap: the same as measured.
      best_overlap: measured mean overlap of the measured selection.
      largest_overlap: largest measured overlap between two members of the predicted selection.
      violations: its pairs whose measured overlap exceeds the threshold.
      random_mean, random_std: of the measured mean overlap of sets of its size.
      random_better: fraction of those sets whose mean overlap is no larger than that of the
        predicted selection.
      random_sets: how many sets that is: all of them, or 20,000 drawn at random.
    """

    benchmarks: studies.BenchmarkAgreement
    predicted_overlap: float
    mean_overlap: float
    best_overlap: float
    largest_overlap: float
    violations: int
    random_mean: float
    random_std: float
    random_better: float
    random_sets: int


def rank_agreement(overlap: ArrayLike, distance: ArrayLike, names: Sequence[str], **options) -> studies.Agreement:
    """Tells whether near corruptions overlap: `analysis.comparison.studies.agreement` of O and
    -distance.

    Its `spearman` is rho over pairs, with an interval from resampling corruptions; its differences
    mean nothing here.

    Args:
      overlap: O [n, n], or before it is clipped at 0 (fewer ties).
      distance: symmetric [n, n].
      names: n corruptions; those with an undefined overlap are left out.
      **options: resamples, seed, level.
    """
    return studies.agreement(overlap, -np.asarray(distance, float), names, **options)


def isotonic(distance: ArrayLike, overlap: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Fits the decreasing step function of least squares, (distances increasing, overlaps
    decreasing), for `np.interp`.

    distance, overlap: of pairs, [k]. Equal distances are averaged first.
    """
    x, group, count = np.unique(np.asarray(distance, float), return_inverse=True, return_counts=True)
    y = np.bincount(group, np.asarray(overlap, float)) / count
    return x, isotonic_regression(y, weights=count, increasing=False).x


def predicted_overlap(overlap: ArrayLike, distance: ArrayLike) -> np.ndarray:
    """Predicts O of every pair from its distance by `isotonic`, fitted to all pairs without either
    corruption.

    Between the distances of the fit it is interpolated linearly, beyond them constant. n >= 4.

    Returns:
      float64 [n, n], diagonal 1; NaN where O is undefined for a whole corruption.
    """
    overlap, distance = _pair("overlap", overlap, "distance", distance)
    number = len(overlap)
    if number < 4:
        raise ValueError(f"expected at least 4 corruptions to predict a pair from others, found {number}")
    first, second = np.triu_indices(number, 1)
    defined = ~np.isnan(overlap[first, second])
    undefined = algorithm.undefined(overlap)
    predicted = np.eye(number)
    for i, j in zip(first, second):
        apart = defined & ~np.isin(first, (i, j)) & ~np.isin(second, (i, j))
        if undefined[i] or undefined[j] or not apart.any():
            predicted[i, j] = predicted[j, i] = np.nan
            continue
        pairs = first[apart], second[apart]
        predicted[i, j] = predicted[j, i] = np.interp(distance[i, j], *isotonic(distance[pairs], overlap[pairs]))
    predicted[undefined, undefined] = np.nan
    return predicted


def compare_selections(
    overlap: ArrayLike, predicted: ArrayLike, names: Sequence[str], threshold: float, *, seed: int = 0
) -> Comparison:
    """Selects with Algorithm 1 from a predicted and from the measured matrix: a `Comparison`.

    Args:
      overlap: measured O [n, n]; corruptions without a defined overlap take no part.
      predicted: predicted O [n, n].
      names: n corruptions.
      threshold: largest overlap allowed between two members.
      seed: of the random sets, when not all can be counted.
    """
    names = tuple(names)
    overlap, predicted = _pair("overlap", overlap, "predicted overlap", predicted)
    agreement = studies.benchmark_agreement(predicted, overlap, names, threshold)
    kept = np.flatnonzero(~(algorithm.undefined(overlap) | algorithm.undefined(predicted)))
    first, second = (
        np.array([[names.index(name) for name in benchmark]]) for benchmark in (agreement.first, agreement.second)
    )
    members = first[0]
    inside = overlap[np.ix_(members, members)][np.triu_indices(len(members), 1)]
    means = _mean_overlaps(overlap, kept[_sets(len(kept), len(members), seed)])
    predicted_mean = float(_mean_overlaps(overlap, first)[0])
    return Comparison(
        agreement,
        float(_mean_overlaps(predicted, first)[0]),
        predicted_mean,
        float(_mean_overlaps(overlap, second)[0]),
        float(inside.max(initial=0)),
        int((inside > threshold).sum()),
        float(means.mean()),
        float(means.std()),
        float((means <= predicted_mean + algorithm.RESOLUTION).mean()),
        len(means),
    )


def _sets(number, size, seed):
    """All sets of `size` out of `number`, or MAX_SETS of them at random: int [sets, size]."""
    if math.comb(number, size) <= MAX_SETS:
        return np.array(list(itertools.combinations(range(number), size)))
    rng = np.random.default_rng(seed)
    return rng.permuted(np.tile(np.arange(number), (MAX_SETS, 1)), axis=1)[:, :size]


def _mean_overlaps(overlap, sets):
    """Mean overlap over the pairs of each set [s, k]: float64 [s]; 0 for sets of one."""
    if sets.shape[1] < 2:
        return np.zeros(len(sets))
    inside = np.where(np.eye(len(overlap), dtype=bool), 0, overlap)[sets[:, :, None], sets[:, None, :]]
    return inside.sum(axis=(1, 2)) / (sets.shape[1] * (sets.shape[1] - 1))


def _pair(first_name, first, second_name, second):
    first, second = np.asarray(first, float), np.asarray(second, float)
    if first.ndim != 2 or first.shape[0] != first.shape[1] or first.shape != second.shape:
        raise ValueError(
            f"expected {first_name} and {second_name} square and of one size, found shapes {first.shape} "
            f"and {second.shape}"
        )
    for name, values in ((first_name, first), (second_name, second)):
        if not np.allclose(values, values.T, rtol=0, atol=1e-9, equal_nan=True):
            raise ValueError(f"expected a symmetric {name}, found differences across the diagonal")
    return first, second
