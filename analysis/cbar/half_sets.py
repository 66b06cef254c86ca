"""Groups of five severities and half-sets of five candidates: the first half of the search for a dissimilar benchmark.

Source: E. Mintun, A. Kirillov, S. Xie, "On Interaction Between Augmentations and Corruptions in Natural Corruption
Robustness" (2021), supplements D.1 and D.2 and the released code; where text and code differ (seven groups in the
text, six in the code) this is the code.
"""

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from analysis.cbar.scans import Scan

CENTRES = (3, 4, 5, 6, 7, 8)
LEFT_OUT = ("saturate", "spatter", "gaussian_blur", "speckle_noise")  # the extra corruptions of ImageNet-C
HALF = 5
PRECISION = 0.01
_MAX_CANDIDATES = 63  # bits of a mask


class GroupTable(NamedTuple):
    """Six groups of each of n candidates, one for each centre 3..8."""

    names: tuple[str, ...]  # the candidates
    levels: np.ndarray  # the five levels, 1..10, of each group, int [n, 6, 5], increasing; the third is the centre
    error: np.ndarray  # mean error of a group in percent, [n, 6]
    # Mean over a group's levels of the distance to the nearest reference (corruption, level), [n, 6].
    distance: np.ndarray
    spread: float  # mean relative spread of the references' errors over their severities
    references: tuple[str, ...]  # the references that were used


def severity_spread(errors: ArrayLike) -> float:
    """Averages (|e_1 / e_3 - 1| + |e_5 / e_3 - 1|) / 2 over references; errors [m, 5] at severities 1..5."""
    errors = np.asarray(errors, float)
    if errors.ndim != 2 or errors.shape[1] != 5 or not len(errors) or not np.all(errors[:, 2] > 0):
        raise ValueError(f"expected errors [m, 5], above 0 at severity 3, found {errors.tolist()}")
    ratio = errors / errors[:, 2:3] - 1
    return float(np.mean((np.abs(ratio[:, 0]) + np.abs(ratio[:, 4])) / 2))


def severity_groups(errors: ArrayLike, spread: float) -> np.ndarray:
    """Finds the five levels around each centre whose relative errors come nearest to -s, -s/2, 0, s/2, s (s = spread).

    With rho(j) = e_j / e_i - 1 and centre i: the first level is the j <= i - 2 with rho(j) nearest to -s, the fifth
    the j >= i + 2 nearest to s; then the second, between the first and i, is nearest to -s/2, and the fourth, between
    i and the fifth, nearest to s/2. Of equally near levels the larger is taken.

    Args:
      errors: [10], of levels 1..10, above 0 at the centres.

    Returns:
      levels int [6, 5], counted from 1.
    """
    errors = np.asarray(errors, float)
    if errors.shape != (10,) or not np.all(errors[CENTRES[0] - 1 : CENTRES[-1]] > 0):
        raise ValueError(f"expected 10 errors, above 0 at levels 3..8, found {errors.tolist()}")
    groups = []
    for centre in CENTRES:
        ratio = errors / errors[centre - 1] - 1
        first = _nearest(ratio, -spread, 1, centre - 2)
        second = _nearest(ratio, -spread / 2, first + 1, centre - 1)
        fifth = _nearest(ratio, spread, centre + 2, len(errors))
        fourth = _nearest(ratio, spread / 2, centre + 1, fifth - 1)
        groups.append((first, second, centre, fourth, fifth))
    return np.array(groups)


def _nearest(ratio, goal, first, last):
    """The level in first..last whose ratio is nearest to the goal; of equals the largest."""
    return last - int(np.argmin(np.abs(goal - ratio[first - 1 : last])[::-1]))


def group_table(scan: Scan) -> GroupTable:
    """Groups the levels of one scan; references in `LEFT_OUT` do not count.

    Raises:
      ValueError: no reference is left, or an error of 0 where one is divided by it (the candidate is named).
    """
    kept = [i for i, name in enumerate(scan.references) if name.rpartition("/")[2] not in LEFT_OUT]
    if not kept:
        raise ValueError(f"expected references besides {', '.join(LEFT_OUT)}, found none")
    spread = severity_spread(scan.reference_errors[kept])
    levels = []
    for name, errors in zip(scan.candidates, scan.candidate_errors, strict=True):
        try:
            levels.append(severity_groups(errors, spread))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    levels = np.array(levels)
    nearest = nearest_distance(scan.candidate_features, scan.reference_features[kept])
    rows = np.arange(len(levels))[:, None, None]
    return GroupTable(
        scan.candidates,
        levels,
        scan.candidate_errors[rows, levels - 1].mean(axis=-1),
        nearest[rows, levels - 1].mean(axis=-1),
        spread,
        tuple(scan.references[i] for i in kept),
    )


def nearest_distance(features: ArrayLike, references: ArrayLike) -> np.ndarray:
    """Measures the L2 distance of every feature [..., D] to the nearest of the references [..., D]: float64 [...]."""
    features, references = np.asarray(features, np.float64), np.asarray(references, np.float64)
    width = features.shape[-1]
    distance = cdist(features.reshape(-1, width), references.reshape(-1, width))
    return distance.min(axis=1).reshape(features.shape[:-1])


class HalfSets(NamedTuple):
    """K half-sets, in lexicographic order of their members."""

    members: np.ndarray  # positions of the five candidates, increasing, int8 [K, 5]
    groups: np.ndarray  # which of the six groups each has, int8 [K, 5]
    error: np.ndarray  # mean error in percent, [K]
    distance: np.ndarray  # mean distance to the reference, [K]

    @property
    def masks(self):
        """Members as bits, int64 [K]."""
        return np.bitwise_or.reduce(np.int64(1) << self.members.astype(np.int64), axis=1)


def half_sets(
    error: ArrayLike, distance: ArrayLike, target: float, rng: np.random.Generator, precision: float = PRECISION
) -> HalfSets:
    """Draws for every five candidates one of the choices of groups that meet the target, uniformly, if any does.

    A choice meets it when |5 T - sum of the five group errors| / (5 T) < precision. For the first three candidates the
    216 sums are sorted; for the last two each of the 36 sums then leaves an interval of them.

    Args:
      error, distance: of the groups, [n, 6].
      target: T in percent, above 0.

    Returns:
      `HalfSets`, at most one for each of the C(n, 5) sets.
    """
    error, distance = np.asarray(error, float), np.asarray(distance, float)
    number, groups = error.shape
    if not HALF <= number <= _MAX_CANDIDATES or distance.shape != error.shape:
        raise ValueError(
            f"expected errors and distances of {HALF}..{_MAX_CANDIDATES} candidates, found shapes {error.shape} "
            f"and {distance.shape}"
        )
    if not target > 0 or not 0 < precision < 1:
        raise ValueError(f"expected a target above 0 and a precision in (0, 1), found {target} and {precision}")
    low, high = HALF * target * (1 - precision), HALF * target * (1 + precision)
    pairs = np.array(list(itertools.combinations(range(number), 2)))
    pair_sums = (error[pairs[:, 0], :, None] + error[pairs[:, 1], None, :]).reshape(len(pairs), -1)
    members, group_choices = [np.zeros((0, HALF), int)], [np.zeros((0, HALF), int)]
    for triple in itertools.combinations(range(number - 2), 3):
        a, b, c = triple
        sums = (error[a][:, None, None] + error[b][:, None] + error[c]).ravel()
        order = np.argsort(sums, kind="stable")
        sums = sums[order]
        start = np.searchsorted(pairs[:, 0], c, side="right")  # pairs of larger candidates are the last ones
        begin = np.searchsorted(sums, low - pair_sums[start:], side="right")
        count = np.maximum(np.searchsorted(sums, high - pair_sums[start:], side="left") - begin, 0)
        total = count.sum(axis=1)
        possible = np.flatnonzero(total)
        if not len(possible):
            continue
        rank = rng.integers(0, total[possible])
        ends = np.cumsum(count[possible], axis=1)
        last = (ends <= rank[:, None]).sum(axis=1)
        inside = rank - (ends[np.arange(len(possible)), last] - count[possible, last])
        first = order[begin[possible, last] + inside]
        members.append(np.column_stack([np.tile(triple, (len(possible), 1)), pairs[start + possible]]))
        digits = np.unravel_index(first, (groups,) * 3) + np.unravel_index(last, (groups,) * 2)
        group_choices.append(np.column_stack(digits))
    members, group_choices = np.concatenate(members), np.concatenate(group_choices)
    means = [values[members, group_choices].mean(axis=1) for values in (error, distance)]
    return HalfSets(members.astype(np.int8), group_choices.astype(np.int8), *means)
