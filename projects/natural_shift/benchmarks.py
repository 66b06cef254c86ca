"""Benchmarks as predictors of natural robustness: do size, number of categories and balance help?

Benchmarks of n categories and k corruptions each, and unbalanced ones made from them (`analysis.selection.nk_benchmarks`), each
judged by Pearson's r between the accuracy that models lose to the benchmark, averaged over its corruptions, and to a natural
shift. r is averaged over the benchmarks of a bin: (n, k, spread of the counts per category). Source: Laugros, Caplier, Ospici,
"Using Synthetic Corruptions to Measure Robustness to Natural Distribution Shifts" (BMVC 2021), which takes up to 200
benchmarks of a bin. Its code averages one value; this averages the whole bin.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.correlation import correlation
from analysis.selection.nk_benchmarks import Clusters, balanced, by_spread, count_balanced, unbalanced
from projects.natural_shift.prediction import covariances, estimate

COPIES = 10
_MOST = 200  # benchmarks that are averaged in a bin
# Made from the overlaps of ImageNet-C's corruptions in the paper on ImageNet-NOC (its Table 7); a test makes them again.
IMAGENET_C_CATEGORIES = (
    ("gaussian_noise", "shot_noise", "impulse_noise", "jpeg_compression"),
    ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "elastic_transform", "pixelate"),
    ("snow", "frost", "fog", "brightness", "contrast"),
)
COLUMNS = ("categories", "per_category", "size", "spread", "benchmarks", "shift", "value", "low", "high")


def leaders(
    synthetic_drops: Mapping[str, np.ndarray], natural_drops: Mapping[str, np.ndarray], weights: np.ndarray
) -> pd.DataFrame:
    """Orders corruptions by how well each alone predicts natural shifts, the best first, those without a correlation last.

    Arguments as in `compare_benchmarks`. Rows corruption, value, low, high (r averaged over the shifts), first (part of the
    resamples in which no other corruption has a larger mean).
    """
    names = list(synthetic_drops)
    covariance = covariances([*synthetic_drops.values(), *natural_drops.values()], weights)
    means = np.array([_mean_correlation([(name,)], names, covariance).mean(axis=1) for name in names])
    first = np.bincount(np.nan_to_num(means[:, 1:], nan=-2).argmax(axis=0), minlength=len(names))
    rows = [
        {"corruption": name, **estimate(row), "first": float(n / first.sum())}
        for name, row, n in zip(names, means, first, strict=True)
    ]
    return pd.DataFrame(sorted(rows, key=lambda row: (np.isnan(row["value"]), -row["value"])))


def categories_of(members: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Gives the published categories of ImageNet-C, by qualified names; raises ValueError where the members are others."""
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
    fewest: int = 20,
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Judges benchmarks of every n and k that the categories allow.

    Args:
      synthetic_drops: {corruption: accuracy lost by every model [N]}, no NaN.
      natural_drops: {natural shift: the same}.
      clusters: categories of the corruptions.
      weights: [R, N], from `analysis.correlation.draw`.
      fewest: benchmarks that an unbalanced bin must have; balanced ones need one.
      seed: seed of the draws of benchmarks.

    Returns:
      (bins, effects). Bins by n, k and spread, a row of `COLUMNS` for each shift and for their mean: spread is the standard
      deviation of the counts over the represented categories, rounded to .1; value is the mean r. Effects: rows effect, value,
      low, high, the slopes of a least-squares plane over the bins for one more category, one more corruption, and a spread
      larger by 1; NaN where the bins do not tell them apart.
    """
    names = [name for cluster in clusters for name in cluster]
    drops = [*(synthetic_drops[name] for name in names), *natural_drops.values()]
    covariance = covariances(drops, weights)
    rows, points, means = [], [], []
    for n in range(1, len(clusters) + 1):
        for k in range(1, max(map(len, clusters)) + 1):
            for spread, benchmarks in _draw(clusters, n, k, fewest, seed):
                r = _mean_correlation(benchmarks, names, covariance)  # [R, shifts]
                means.append(r.mean(axis=1))
                points.append((1, n, n * k, spread))
                head = dict(zip(COLUMNS, (n, k, n * k, spread, len(benchmarks))))
                columns = {shift: r[:, s] for s, shift in enumerate(natural_drops)} | {"mean": means[-1]}
                rows += [head | {"shift": shift, **estimate(values)} for shift, values in columns.items()]
    slopes = np.full((4, 2), np.nan)
    if np.linalg.matrix_rank(points) == 4:
        slopes = np.linalg.pinv(np.array(points, float)) @ np.array(means)
    effects = [{"effect": e, **estimate(s)} for e, s in zip(("categories", "size", "spread"), slopes[1:], strict=True)]
    return pd.DataFrame(rows), pd.DataFrame(effects)


def _draw(clusters, n, k, fewest, seed):
    """Yields (spread, benchmarks) of every bin of n and k."""
    possible = count_balanced(clusters, n, k)
    if not possible:
        return
    start = balanced(clusters, n, k, min(_MOST, possible), seed=seed)
    yield 0.0, start
    others = by_spread(unbalanced(start, clusters, copies=COPIES, seed=seed), clusters, more_than=fewest - 1)
    yield from ((spread, benchmarks[:_MOST]) for spread, benchmarks in others.items())


def _mean_correlation(benchmarks, names, covariance):
    """Mean r over benchmarks from covariances of corruptions and shifts [R, C + S, C + S]: [R, S]."""
    number = len(names)
    member = np.array([[name in benchmark for name in names] for benchmark in map(set, benchmarks)], float)
    share = member / member.sum(axis=1, keepdims=True)
    variance = ((share @ covariance[:, :number, :number]) * share).sum(axis=2)[:, :, None]  # [R, B, 1]
    of_shifts = np.diagonal(covariance, axis1=1, axis2=2)[:, None, number:]
    return correlation(variance, of_shifts, share @ covariance[:, :number, number:]).mean(axis=1)
