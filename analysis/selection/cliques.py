"""Maximum cliques on bitmasks: exact size, all of them, and the cheapest one.

A graph of n vertices is a list of n Python integers; bit j of `adjacent[i]` says that i and j may
be together. All searches branch in the order of a greedy colouring (Tomita and Seki 2003): a clique
takes at most one vertex of a colour class, so |clique| + colours bounds what a branch can reach.
"""

import numpy as np

COST_LIMIT = 1 << 40
_INFINITE = 1 << 54  # above every sum of pairs of 60 vertices; 60 of it still fit into int64


def bits(mask):
    """Positions of the set bits, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def colour_classes(adjacent, candidates):
    """Greedy colouring: candidates split into independent sets (bitmasks)."""
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


def maximum_size(adjacent):
    """Number of vertices of the largest clique; 0 for a graph without vertices."""
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


def maximum_cliques(adjacent, size, limit):
    """All cliques of `size` vertices, which must be the largest size, as bitmasks.

    Returns:
      (cliques, complete): at most `limit` cliques; complete is False when there are more.
    """
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


def cheapest_clique(adjacent, size, costs, start, max_nodes):
    """The clique of `size` vertices with the smallest cost, by branch and bound.

    The cost of a clique is a tuple compared in order: the sum of `costs[0]` over its pairs, that of
    `costs[1]`, ..., and last its vertices in increasing order, so the cheapest is unique. A branch
    is cut when lower bounds on all sums (`_bounds`) compare above the best clique so far.

    Args:
      adjacent: the graph.
      size: vertices of a clique, which must be the largest size.
      costs: int64 arrays [n, n], symmetric with diagonal 0, entries within +-`COST_LIMIT`.
      start: bitmasks of known cliques of that size, not empty.
      max_nodes: branches to look at before giving up on a proof.

    Returns:
      (bitmask of the cheapest clique, exact): exact is False when the search gave up, and the
      clique is then the cheapest one seen.
    """
    n = len(adjacent)
    joined = np.array([[mask >> j & 1 for j in range(n)] for mask in adjacent], bool).reshape(n, n)
    best = min(clique_keys(start, costs))
    costs = np.stack([np.where(joined, cost, _INFINITE) for cost in costs])
    nodes = 0

    def search(clique, spent, need, candidates, linked):
        """`spent`: cost of the chosen pairs, a tuple; `linked` [k, n]: cost of v with the
        chosen.
        """
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
        if total > best[:-1]:
            return
        if total == best[:-1] and _earliest(clique, lists, need) >= best[-1]:
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
    """Lower bounds on what `need` more vertices cost, at most one from each colour class.

    A vertex v costs its links to the chosen ones and half of its links to the other new ones, which
    are at least the `need - 1` smallest of its cheapest links into each class.

    Returns:
      (bound [k], bound if v is taken [k, len(order)]), rounded up to integers.
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


def _earliest(clique, lists, need):
    """No completion has vertices, in increasing order, before this tuple."""
    return tuple(sorted([*bits(clique), *sorted(min(group) for group in lists)[:need]]))


def clique_keys(masks, costs):
    """For each clique (sum of each cost over its pairs, ..., its vertices): what cliques are
    compared by.

    `costs`: int64 arrays [n, n] with diagonal 0; sums are exact.
    """
    members = [tuple(bits(clique)) for clique in masks]
    inside = np.zeros((len(masks), len(costs[0])), np.int64)
    for row, vertices in zip(inside, members, strict=True):
        row[list(vertices)] = 1
    sums = [((inside @ cost) * inside).sum(axis=1) // 2 for cost in costs]
    return list(zip(*(totals.tolist() for totals in sums), members, strict=True))
