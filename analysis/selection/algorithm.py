"""Algorithm 1: the largest benchmark whose corruptions do not overlap.

Given overlaps O and the largest overlap t allowed between two members: find all largest sets with every pair at O <=
t; among them take the one of smallest mean overlap. Source: Laugros, Caplier, Ospici, "Increasing the Coverage and
Balance of Robustness Benchmarks by Using Non-Overlapping Corruptions", Algorithm 1. The paper leaves two things open.
Is O = t allowed? Here yes; `strict` says no. Which set wins a tie? Here the one of smaller mean overlap before
clipping at 0, then the first by name in alphabetical order.

The sets are the maximum cliques of the graph that joins compatible pairs, see `analysis.selection.cliques`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from analysis.selection import cliques
from analysis.selection.cliques import Work, bits
from runtime.log import bar

RESOLUTION = 1e-10
MAX_SETS = 10_000
MAX_BRANCHES = 400_000
"""Branches that the search for one benchmark takes at most, and so do a sweep and all resamples of a study together: about 20
seconds. Studies of fifty corruptions need a few hundred for each. Resamples of more candidates take fewer."""
THRESHOLDS = tuple(k / 20 for k in range(21))  # 0, .05, ... 1, for `sweep`
_CLAMP = 100.0
_LEAST = 100  # resamples that are selected from at least, each with that share of the branches
_MANY = 50  # candidates; where there are more a branch takes longer, and resamples together take fewer
_LISTED = 500  # sets listed in a resample, or of a sweep, where only the winner matters
_DELAY = 3  # seconds before progress is shown


@dataclass(frozen=True)
class Selection:
    """A selected benchmark. All sets are tuples of names in the order of the input.

    Attributes:
      members: the winner.
      mean_overlap: mean O over its pairs; 0 for a single member.
      mean_unclipped: mean unclipped O over its pairs, or None if it was not given.
      sets: all sets of the largest size, best first; at most `max_sets` of them.
      complete: False if there are more. The winner is found all the same, by branch and bound over all of them.
      exact: False if a search gave up after `MAX_BRANCHES`: a set of smaller mean overlap may exist.
      largest: False if a larger set may exist, too; then no set that was found is larger.
      ties: the sets in `sets`, besides the winner, whose mean O equals the winner's (to 1e-10).
      dropped: candidates without a defined overlap, left out.
      threshold, strict: as `select` got them.
    """

    members: tuple[str, ...]
    mean_overlap: float
    mean_unclipped: float | None
    sets: tuple[tuple[str, ...], ...]
    complete: bool
    exact: bool
    largest: bool
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
        unproved = "smallest mean overlap" if self.largest else "largest size: a larger set may exist"
        proof = "" if self.exact else f"; the search gave up before proving the {unproved}"
        return f"{number} of size {self.size}; {ties} more with the same mean overlap{proof}"


def select(
    overlap: ArrayLike,
    names: Sequence[str],
    threshold: float,
    strict: bool = False,
    unclipped: ArrayLike | None = None,
    *,
    max_sets: int = MAX_SETS,
    work: Work | None = None,
) -> Selection:
    """Selects the largest set of corruptions that do not overlap: Algorithm 1.

    Args:
      overlap: O, symmetric [n, n]; the diagonal is ignored, except that NaN there, or in all of a row, drops the
        candidate.
      names: n candidates, each once.
      threshold: largest overlap t allowed between two members, in [0, 1].
      strict: demand O < t instead of O <= t.
      unclipped: overlap before the maximum with 0, [n, n], for ties. Values are compared to a resolution of 1e-10 and,
        if unclipped, within +-100.
      max_sets: how many of the largest sets are listed at most, >= 1.
      work: bound of the search; None is `MAX_BRANCHES`, with a progress bar. Beyond it the result is the best of the sets that
        were found, which no exchange of one member makes better, and is not `exact`.

    Raises ValueError for matrices that are not square, symmetric and as large as `names`; a threshold outside [0, 1];
    NaN between two valid candidates; no valid candidate.
    """
    names = tuple(names)
    matrix = checked("overlap", overlap, names)
    free = matrix if unclipped is None else checked("unclipped overlap", unclipped, names)
    if not (isinstance(threshold, int | float) and 0 <= threshold <= 1):
        raise ValueError(f"expected a threshold in [0, 1], found {threshold!r}")
    dropped = undefined(matrix)
    # Vertices in alphabetical order, so that the order of vertices is the last tie-break.
    kept = sorted((i for i in range(len(names)) if not dropped[i]), key=lambda i: names[i])
    if not kept:
        raise ValueError(f"expected a candidate with a defined overlap, found none in {names}")
    block = np.ix_(kept, kept)
    matrix, free = matrix[block], free[block]
    _refuse_nan(np.isnan(matrix) | np.isnan(free), [names[i] for i in kept])

    joined = _allowed(matrix, threshold, strict)
    np.fill_diagonal(joined, False)
    costs = [np.where(joined, _integers(values), 0) for values in (matrix, free)[: 1 if unclipped is None else 2]]
    with bar("branch", total=MAX_BRANCHES, delay=_DELAY, leave=False, disable=work is not None or None) as progress:
        found = _search(joined, costs, max_sets, work or Work(MAX_BRANCHES, progress.update))
    keyed = sorted(zip(cliques.clique_keys(found.cliques, costs), found.cliques))

    def named(clique):
        return tuple(names[i] for i in sorted(kept[v] for v in bits(clique)))

    (first, *_), winner = keyed[0]
    members = [*bits(winner)]
    upper = np.triu_indices(len(members), 1)
    means = [float(of[np.ix_(members, members)][upper].mean()) if len(members) > 1 else 0.0 for of in (matrix, free)]
    means[1] = None if unclipped is None else means[1]
    sets = tuple(named(clique) for _, clique in keyed)
    ties = tuple(named(clique) for key, clique in keyed[1:] if key[0] == first)
    without = tuple(name for name, drop in zip(names, dropped, strict=True) if drop)
    return Selection(named(winner), *means, sets, *found[1:], ties, without, float(threshold), bool(strict))


class _Found(NamedTuple):
    cliques: list[int]
    complete: bool
    exact: bool
    largest: bool


def _search(joined, costs, max_sets, work):
    """(The largest sets as bitmasks, the best among them; complete, exact, largest as of `Selection`)."""
    listed, complete, largest = cliques.largest_cliques(joined, max_sets, work)
    if complete:
        return _Found(listed, True, True, True)
    best, exact = cliques.cheapest_clique(joined, listed[0].bit_count(), costs, listed, work)
    return _Found([best, *(clique for clique in listed if clique != best)][:max_sets], False, exact, largest)


def undefined(overlap: ArrayLike) -> np.ndarray:
    """Marks the candidates without a defined overlap, bool [..., n]: NaN on the diagonal or all along the row."""
    missing = np.isnan(np.asarray(overlap, float))
    n = missing.shape[-1]
    others = (missing | np.eye(n, dtype=bool)).all(axis=-1) & (n > 1)
    return np.diagonal(missing, axis1=-2, axis2=-1) | others


def sweep(
    overlap: ArrayLike,
    names: Sequence[str],
    thresholds: Iterable[float],
    strict: bool = False,
    unclipped: ArrayLike | None = None,
) -> tuple[Selection, ...]:
    """Selects at each threshold. Size never shrinks as the threshold grows; the sets are not nested in general. All together
    take `MAX_BRANCHES` at most, in equal parts.
    """
    thresholds = [*map(float, thresholds)]
    share = MAX_BRANCHES // max(1, len(thresholds))
    each = bar("threshold", thresholds, delay=_DELAY, leave=False)
    return tuple(select(overlap, names, at, strict, unclipped, max_sets=_LISTED, work=Work(share)) for at in each)


@dataclass(frozen=True)
class Stability:
    """How often resampled data select the same.

    Attributes:
      resamples: number of resamples that have a benchmark.
      members: {name: fraction of them whose winner holds it}.
      sets: (set, fraction that it wins), most frequent first.
      sizes: {size: fraction}.
      bound: what was done where the search took too long, or "".
    """

    resamples: int
    members: dict[str, float]
    sets: tuple[tuple[tuple[str, ...], float], ...]
    sizes: dict[int, float]
    bound: str = ""


def stability(
    samples: ArrayLike, names: Sequence[str], threshold: float, strict: bool = False, unclipped: ArrayLike | None = None
) -> Stability:
    """Repeats the selection on resampled overlaps; the largest sets are listed once for each graph that occurs.

    All resamples together take `MAX_BRANCHES` at most, an eighth of it for a hundred candidates, and each a hundredth of
    that. A resample that needs more counts by the best set that was found; resamples for which none are left do not count.

    `samples` are overlaps [B, n, n] (`analysis.overlap.uncertainty`). Corruptions that are undefined in a resample
    are dropped there; a resample without any valid corruption is not counted. `names`, `threshold` and `strict` are
    as of `select`; `unclipped` are the same resamples before the maximum with 0, or None.
    """
    names, samples = tuple(names), np.asarray(samples, float)
    if samples.ndim != 3 or not len(samples):
        raise ValueError(f"expected resampled overlaps [B, n, n], found shape {samples.shape}")
    free = samples if unclipped is None else np.asarray(unclipped, float)
    dropped = undefined(samples)
    kept = ~dropped[:, :, None] & ~dropped[:, None, :]
    _refuse_nan(((np.isnan(samples) | np.isnan(free)) & kept).any(axis=0), names)
    joined = _allowed(samples, threshold, strict)
    graphs = np.concatenate([joined.reshape(len(samples), -1), dropped], axis=1)
    _, group, times = np.unique(np.packbits(graphs, axis=1), axis=0, return_inverse=True, return_counts=True)
    most_together = int(MAX_BRANCHES * min(1, _MANY / len(names)) ** 3)
    left, share, given_up = most_together, most_together // _LEAST, 0
    of_graph: dict[int, tuple] = {}  # {graph: its largest sets}, where they can be listed
    winners: list[tuple[str, ...]] = []
    valid = np.flatnonzero(~dropped.all(axis=1)).tolist()
    if not valid:
        raise ValueError("expected a resample with a defined overlap, found none")
    for row in bar("resample", valid, delay=_DELAY, leave=False):
        graph = group.ravel()[row]
        if graph not in of_graph:
            most = min(left, share)
            listed, work = _LISTED if times[graph] > 1 else 1, Work(most)
            found = select(samples[row], names, threshold, strict, free[row], max_sets=listed, work=work)
            left -= most - max(work.left, 0)
            if not found.exact and most < share:
                break
            given_up += not found.exact
            if not found.complete:
                winners.append(found.members)
                continue
            of_graph[graph] = tuple(sorted(found.sets, key=sorted))
        winners.append(_cheapest(of_graph[graph], names, samples[row], free[row]))
    total, sets = len(winners), Counter(winners)
    held, sizes = Counter(n for w in winners for n in w), Counter(map(len, winners))
    return Stability(
        total,
        {name: held[name] / total for name in names},
        tuple((s, k / total) for s, k in sorted(sets.items(), key=lambda x: (-x[1], x[0]))),
        {size: sizes[size] / total for size in sorted(sizes)},
        _bound(most_together, len(valid), total, given_up),
    )


def _bound(branches, valid, counted, given_up):
    parts = [f"only the first {counted} of {valid} resamples count"] if counted < valid else []
    parts += [f"{given_up} count by the best set that was found, perhaps not the best one"] if given_up else []
    return f"the search is bounded to {branches:,} branches: {'; '.join(parts)}" if parts else ""


def _cheapest(sets, names, *matrices):
    """The set of smallest sum of each matrix [n, n] in turn over its pairs, then the first."""
    members = [[names.index(name) for name in of_set] for of_set in sets]
    costs = [cliques.sums(members, _integers(values)).tolist() for values in matrices]
    return sets[min(zip(*costs, range(len(sets)), strict=True))[-1]]


def _allowed(overlap, threshold, strict):
    """Compares to `RESOLUTION`, so that rounding does not part overlaps from a threshold that they equal."""
    return overlap < threshold - RESOLUTION if strict else overlap <= threshold + RESOLUTION


def _integers(values):
    """Costs as integers, so that equal sums compare equal in whatever order they are added; 0 for NaN."""
    return np.rint(np.clip(np.nan_to_num(values), -_CLAMP, _CLAMP) / RESOLUTION).astype(np.int64)


def checked(what: str, values: ArrayLike, names: Sequence[str]) -> np.ndarray:
    """Returns a matrix as float64; raises ValueError unless it is square, symmetric, and of distinct names."""
    values = np.asarray(values, float)
    if len(set(names)) != len(names) or values.shape != (len(names), len(names)):
        raise ValueError(f"expected a square {what} of {len(names)} distinct names, found shape {values.shape}")
    if not np.allclose(values, values.T, rtol=0, atol=1e-9, equal_nan=True):
        raise ValueError(f"expected a symmetric {what}, found differences across the diagonal")
    return np.fmax(values, values.T)


def _refuse_nan(missing, names):
    missing = missing & ~np.eye(len(names), dtype=bool)
    if missing.any():
        i, j = np.argwhere(missing)[0]
        raise ValueError(
            f"expected an overlap for every pair of valid candidates, found NaN for ({names[i]}, {names[j]})"
        )
