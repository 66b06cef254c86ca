"""Which benchmark predicts robustness to natural shifts best: does it take many corruptions, from
many categories, in balance?

Benchmarks of n categories and k corruptions each, and unbalanced ones made from them
(`analysis.selection.nk_benchmarks`), each judged by Pearson's r between the accuracy that models
lose to the benchmark, averaged over its corruptions, and to a natural shift. r is averaged over the
benchmarks of a bin: (n, k, spread of the counts per category). Source: Laugros, Caplier, Ospici,
"Using Synthetic Corruptions to Measure Robustness to Natural Distribution Shifts" (BMVC 2021),
which takes up to 200 benchmarks of a bin; its code averages one value, this the whole bin.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis.natural_shift import resampling
from analysis.natural_shift.resampling import Estimate, estimate
from analysis.selection.nk_benchmarks import Clusters, balanced, by_spread, count_balanced, unbalanced

COPIES = 10
# Of ImageNet-C's corruptions, from the overlaps that the paper on ImageNet-NOC published (its Table
# 7; a test makes them again).
IMAGENET_C_CATEGORIES = (
    ("gaussian_noise", "shot_noise", "impulse_noise", "jpeg_compression"),
    ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "elastic_transform", "pixelate"),
    ("snow", "frost", "fog", "brightness", "contrast"),
)


class Bin(NamedTuple):
    """Benchmarks of the same number of categories, size and balance.

    Attributes:
      categories: n, represented.
      per_category: k, of the balanced benchmarks that they were made from.
      size: n k, corruptions of each benchmark.
      spread: standard deviation of the counts over the represented categories, rounded to .1.
      benchmarks: how many were averaged.
      correlation: {natural shift: mean r}.
      mean: over the shifts.
    """

    categories: int
    per_category: int
    size: int
    spread: float
    benchmarks: int
    correlation: dict[str, Estimate]
    mean: Estimate


class Effects(NamedTuple):
    """What one more category, corruption, or unit of spread does to the mean r: slopes of a
    least-squares plane over the bins.
    """

    categories: Estimate
    size: Estimate
    spread: Estimate


class Leader(NamedTuple):
    """A corruption as the only member of a benchmark.

    Attributes:
      corruption: name.
      mean: r between the accuracy lost to it and to a natural shift, averaged over shifts.
      first: fraction of resamples in which no other corruption has a larger mean.
    """

    corruption: str
    mean: Estimate
    first: float


def leaders(
    synthetic_drops: Mapping[str, np.ndarray], natural_drops: Mapping[str, np.ndarray], weights: np.ndarray
) -> list[Leader]:
    """Orders corruptions by how well each alone predicts natural shifts, best first; arguments as
    of `compare_benchmarks`.
    """
    names = list(synthetic_drops)
    covariance = resampling.covariances([*synthetic_drops.values(), *natural_drops.values()], weights)
    means = np.array([_mean_correlation([(name,)], names, covariance).mean(axis=1) for name in names])
    first = np.bincount(np.nan_to_num(means[:, 1:], nan=-2).argmax(axis=0), minlength=len(names))
    rows = [Leader(name, estimate(row), float(n / first.sum())) for name, row, n in zip(names, means, first)]
    return sorted(rows, key=lambda row: -row.mean.value)


def categories_of(members: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Gives the published categories of ImageNet-C, by qualified names.

    Raises:
      ValueError: the members are others than its 15 corruptions, whose categories nobody measured.
    """
    clusters = tuple(tuple(f"imagenet_c/{name}" for name in cluster) for cluster in IMAGENET_C_CATEGORIES)
    if sorted(members) != sorted(name for cluster in clusters for name in cluster):
        raise ValueError(
            "expected the 15 corruptions of ImageNet-C, whose categories are known, found "
            f"{len(members)} others; give the overlap.csv of a study of them with --overlap"
        )
    return clusters


def compare_benchmarks(
    synthetic_drops: Mapping[str, np.ndarray],
    natural_drops: Mapping[str, np.ndarray],
    clusters: Clusters,
    weights: np.ndarray,
    *,
    number: int = 200,
    fewest: int = 20,
    seed: int = 0,
) -> tuple[tuple[Bin, ...], Effects]:
    """Judges benchmarks of every n and k that the categories allow.

    Args:
      synthetic_drops: {corruption: accuracy lost by every model [N]}, no NaN.
      natural_drops: {natural shift: the same}.
      clusters: categories of those corruptions.
      weights: [R, N], of `resampling.draw`.
      number: benchmarks averaged in a bin at most.
      fewest: benchmarks that an unbalanced bin must have; balanced ones need one.
      seed: of the draws of benchmarks.

    Returns:
      (bins by n, k and spread, effects).
    """
    names = [name for cluster in clusters for name in cluster]
    drops = [*(synthetic_drops[name] for name in names), *natural_drops.values()]
    covariance = resampling.covariances(drops, weights)
    bins, means = [], []
    for n in range(1, len(clusters) + 1):
        for k in range(1, max(map(len, clusters)) + 1):
            for spread, found in _draw(clusters, n, k, number, fewest, seed):
                r = _mean_correlation(found, names, covariance)  # [R, shifts]
                of_shift = {shift: estimate(r[:, s]) for s, shift in enumerate(natural_drops)}
                means.append(r.mean(axis=1))
                bins.append(Bin(n, k, n * k, spread, len(found), of_shift, estimate(means[-1])))
    return tuple(bins), _effects(bins, np.array(means))


def _draw(clusters, n, k, number, fewest, seed):
    """(spread, benchmarks) of every bin of n and k."""
    possible = count_balanced(clusters, n, k)
    if not possible:
        return
    start = balanced(clusters, n, k, min(number, possible), seed=seed)
    yield 0.0, start
    others = by_spread(unbalanced(start, clusters, copies=COPIES, seed=seed), clusters, more_than=fewest - 1)
    yield from ((spread, found[:number]) for spread, found in others.items())


def _mean_correlation(benchmarks, names, covariance):
    """Mean r over benchmarks from covariances of corruptions and shifts [R, C + S, C + S]: [R,
    S].
    """
    number = len(names)
    member = np.array([[name in benchmark for name in names] for benchmark in map(set, benchmarks)], float)
    share = member / member.sum(axis=1, keepdims=True)
    variance = ((share @ covariance[:, :number, :number]) * share).sum(axis=2)[:, :, None]  # [R, B, 1]
    of_shifts = np.diagonal(covariance, axis1=1, axis2=2)[:, None, number:]
    return resampling.correlation(variance, of_shifts, share @ covariance[:, :number, number:]).mean(axis=1)


def _effects(bins, means):
    """Slopes of the plane through the bins' mean r [bins, R]; NaN where the bins do not tell them
    apart.
    """
    rows = np.array([(1, b.categories, b.size, b.spread) for b in bins], float)
    if len(bins) < 4 or np.linalg.matrix_rank(rows) < 4:
        return Effects(*(Estimate(float("nan"), float("nan"), float("nan")) for _ in range(3)))
    slopes = np.linalg.pinv(rows) @ means
    return Effects(*(estimate(slope) for slope in slopes[1:]))
