"""Algorithm 1: the largest benchmark whose corruptions do not overlap.

Given overlaps O and the largest overlap t allowed between two members: find all largest sets with
every pair at O <= t; among them take the one of smallest mean overlap.
Source: Laugros, Caplier, Ospici, "Increasing the Coverage and Balance of Robustness Benchmarks by
Using Non-Overlapping Corruptions", Algorithm 1. The paper leaves open: whether O = t is allowed
(here yes; `strict` says no), and ties, which go to the smaller mean of the overlap before it is
clipped at 0, then to the names in alphabetical order.

Exact: the sets are the maximum cliques of the graph of compatible pairs
(`analysis.selection.cliques`).
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.selection import cliques

RESOLUTION = 1e-10
MAX_SETS = 10_000
MAX_NODES = 1_000_000  # a few minutes; real studies need fewer than a thousand
_CLAMP = 100.0
_LISTED = 500  # sets listed in a resample, where only the winner matters
assert _CLAMP / RESOLUTION < cliques.COST_LIMIT


@dataclass(frozen=True)
class Selection:
    """A selected benchmark. All sets are tuples of names in the order of the input.

    Attributes:
      members: the winner.
      mean_overlap: mean O over its pairs; 0 for a single member.
      mean_unclipped: mean unclipped O over its pairs, or None if it was not given.
      sets: all sets of the largest size, best first; at most `max_sets` of them.
      complete: False if there are more sets than that. The winner is found all the same, by branch
        and bound over all of them.
      exact: False if that search gave up after `MAX_NODES` branches: no set is larger than the
        winner, but one of smaller mean overlap may exist.
      ties: the sets in `sets`, besides the winner, whose mean O equals the winner's (to 1e-10).
      dropped: candidates without a defined overlap, left out.
      threshold: largest overlap that was allowed between two members.
      strict: whether the overlap had to be below it.
    """

    members: tuple[str, ...]
    mean_overlap: float
    mean_unclipped: float | None
    sets: tuple[tuple[str, ...], ...]
    complete: bool
    exact: bool
    ties: tuple[tuple[str, ...], ...]
    dropped: tuple[str, ...]
    threshold: float
    strict: bool

    @property
    def size(self):
        """Number of members."""
        return len(self.members)

    def describe(self):
        """One sentence: how many sets of the largest size there are, and how many tie."""
        number = f"{len(self.sets)} set(s)" if self.complete else f"over {len(self.sets)} sets"
        ties = f"{len(self.ties)}" if self.complete else f"at least {len(self.ties)}"
        proof = "" if self.exact else "; the search gave up before proving the smallest mean overlap"
        return f"{number} of size {self.size}; {ties} more with the same mean overlap{proof}"


def select(
    overlap: ArrayLike,
    names: Sequence[str],
    threshold: float,
    strict: bool = False,
    unclipped: ArrayLike | None = None,
    *,
    max_sets: int = MAX_SETS,
) -> Selection:
    """Selects the largest set of corruptions that do not overlap: Algorithm 1.

    Args:
      overlap: O, symmetric [n, n]; the diagonal is ignored, except that NaN there, or in all of a
        row, drops the candidate.
      names: n candidates, each once.
      threshold: largest overlap t allowed between two members, in [0, 1].
      strict: demand O < t instead of O <= t.
      unclipped: overlap before the maximum with 0, [n, n], for ties. Values are compared to a
        resolution of 1e-10 and, if unclipped, within +-100.
      max_sets: how many of the largest sets are listed at most, >= 1.

    Returns:
      A `Selection`.

    Raises:
      ValueError: matrices that are not square, symmetric and as large as `names`; a threshold
        outside [0, 1]; NaN between two valid candidates; no valid candidate.
    """
    names = tuple(names)
    matrix = _matrix("overlap", overlap, names)
    free = matrix if unclipped is None else _matrix("unclipped overlap", unclipped, names)
    if not (isinstance(threshold, int | float) and 0 <= threshold <= 1):
        raise ValueError(f"expected a threshold in [0, 1], found {threshold!r}")
    if max_sets < 1:
        raise ValueError(f"expected max_sets of at least 1, found {max_sets}")
    dropped = undefined(matrix)
    # Vertices in alphabetical order, so that the order of vertices is the last tie-break.
    kept = sorted((i for i in range(len(names)) if not dropped[i]), key=lambda i: names[i])
    if not kept:
        raise ValueError(f"expected a candidate with a defined overlap, found none in {names}")
    block = np.ix_(kept, kept)
    matrix, free = matrix[block], free[block]
    _refuse_nan(matrix, free, [names[i] for i in kept])

    joined = matrix < threshold if strict else matrix <= threshold
    np.fill_diagonal(joined, False)
    adjacent = [sum(1 << int(j) for j in np.flatnonzero(row)) for row in joined]
    costs = [_integers(values, joined) for values in (matrix, free)[: 1 if unclipped is None else 2]]
    size = cliques.maximum_size(adjacent)
    largest, complete = cliques.maximum_cliques(adjacent, size, max_sets)
    exact = True
    if not complete:
        best, exact = cliques.cheapest_clique(adjacent, size, costs, largest, MAX_NODES)
        largest = [best, *(c for c in largest if c != best)][:max_sets]
    keyed = sorted(zip(cliques.clique_keys(largest, costs), largest))

    def named(clique):
        return tuple(names[i] for i in sorted(kept[v] for v in cliques.bits(clique)))

    (first, *_), winner = keyed[0]
    pairs = math.comb(size, 2)
    members = [*cliques.bits(winner)]
    upper = np.triu_indices(size, 1)
    means = [float(values[np.ix_(members, members)][upper].mean()) if pairs else 0.0 for values in (matrix, free)]
    return Selection(
        named(winner),
        means[0],
        None if unclipped is None else means[1],
        tuple(named(clique) for _, clique in keyed),
        complete,
        exact,
        tuple(named(clique) for key, clique in keyed[1:] if key[0] == first),
        tuple(name for name, drop in zip(names, dropped, strict=True) if drop),
        float(threshold),
        bool(strict),
    )


def undefined(overlap: ArrayLike) -> np.ndarray:
    """Tells which candidates have no defined overlap, bool [n]: NaN on the diagonal or all along
    the row.
    """
    overlap = np.asarray(overlap, float)
    missing = np.isnan(overlap)
    others = missing | np.eye(len(overlap), dtype=bool)
    return np.diagonal(missing) | (others.all(axis=1) & (len(overlap) > 1))


def sweep(
    overlap: ArrayLike,
    names: Sequence[str],
    thresholds: Iterable[float],
    strict: bool = False,
    unclipped: ArrayLike | None = None,
    *,
    max_sets: int = MAX_SETS,
) -> tuple[Selection, ...]:
    """Selects at each threshold. Size never shrinks as the threshold grows; the sets are
    not nested in general."""
    return tuple(select(overlap, names, float(t), strict, unclipped, max_sets=max_sets) for t in thresholds)


@dataclass(frozen=True)
class Stability:
    """How often resampled data select the same.

    Attributes:
      resamples: number of resamples in which a benchmark could be selected.
      members: name -> fraction of resamples whose winner holds it, in the order of the input.
      sets: (set, fraction of resamples that it wins), most frequent first.
      sizes: size -> fraction of resamples.
    """

    resamples: int
    members: dict[str, float]
    sets: tuple[tuple[tuple[str, ...], float], ...]
    sizes: dict[int, float]


def stability(
    samples: ArrayLike, names: Sequence[str], threshold: float, strict: bool = False, unclipped: ArrayLike | None = None
) -> Stability:
    """Repeats the selection on resampled overlaps [B, n, n] (`analysis.overlap.uncertainty`).

    `unclipped`: the same resamples before the maximum with 0, or None. Corruptions that are
    undefined in a resample are dropped there; a resample without any valid corruption is not
    counted.
    """
    names, samples = tuple(names), np.asarray(samples, float)
    if samples.ndim != 3 or not len(samples):
        raise ValueError(f"expected resampled overlaps [B, n, n], found shape {samples.shape}")
    free = [None] * len(samples) if unclipped is None else unclipped
    winners = [
        select(sample, names, threshold, strict, unclipped_sample, max_sets=_LISTED).members
        for sample, unclipped_sample in zip(samples, free, strict=True)
        if not undefined(sample).all()
    ]
    if not winners:
        raise ValueError("expected a resample with a defined overlap, found none")
    number, sets = len(winners), Counter(winners)
    held, sizes = Counter(n for w in winners for n in w), Counter(map(len, winners))
    return Stability(
        number,
        {name: held[name] / number for name in names},
        tuple((s, k / number) for s, k in sorted(sets.items(), key=lambda x: (-x[1], x[0]))),
        {size: sizes[size] / number for size in sorted(sizes)},
    )


def _integers(values, joined):
    """Costs as integers, so that equal sums compare equal in whatever order they are added."""
    scaled = np.rint(np.clip(values, -_CLAMP, _CLAMP) / RESOLUTION)
    return np.where(joined, scaled, 0).astype(np.int64)


def _matrix(what, values, names):
    values = np.asarray(values, float)
    if len(set(names)) != len(names) or values.shape != (len(names), len(names)):
        raise ValueError(f"expected a square {what} of {len(names)} distinct names, found shape {values.shape}")
    if not np.allclose(values, values.T, rtol=0, atol=1e-9, equal_nan=True):
        raise ValueError(f"expected a symmetric {what}, found differences across the diagonal")
    return np.fmax(values, values.T)


def _refuse_nan(matrix, free, names):
    missing = (np.isnan(matrix) | np.isnan(free)) & ~np.eye(len(names), dtype=bool)
    if missing.any():
        i, j = np.argwhere(missing)[0]
        raise ValueError(
            f"expected an overlap for every pair of valid candidates, found NaN for ({names[i]}, {names[j]})"
        )
