"""Differences between models on the same test images, corrected for their number."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from analysis.errors.scores import Value

LEVEL = 0.05


class Difference(NamedTuple):
    """Difference between the numbers of two models.

    Attributes:
      value: first minus second.
      se: its standard error, over test images and, with several seeds, between seeds.
      p: two-sided p-value of "no difference".
    """

    value: float
    se: float
    p: float


def paired(first: Sequence[Value], second: Sequence[Value]) -> Difference | None:
    """Compares two models by their numbers on the same images; None where images are not known.

    Each image's difference is averaged over seeds; the variance of their mean over N images is added to that of either
    model's mean over its seeds, where it has several. t with the degrees of freedom of Welch and Satterthwaite. With
    single seeds the difference is between trained networks, not between their recipes.

    Args:
      first, second: a number for each seed.
    """
    images = [number.images for number in (*first, *second)]
    if any(row is None for row in images) or len({len(row) for row in images}) > 1 or len(images[0]) < 2:
        return None
    difference = np.mean(images[: len(first)], axis=0) - np.mean(images[len(first) :], axis=0)
    parts = [(difference.var(ddof=1) / len(difference), len(difference) - 1)]
    parts += [
        (np.var([number.value for number in values], ddof=1) / len(values), len(values) - 1)
        for values in (first, second)
        if len(values) > 1
    ]
    value, variance = float(difference.mean()), float(sum(part for part, _ in parts))
    if variance == 0:
        return Difference(value, 0.0, 1.0 if value == 0 else 0.0)
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    return Difference(value, math.sqrt(variance), float(2 * stats.t.sf(abs(value) / math.sqrt(variance), freedom)))


def holm(values: Sequence[float]) -> list[float]:
    """Adjusts p-values for their number so that the chance of any false finding stays below the level.

    Sorted p_1 <= ... <= p_m become max over j <= i of min(1, (m - j + 1) p_j). Source: S. Holm, "A Simple Sequentially
    Rejective Multiple Test Procedure", 1979.
    """
    adjusted, largest = [0.0] * len(values), 0.0
    for rank, index in enumerate(np.argsort(values, kind="stable")):
        largest = max(largest, min(1.0, (len(values) - rank) * values[index]))
        adjusted[index] = largest
    return adjusted


def clearly_best(models: Mapping[str, Sequence[Value]], level: float = LEVEL) -> str | None:
    """Names the model whose mean is significantly smaller than every other mean, Holm-corrected over all pairs.

    Args:
      models: {name: a number for each seed}; the smaller, the better.
      level: of the corrected p-values.

    Returns:
      Its name; None where there is no such model, fewer than two, or answers are not stored.
    """
    pairs = list(itertools.combinations(models, 2))
    differences = [paired(models[a], models[b]) for a, b in pairs]
    if not pairs or any(difference is None for difference in differences):
        return None
    adjusted = dict(zip(pairs, holm([difference.p for difference in differences]), strict=True))
    best = min(models, key=lambda name: float(np.mean([number.value for number in models[name]])))
    return best if all(p < level for pair, p in adjusted.items() if best in pair) else None
