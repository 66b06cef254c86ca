"""Largest cliques of a graph, and the cheapest of them, by branch and bound.

A graph of n vertices is a bool array [n, n], symmetric with a diagonal of False, or a list of n Python integers: bit j of
`adjacent[i]` says that i and j are joined; a set of vertices is such an integer, too. A clique takes at most one vertex of a colour class, a set without joined vertices. So
the number of classes bounds the size that a branch can reach. Vertices that a better colouring moves into the classes
that a larger clique needs anyway are not branched on (Tomita et al., "A Simple and Faster Branch-and-Bound Algorithm for
Finding a Maximum Clique", 2010).

The problem is hard: random graphs double the work with each few vertices. `Work` bounds it, and a search that has none
left returns the best that it has, and says so.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

INFINITE = 1 << 54  # above the cost of all pairs of 190 vertices, each at most 1e12; 190 of them fit into int64


_DIGITS = bytes.maketrans(b"01", b"\0\1")


class Work:
    """The branches that a search may still take: `left`, negative once it had to give up."""

    _STEP = 1000

    def __init__(self, branches: int, progress: Callable[[int], object] = lambda number: None) -> None:
        self.left, self._progress = branches, progress

    def take(self) -> bool:
        """Takes a branch; False where none is left."""
        self.left -= 1
        if self.left % self._STEP == 0:
            self._progress(self._STEP)
        return self.left >= 0


class Largest(NamedTuple):
    """The cliques of largest size that were found."""

    cliques: list[int]
    complete: bool  # whether these are all
    exact: bool  # whether no larger one exists


def bits(mask: int) -> Iterator[int]:
    """Iterates over the positions of the set bits, lowest first."""
    return itertools.compress(itertools.count(), f"{mask:b}"[::-1].encode().translate(_DIGITS))


def adjacency(graph: np.ndarray) -> list[int]:
    """Makes a graph bool [n, n] a list of integers."""
    return [int.from_bytes(row.tobytes(), "little") for row in np.packbits(graph, axis=1, bitorder="little")]


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


def largest_cliques(graph: np.ndarray, limit: int, work: Work) -> Largest:
    """Lists at most `limit` cliques of the largest size, at least 1, of a graph bool [n, n]."""
    order = _order(graph)
    joined = adjacency(graph[np.ix_(order, order)])
    found, most, complete = [0], 0, True

    def search(clique, size, candidates):
        nonlocal found, most, complete
        if candidates and not work.take():
            while candidates:  # any clique, in the place of the largest ones
                low = candidates & -candidates
                clique, size, candidates = clique | low, size + 1, candidates & joined[low.bit_length() - 1]
        if not candidates:
            if size > most:
                found, most, complete = [clique], size, True
            elif size == most and len(found) < limit:
                found.append(clique)
            elif size == most:
                complete = False
            return
        classes = _coloured(joined, candidates, most - size - complete)
        for colour in range(len(classes), 0, -1):
            for v in bits(classes[colour - 1]):
                if size + colour < most + (not complete):  # only a larger clique counts where the list is full
                    return
                search(clique | 1 << v, size + 1, candidates & joined[v])
                candidates &= ~(1 << v)

    search(0, 0, (1 << len(order)) - 1)
    exact = work.left >= 0
    return Largest([sum(1 << order[k] for k in bits(clique)) for clique in found], complete and exact, exact)


def _order(graph):
    """Vertices by degeneracy: the last has the fewest neighbours, the one before it the fewest but for the last, ..."""
    degrees, order = graph.sum(axis=1), []
    for _ in range(len(graph)):
        order.append(int(degrees.argmin()))
        degrees -= graph[order[-1]]
        degrees[order[-1]] = 2 * len(graph)  # never again, whatever is taken off
    return order[::-1]


def _coloured(joined, candidates, enough):
    """Colour classes as `colour_classes` gives them, with as many vertices as possible in the first `enough`, of which a
    clique that is not too small has vertices besides.
    """
    classes = []
    for colour in colour_classes(joined, candidates):
        if len(classes) >= enough > 0:
            colour &= ~sum(1 << v for v in bits(colour) if _recoloured(joined, classes, v, enough))
        if colour:
            classes.append(colour)
    return classes


def _recoloured(joined, classes, v, enough):
    """Moves v into one of the first classes, or into the place of its only neighbour there, which moves to another one."""
    for i in range(enough):
        there = joined[v] & classes[i]
        if not there:
            classes[i] |= 1 << v
            return True
        if there & (there - 1) == 0:
            of_neighbour = joined[there.bit_length() - 1]
            for j in range(i + 1, enough):
                if not of_neighbour & classes[j]:
                    classes[i] ^= there | 1 << v
                    classes[j] |= there
                    return True
    return False


def cheapest_clique(
    graph: np.ndarray, size: int, costs: Sequence[np.ndarray], start: Sequence[int], work: Work
) -> tuple[int, bool]:
    """Finds the clique of smallest cost (`clique_keys`, unique) by branch and bound: (bitmask, whether it is proved
    the cheapest).

    A branch is cut when the lower bounds on all sums (`_bounds`) compare above the best clique so far. `graph` is
    bool [n, n], `size` the vertices of a clique, which must be the largest size; `costs` are int64 arrays [n, n],
    symmetric with diagonal 0, entries within +-1e12; `start` holds bitmasks of known cliques of that size, not empty.
    Without a proof, no exchange of one vertex makes the returned clique cheaper.
    """
    n, adjacent = len(graph), adjacency(graph)
    best = _exchanged(adjacent, costs, min(zip(clique_keys(start, costs), start, strict=True))[1])
    costs = np.stack([np.where(graph, cost, INFINITE) for cost in costs])

    def search(clique, spent, need, candidates, linked):
        """`spent` is the cost of the chosen pairs, a tuple; `linked` [k, n] the cost of v with the chosen vertices."""
        nonlocal best
        if need == 0:
            best = min(best, (*spent, tuple(bits(clique))))
            return
        if not work.take():
            return
        classes = colour_classes(adjacent, candidates)
        while len(classes) == need and (forced := [colour for colour in classes if colour & (colour - 1) == 0]):
            for colour in forced:  # a clique takes one vertex of each class
                if not candidates & colour:
                    return
                v = colour.bit_length() - 1
                spent = tuple(s + more for s, more in zip(spent, linked[:, v].tolist(), strict=True))
                clique, need, candidates = clique | colour, need - 1, candidates & adjacent[v]
                linked = linked + costs[:, v]
            classes = [rest for colour in classes if (rest := colour & candidates)]
        if need == 0:
            best = min(best, (*spent, tuple(bits(clique))))
        if len(classes) < need or need == 0:
            return
        lists = [[*bits(colour)] for colour in classes]
        lists.sort(key=len)
        order = [v for group in lists for v in group]
        least, reach = _bounds(costs, linked, lists, order, need)
        total = tuple(s + b for s, b in zip(spent, least.tolist(), strict=True))
        if total > best[:-1]:
            return
        # The vertices before which no completion comes.
        earliest = sorted([*bits(clique), *sorted(group[0] for group in lists)[:need]])
        if (*total, tuple(earliest)) >= best:
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
    return sum(1 << v for v in best[-1]), work.left >= 0


def _exchanged(adjacent, costs, clique):
    """Exchanges a vertex of a clique for another one as long as that makes it cheaper; the key of the last clique.

    Where w goes and v comes, the links of w go and those of v, but to w, come.
    """
    costs, [key] = np.stack(costs), clique_keys([clique], costs)
    while True:
        missing = {v: clique & ~of_v for v, of_v in enumerate(adjacent) if not clique >> v & 1}
        pairs = [(v, of_v.bit_length() - 1) for v, of_v in missing.items() if of_v.bit_count() == 1]
        if not pairs:
            return key
        linked, (come, go) = costs[:, :, key[-1]].sum(axis=2), np.transpose(pairs)
        change = linked[:, come] - linked[:, go] - costs[:, come, go]
        spent = [*zip(*(change + np.array(key[:-1])[:, None]).tolist(), strict=True)]
        least = min(spent)
        cheapest = [clique ^ 1 << v ^ 1 << w for (v, w), cost in zip(pairs, spent, strict=True) if cost == least]
        following = min(cheapest, key=lambda one: tuple(bits(one)))
        if (*least, tuple(bits(following))) > key:
            return key
        key, clique = (*least, tuple(bits(following))), following


def _bounds(costs, linked, lists, order, need):
    """Bounds the cost of `need` more vertices from below: (bound [k], bound if v is taken [k, len(order)]), rounded up.

    A vertex v costs its links to the chosen vertices and half of its links to the other new ones, at least the
    `need - 1` smallest of its cheapest links into each colour class.
    """
    starts, order = np.cumsum([0] + [len(group) for group in lists[:-1]]), np.array(order)
    block = costs[:, order[:, None], order]
    doubled = 2 * linked[:, order]
    if need > 1:
        cheapest = np.minimum.reduceat(block, starts, axis=2)
        if need - 1 < len(lists):
            cheapest = np.partition(cheapest, need - 2, axis=2)[:, :, : need - 1]
        doubled = doubled + cheapest.sum(axis=2)
    doubled = np.minimum(doubled, INFINITE)  # no completion: keep sums within int64
    by_class = np.minimum.reduceat(doubled, starts, axis=1)
    by_class.sort(axis=1)
    # With v taken, its class pays for v and need - 1 of the other classes pay their minimum.
    others = by_class[:, : need - 1].sum(axis=1)
    total = others + by_class[:, need - 1]
    return -(-total // 2), -(-(doubled + others[:, None]) // 2)


def clique_keys(masks: Sequence[int], costs: Sequence[np.ndarray]) -> list[tuple]:
    """Lists the key that each clique is compared by: (sum of each int64 cost [n, n] over its pairs, ..., vertices)."""
    members = [tuple(bits(clique)) for clique in masks]
    return list(zip(*(sums(members, cost).tolist() for cost in costs), members, strict=True))


def sums(members: Sequence[Sequence[int]], costs: np.ndarray) -> np.ndarray:
    """Sums costs [..., n, n] over the pairs of each of S sets of as many vertices: [..., S]."""
    place = np.array(members)
    total = np.zeros((*costs.shape[:-2], len(place)), costs.dtype)
    for k in range(1, place.shape[1]):
        total += costs[..., place[:, :k], place[:, k, None]].sum(axis=-1)
    return total
