"""Half-sets: five candidates, each with a group of severities, whose mean error is the target.

Source: E. Mintun, A. Kirillov, S. Xie, "On Interaction Between Augmentations and Corruptions in
Natural Corruption Robustness" (2021), supplement D.2 and the released code.
"""

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

HALF = 5
PRECISION = 0.01
_MAX_CANDIDATES = 63  # bits of a mask


class HalfSets(NamedTuple):
    """K half-sets, in lexicographic order of their members.

    Attributes:
      members: positions of the five candidates, increasing, int8 [K, 5].
      groups: which of the six groups each has, int8 [K, 5].
      error: mean error in percent, [K].
      distance: mean distance to the reference, [K].
    """

    members: np.ndarray
    groups: np.ndarray
    error: np.ndarray
    distance: np.ndarray

    @property
    def masks(self):
        """Members as bits, int64 [K]."""
        return np.bitwise_or.reduce(np.int64(1) << self.members.astype(np.int64), axis=1)


def half_sets(
    error: ArrayLike, distance: ArrayLike, target: float, rng: np.random.Generator, precision: float = PRECISION
) -> HalfSets:
    """Draws for every five candidates one of the choices of groups that meet the target, uniformly,
    if any does.

    A choice meets it when |5 T - sum of the five group errors| / (5 T) < precision. For the first
    three candidates the 216 sums are sorted; for the last two each of the 36 sums then leaves an
    interval of them.

    Args:
      error, distance: of the groups, [n, 6].
      target: T in percent, above 0.
      rng: np.random.Generator.

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
