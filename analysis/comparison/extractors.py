"""Do two feature extractors measure the same distances? MSD or MMD of the same schemes and
corruptions in two networks.

Distances of two networks are on different scales, so ranks are compared. Points that share a
corruption are not independent: intervals resample corruptions, each with all its schemes. E.
Mintun, A. Kirillov, S. Xie (2021), supplement C.1, compare WRN-40-2 and VGG-19-BN by the
correlation of either's MSD with error.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.distances import msd_mmd
from analysis.distances.by_scheme import MIN_SCHEMES, mean_distances
from analysis.distances.files import Distance
from analysis.intervals import percentile_interval


class Agreement(NamedTuple):
    """Rank correlations of the distances in two networks, severities averaged.

    Attributes:
      schemes, corruptions: those that both have.
      spearman, interval: over all points (scheme, corruption), with the percentile interval over
        resampled corruptions.
      ordering, ordering_interval: mean over corruptions of the correlation across schemes, which is
        what a correlation with error depends on; NaN with fewer than 3 schemes.
      by_corruption: {corruption: correlation across schemes}; NaN where a network does not tell
        them apart.
    """

    schemes: tuple[str, ...]
    corruptions: tuple[str, ...]
    spearman: float
    interval: tuple[float, float]
    ordering: float
    ordering_interval: tuple[float, float]
    by_corruption: dict[str, float]


def agreement(
    first: Sequence[Distance],
    second: Sequence[Distance],
    measure: str = "msd",
    *,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Agreement:
    """Compares two lists of `analysis.distances.files.Distance`; `measure` is `msd` or `mmd`.

    Raises:
      ValueError: another measure, fewer than 2 schemes or 3 corruptions in common, or distances
        that one has and the other lacks among these, or at other severities.
    """
    if measure not in ("msd", "mmd"):
        raise ValueError(f"expected the measure msd or mmd, found {measure!r}")
    keys = [[row[:3] for row in rows] for rows in (first, second)]
    schemes, corruptions = (
        tuple(name for name in dict.fromkeys(key[k] for key in keys[0]) if name in {key[k] for key in keys[1]})
        for k in range(2)
    )
    if len(schemes) < 2 or len(corruptions) < 3:
        raise ValueError(
            f"expected at least 2 schemes and 3 corruptions in both, found {len(schemes)} and {len(corruptions)}"
        )
    measured = [{key for key in of_network if key[0] in schemes and key[1] in corruptions} for of_network in keys]
    if measured[0] != measured[1]:
        raise ValueError(
            f"expected the same measurements in both, found only in one: {min(measured[0] ^ measured[1], key=str)}"
        )
    column = ("msd", "mmd").index(measure)
    x, y = (
        np.array([[means[scheme, name][column] for scheme in schemes] for name in corruptions])
        for means in map(mean_distances, (first, second))
    )
    ordering = np.full(len(corruptions), np.nan)
    if len(schemes) >= MIN_SCHEMES:
        ordering = np.array([msd_mmd.spearman(*pair) for pair in zip(x, y)])
    drawn = np.random.default_rng(seed).integers(0, len(corruptions), (resamples, len(corruptions)))
    whole = [msd_mmd.spearman(x[resample].ravel(), y[resample].ravel()) for resample in drawn]
    return Agreement(
        schemes,
        corruptions,
        msd_mmd.spearman(x.ravel(), y.ravel()),
        percentile_interval(whole, level),
        _mean(ordering),
        percentile_interval([_mean(ordering[resample]) for resample in drawn], level),
        dict(zip(corruptions, ordering.tolist())),
    )


def _mean(values):
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")
