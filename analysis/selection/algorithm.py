"""Algorithm 1: the largest benchmark whose corruptions do not overlap.

Given overlaps O and the largest overlap t allowed between two members: find all largest sets with every pair at O <=
t; among them take the one of smallest mean overlap. Source: Laugros, Caplier, Ospici, "Increasing the Coverage and
Balance of Robustness Benchmarks by Using Non-Overlapping Corruptions", Algorithm 1. The paper leaves two things open.
Is O = t allowed? Here yes; `strict` says no. Which set wins a tie? Here the one of smaller mean overlap before
clipping at 0, then the first by name in alphabetical order.

The sets are the maximum cliques of the graph that joins compatible pairs. A graph of n vertices is a list of n Python
integers: bit j of `adjacent[i]` says that i and j may be together. A search branches in the order of a greedy colouring
(Tomita and Seki, 2003): a clique takes at most one vertex of a colour class, so the number of colours that are left
bounds the size that a branch can reach.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

RESOLUTION = 1e-10
MAX_SETS = 10_000
MAX_NODES = 1_000_000  # takes a few minutes; real studies need fewer than a thousand
THRESHOLDS = tuple(k / 20 for k in range(21))  # 0, .05, ... 1, for `sweep`
_CLAMP = 100.0
_LISTED = 500  # sets listed in a resample, where only the winner matters
_CHUNK = 100  # resamples compared at once
_INFINITE = 1 << 54  # above the cost of all pairs of 60 vertices, each at most _CLAMP / RESOLUTION; 60 fit into int64


@dataclass(frozen=True)
class Selection:
    """A selected benchmark. All sets are tuples of names in the order of the input.

    Attributes:
      members: the winner.
      mean_overlap: mean O over its pairs; 0 for a single member.
      mean_unclipped: mean unclipped O over its pairs, or None if it was not given.
      sets: all sets of the largest size, best first; at most `max_sets` of them.
      complete: False if there are more. The winner is found all the same, by branch and bound over all of them.
      exact: False if that search gave up after `MAX_NODES` branches: a set of smaller mean overlap may exist.
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
      overlap: O, symmetric [n, n]; the diagonal is ignored, except that NaN there, or in all of a row, drops the
        candidate.
      names: n candidates, each once.
      threshold: largest overlap t allowed between two members, in [0, 1].
      strict: demand O < t instead of O <= t.
      unclipped: overlap before the maximum with 0, [n, n], for ties. Values are compared to a resolution of 1e-10 and,
        if unclipped, within +-100.
      max_sets: how many of the largest sets are listed at most, >= 1.

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

    joined = matrix < threshold if strict else matrix <= threshold
    np.fill_diagonal(joined, False)
    adjacent = [sum(1 << int(j) for j in np.flatnonzero(row)) for row in joined]
    costs = [np.where(joined, _integers(values), 0) for values in (matrix, free)[: 1 if unclipped is None else 2]]
    size = maximum_size(adjacent)
    largest, complete = maximum_cliques(adjacent, size, max_sets)
    exact = True
    if not complete:
        best, exact = cheapest_clique(adjacent, size, costs, largest, MAX_NODES)
        largest = [best, *(c for c in largest if c != best)][:max_sets]
    keyed = sorted(zip(clique_keys(largest, costs), largest))

    def named(clique):
        return tuple(names[i] for i in sorted(kept[v] for v in bits(clique)))

    (first, *_), winner = keyed[0]
    members, upper = [*bits(winner)], np.triu_indices(size, 1)
    means = [float(values[np.ix_(members, members)][upper].mean()) if size > 1 else 0.0 for values in (matrix, free)]
    sets = tuple(named(clique) for _, clique in keyed)
    ties = tuple(named(clique) for key, clique in keyed[1:] if key[0] == first)
    without = tuple(name for name, drop in zip(names, dropped, strict=True) if drop)
    means[1] = None if unclipped is None else means[1]
    return Selection(named(winner), *means, sets, complete, exact, ties, without, float(threshold), bool(strict))


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
    """Selects at each threshold. Size never shrinks as the threshold grows; the sets are not nested in general."""
    return tuple(select(overlap, names, float(t), strict, unclipped) for t in thresholds)


@dataclass(frozen=True)
class Stability:
    """How often resampled data select the same: the number of resamples that have a benchmark; the fraction of them
    whose winner holds each name; (set, fraction that it wins), most frequent first; and {size: fraction}.
    """

    resamples: int
    members: dict[str, float]
    sets: tuple[tuple[tuple[str, ...], float], ...]
    sizes: dict[int, float]


def stability(
    samples: ArrayLike, names: Sequence[str], threshold: float, strict: bool = False, unclipped: ArrayLike | None = None
) -> Stability:
    """Repeats the selection on resampled overlaps; the largest sets are listed once for each graph that occurs.

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
    joined = samples < threshold if strict else samples <= threshold
    graphs = np.concatenate([joined.reshape(len(samples), -1), dropped], axis=1)
    _, group = np.unique(np.packbits(graphs, axis=1), axis=0, return_inverse=True)
    winners: list[tuple[str, ...]] = []

    def selected(row):
        return select(samples[row], names, threshold, strict, free[row], max_sets=_LISTED)

    for number in range(group.max() + 1):
        of_graph = np.flatnonzero((group.ravel() == number) & ~dropped.all(axis=1))
        for start in range(0, len(of_graph), _CHUNK):
            rows = of_graph[start : start + _CHUNK]
            if not start:
                found = selected(rows[0])
                sets = sorted(found.sets, key=sorted)
            if found.complete:
                winners += [sets[k] for k in _cheapest(sets, names, samples[rows], free[rows])]
            else:
                winners += [selected(row).members for row in rows]
    if not winners:
        raise ValueError("expected a resample with a defined overlap, found none")
    total, sets = len(winners), Counter(winners)
    held, sizes = Counter(n for w in winners for n in w), Counter(map(len, winners))
    return Stability(
        total,
        {name: held[name] / total for name in names},
        tuple((s, k / total) for s, k in sorted(sets.items(), key=lambda x: (-x[1], x[0]))),
        {size: sizes[size] / total for size in sorted(sizes)},
    )


def _cheapest(sets, names, *matrices):
    """The set of smallest sum of each matrix [R, n, n] in turn over its pairs, then the first: int [R]."""
    member = np.array([[name in members for name in names] for members in sets], np.int64)
    best = np.ones((len(matrices[0]), len(sets)), bool)
    for values in matrices:
        scaled = _integers(values) * ~np.eye(len(names), dtype=bool)
        cost = ((member @ scaled) * member).sum(axis=-1)
        best &= cost == np.where(best, cost, _INFINITE).min(axis=1, keepdims=True)
    return best.argmax(axis=1)


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


def bits(mask: int) -> Iterator[int]:
    """Yields the positions of the set bits, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def colour_classes(adjacent: Sequence[int], candidates: int) -> list[int]:
    """Splits candidates into independent sets (bitmasks) by greedy colouring."""
    classes = []
    while candidates:
        free, colour = candidates, 0
        while free:
            low = free & -free
            colour |= low
            free &= ~(adjacent[low.bit_length() - 1] | low)
        classes.append(colour)
        candidates &= ~colour
    return classes


def maximum_size(adjacent: Sequence[int]) -> int:
    """Counts the vertices of the largest clique; 0 for a graph without vertices."""
    best = 0

    def search(size, candidates):
        nonlocal best
        if not candidates:
            best = max(best, size)
            return
        classes = colour_classes(adjacent, candidates)
        for colour in range(len(classes), 0, -1):
            for v in bits(classes[colour - 1]):
                if size + colour <= best:
                    return
                search(size + 1, candidates & adjacent[v])
                candidates &= ~(1 << v)

    search(0, (1 << len(adjacent)) - 1)
    return best


def maximum_cliques(adjacent: Sequence[int], size: int, limit: int) -> tuple[list[int], bool]:
    """Lists at most `limit` cliques of `size` vertices, the largest size: (bitmasks, whether these are all)."""
    largest = []

    def search(clique, need, candidates):
        """Returns False once the limit is passed."""
        if need == 0:
            if len(largest) == limit:
                return False
            largest.append(clique)
            return True
        classes = colour_classes(adjacent, candidates)
        for colour in range(len(classes), 0, -1):
            if colour < need:
                return True
            for v in bits(classes[colour - 1]):
                if not search(clique | 1 << v, need - 1, candidates & adjacent[v]):
                    return False
                candidates &= ~(1 << v)
        return True

    return largest, search(0, size, (1 << len(adjacent)) - 1)


def cheapest_clique(
    adjacent: Sequence[int], size: int, costs: Sequence[np.ndarray], start: Sequence[int], max_nodes: int
) -> tuple[int, bool]:
    """Finds the clique of smallest cost (`clique_keys`, unique) by branch and bound: (bitmask, whether it is proved
    the cheapest).

    A branch is cut when the lower bounds on all sums (`_bounds`) compare above the best clique so far. `adjacent` is
    the graph, `size` the vertices of a clique, which must be the largest size; `costs` are int64 arrays [n, n],
    symmetric with diagonal 0, entries within +-1e12; `start` holds bitmasks of known cliques of that size, not empty.
    After `max_nodes` branches the search gives up on a proof.
    """
    n = len(adjacent)
    joined = np.array([[mask >> j & 1 for j in range(n)] for mask in adjacent], bool).reshape(n, n)
    best = min(clique_keys(start, costs))
    costs = np.stack([np.where(joined, cost, _INFINITE) for cost in costs])
    nodes = 0

    def search(clique, spent, need, candidates, linked):
        """`spent` is the cost of the chosen pairs, a tuple; `linked` [k, n] the cost of v with the chosen vertices."""
        nonlocal best, nodes
        nodes += 1
        if need == 0:
            best = min(best, (*spent, tuple(bits(clique))))
            return
        if nodes > max_nodes:
            return
        classes = colour_classes(adjacent, candidates)
        if len(classes) < need:
            return
        classes.sort(key=int.bit_count)
        lists = [list(bits(c)) for c in classes]
        order = [v for group in lists for v in group]
        least, reach = _bounds(costs, linked, lists, order, need)
        total = tuple(s + b for s, b in zip(spent, least.tolist(), strict=True))
        # The second tuple: the vertices before which no completion comes.
        earliest = tuple(sorted([*bits(clique), *sorted(min(group) for group in lists)[:need]]))
        if (*total, earliest) >= best:
            return
        # A clique misses at most len(lists) - need classes, so it meets the smallest few:
        branching = sum(len(group) for group in lists[: len(lists) - need + 1])
        ranked = sorted((*row, v) for row, v in zip(reach.T.tolist(), order[:branching], strict=False))
        for *row, v in ranked:
            if tuple(s + r for s, r in zip(spent, row, strict=True)) <= best[:-1]:
                link = tuple(s + r for s, r in zip(spent, linked[:, v].tolist(), strict=True))
                below = candidates & adjacent[v]
                search(clique | 1 << v, link, need - 1, below, linked + costs[:, v])
            candidates &= ~(1 << v)

    search(0, (0,) * len(costs), size, (1 << n) - 1, np.zeros((len(costs), n), np.int64))
    return sum(1 << v for v in best[-1]), nodes <= max_nodes


def _bounds(costs, linked, lists, order, need):
    """Bounds the cost of `need` more vertices from below: (bound [k], bound if v is taken [k, len(order)]), rounded up.

    A vertex v costs its links to the chosen vertices and half of its links to the other new ones, at least the
    `need - 1` smallest of its cheapest links into each colour class.
    """
    starts = np.cumsum([0] + [len(group) for group in lists[:-1]])
    block = costs[:, order][:, :, order]
    doubled = 2 * linked[:, order]
    if need > 1:
        cheapest = np.minimum.reduceat(block, starts, axis=2)
        if need - 1 < len(lists):
            cheapest = np.partition(cheapest, need - 2, axis=2)[:, :, : need - 1]
        doubled = doubled + cheapest.sum(axis=2)
    doubled = np.minimum(doubled, _INFINITE)  # no completion: keep sums within int64
    by_class = np.minimum.reduceat(doubled, starts, axis=1)
    total = np.sort(by_class, axis=1)[:, :need].sum(axis=1)
    # With v taken, its class pays for v and need - 1 of the other classes pay their minimum.
    others = np.sort(by_class, axis=1)[:, : need - 1].sum(axis=1)
    return -(-total // 2), -(-(doubled + others[:, None]) // 2)


def clique_keys(masks: Sequence[int], costs: Sequence[np.ndarray]) -> list[tuple]:
    """Lists the key that each clique is compared by: (sum of each int64 cost [n, n] over its pairs, ..., vertices)."""
    members = [tuple(bits(clique)) for clique in masks]
    inside = np.zeros((len(masks), len(costs[0])), np.int64)
    np.put_along_axis(inside, np.array(members), 1, axis=1)
    sums = [((inside @ cost) * inside).sum(axis=1) // 2 for cost in costs]
    return list(zip(*(totals.tolist() for totals in sums), members, strict=True))
