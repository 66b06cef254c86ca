"""Categories of corruptions, and random benchmarks of them, which show how size and balance matter for a benchmark.

Categories are clusters of rows of the overlap matrix: K-means with K = 2, 3, ... on the rows of O (Euclidean, diagonal 1
included), until corruptions of one cluster have similar overlaps: the mean Pearson correlation between columns of O over all
ordered pairs in the same cluster exceeds .5. Pairs are pooled over clusters; a cluster of one has none. The original draws
K-means without a seed; here equal seeds give equal clusters.

An (n, k) benchmark has k corruptions of each of n categories. Substitution makes
benchmarks of the same n and size, but less balance: one corruption leaves a category, and one enters a category that
has as many corruptions or more. So the standard deviation of the counts grows at every step. Source: Laugros, Caplier,
Ospici, "Using Synthetic Corruptions to Measure Robustness to Natural Distribution Shifts" (BMVC 2021). No published
version of its code has the functions that draw and substitute; here every choice is uniform.
"""

import itertools
import math
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.selection.algorithm import checked, undefined
from runtime.files import write_json

Clusters = Sequence[Sequence[str]]  # names of the corruptions in each category
_LISTED = 20_000
_BATCH = 20_000


def count_balanced(clusters: Clusters, n: int, k: int) -> int:
    """Counts the different (n, k) benchmarks, exactly: over all n categories, the product of C(size, k)."""
    _check(clusters, n, k)
    sums = [1] + [0] * n  # elementary symmetric polynomials
    for cluster in clusters:
        ways = math.comb(len(cluster), k)
        for represented in range(n, 0, -1):
            sums[represented] += sums[represented - 1] * ways
    return sums[n]


def balanced(clusters: Clusters, n: int, k: int, number: int, *, seed: int = 0) -> tuple[tuple[str, ...], ...]:
    """Draws different (n, k) benchmarks: n categories uniformly among those with k members or more, then k members of
    each uniformly, until there are `number` different ones.

    The categories are a sequence of tuples of names, each name once; n, k and `number` are at least 1. Returns `number`
    tuples of n k names in alphabetical order, in the order in which they were drawn. Raises ValueError where fewer
    exist (before any is drawn), or numbers or names are out of range.
    """
    possible = count_balanced(clusters, n, k)
    if not 1 <= number <= possible:
        raise ValueError(
            f"expected a number of benchmarks between 1 and the {possible} that exist with {n} categories of {k} "
            f"among categories of {sorted(map(len, clusters), reverse=True)}, found {number}"
        )
    names = sorted(itertools.chain(*clusters))
    position = {name: i for i, name in enumerate(names)}
    eligible = [np.array([position[name] for name in cluster]) for cluster in clusters if len(cluster) >= k]
    rng = np.random.default_rng(seed)
    # A list is finite. Drawing until all are different would take forever as `number` nears `possible`.
    if possible <= max(_LISTED, 4 * number):
        rows = _draw_from_list(eligible, n, k, number, rng)
    else:
        distinct = {}
        while len(distinct) < number:
            distinct |= dict.fromkeys(map(tuple, _draw(eligible, n, k, min(2 * number, _BATCH), rng).tolist()))
        rows = itertools.islice(distinct, number)
    return tuple(tuple(names[i] for i in row) for row in rows)


def unbalanced(
    benchmarks: Sequence[Sequence[str]], clusters: Clusters, *, copies: int = 10, seed: int = 0
) -> tuple[tuple[str, ...], ...]:
    """Makes all different benchmarks met on the way from balanced to as unbalanced as possible.

    Starts from `copies` of every benchmark. Each sweep substitutes one corruption in each of them, where
    possible: the pair of categories (left, entered), the corruption that leaves and the one that
    enters are drawn uniformly among the allowed ones. The category that it leaves must keep one; the category that it
    enters must have as many as the one left, or more, and an unused one. Ends when a sweep changes nothing.

    The categories hold all names of the benchmarks. Every one of the `copies`, at least 1, takes its own way. Returns
    tuples of names in alphabetical order, without those started from, in the order of the sweeps.
    """
    names = sorted(itertools.chain(*clusters))
    category, start = _category(names, clusters), _membership(benchmarks, names)
    rng, seen = np.random.default_rng(seed), [start]
    member = np.tile(start, (copies, 1))
    while len(member):
        member = _substitute(member, category, rng)
        seen.append(member)
    packed = np.packbits(np.concatenate(seen), axis=1)
    _, first = np.unique(packed, axis=0, return_index=True)
    first = np.sort(first[first >= len(start)])
    rows = np.unpackbits(packed[first], axis=1, count=len(names))
    return tuple(tuple(names[i] for i in np.flatnonzero(row)) for row in rows)


def representation(benchmarks: Sequence[Sequence[str]], clusters: Clusters) -> np.ndarray:
    """Counts the corruptions from each category, int [benchmarks, categories]."""
    names = sorted(itertools.chain(*clusters))
    return _counts(_membership(benchmarks, names), _category(names, clusters))


def spread(counts: ArrayLike) -> np.ndarray:
    """Computes the population standard deviation of the non-zero counts of each row [benchmarks, categories]."""
    counts = np.asarray(counts)
    represented = counts > 0
    n = represented.sum(axis=-1)
    mean = counts.sum(axis=-1) / n
    return np.sqrt((np.where(represented, counts - mean[..., None], 0) ** 2).sum(axis=-1) / n)


def by_spread(
    benchmarks: Iterable[Sequence[str]], clusters: Clusters, *, more_than: int = 200
) -> dict[float, tuple[tuple[str, ...], ...]]:
    """Sorts benchmarks by the standard deviation of their counts, rounded to .1, ascending; keeps bins of more than so
    many.
    """
    benchmarks = tuple(benchmarks)
    rounded = np.round(spread(representation(benchmarks, clusters)), 1)
    bins = {float(value): np.flatnonzero(rounded == value) for value in np.unique(rounded)}
    return {value: tuple(benchmarks[i] for i in rows) for value, rows in bins.items() if len(rows) > more_than}


def write(out: pathlib.Path, clusters: Clusters, nk: str, less_balanced: bool, inputs: Mapping[str, str]) -> str:
    """Draws and writes random benchmarks of n categories with k members each; returns the file's path."""
    try:
        n, k, number = (int(part) for part in nk.split(","))
    except ValueError:
        raise ValueError(f"expected --nk=n,k,N with three integers, found {nk!r}") from None
    drawn = balanced(clusters, n, k, number)
    content = {
        "n": n,
        "k": k,
        "possible": count_balanced(clusters, n, k),
        "categories": clusters,
        "benchmarks": drawn,
        "inputs": inputs,
    }
    print(f"  ({n}, {k}) benchmarks: {number} of {content['possible']} that exist")
    if less_balanced:
        bins = by_spread(unbalanced(drawn, clusters), clusters)
        content["unbalanced"] = {f"{std:.1f}": benchmarks for std, benchmarks in bins.items()}
        print("  less balanced: " + (", ".join(f"{len(v)} of std {std:.1f}" for std, v in bins.items()) or "none"))
    path = out.with_name(f"benchmarks_{n}_{k}.json")
    write_json(path, content)
    print(f"  written to {path}")
    return str(path)


def _draw(eligible, n, k, number, rng):
    """Sorted positions int [number, n k] of benchmarks drawn independently."""
    members = np.stack([c[_subsets(len(c), k, number, rng)] for c in eligible], axis=1)
    represented = _subsets(len(eligible), n, number, rng)
    return np.sort(np.take_along_axis(members, represented[:, :, None], axis=1).reshape(number, n * k), axis=1)


def _subsets(size, k, number, rng):
    """Uniform subsets of k among `size`, int [number, k]."""
    return np.argpartition(rng.random((number, size)), k - 1, axis=1)[:, :k]


def _draw_from_list(eligible, n, k, number, rng):
    """The same law as `_draw` without repetition: keys log p + Gumbel noise, the largest first (Efraimidis and
    Spirakis, 2006).
    """
    rows, weights = [], []
    for represented in itertools.combinations(eligible, n):
        weight = -sum(math.log(math.comb(len(c), k)) for c in represented)
        for members in itertools.product(*(itertools.combinations(c.tolist(), k) for c in represented)):
            rows.append(sorted(itertools.chain(*members)))
            weights.append(weight)
    keys = np.array(weights) + rng.gumbel(size=len(rows))
    return [rows[i] for i in np.argsort(-keys)[:number]]


def _substitute(member, category, rng):
    """One substitution in each row of bool [M, names]; rows that allow none are left out."""
    counts, sizes = _counts(member, category), np.bincount(category)
    left, entered = counts[:, :, None], counts[:, None, :]
    allowed = (left >= 2) & (entered >= left) & (entered < sizes) & ~np.eye(len(sizes), dtype=bool)
    able = allowed.any(axis=(1, 2))
    member, allowed = member[able].copy(), allowed[able]
    pair = _choose(allowed.reshape(len(member), len(sizes) ** 2), rng)
    left, entered = (index[:, None] for index in np.divmod(pair, len(sizes)))
    leaves = _choose(member & (category == left), rng)
    enters = _choose(~member & (category == entered), rng)
    rows = np.arange(len(member))
    member[rows, leaves], member[rows, enters] = False, True
    return member


def _choose(allowed, rng):
    return np.where(allowed, rng.random(allowed.shape), -1).argmax(axis=1)


def _counts(member, category):
    return member.astype(int) @ (category[:, None] == np.arange(category.max() + 1))


def _category(names, clusters):
    _check(clusters)
    of = {name: c for c, cluster in enumerate(clusters) for name in cluster}
    return np.array([of[name] for name in names])


def _membership(benchmarks, names):
    position = {name: i for i, name in enumerate(names)}
    member = np.zeros((len(benchmarks), len(names)), bool)
    for row, benchmark in zip(member, benchmarks, strict=True):
        unknown = [name for name in benchmark if name not in position]
        if unknown or not benchmark or len(set(benchmark)) != len(benchmark):
            raise ValueError(f"expected members of the categories, each once, found {unknown or benchmark}")
        row[[position[name] for name in benchmark]] = True
    return member


def _check(clusters, n=1, k=1):
    names = [*itertools.chain(*clusters)]
    if not names or len(set(names)) != len(names) or not all(len(cluster) for cluster in clusters):
        raise ValueError(f"expected categories with members, each name in one of them, found {clusters}")
    if n < 1 or k < 1:
        raise ValueError(f"expected n and k of at least 1, found {n} and {k}")


_ITERATIONS = 1000
_SAME = 1e-9  # inertias closer than this are equal


@dataclass(frozen=True)
class Categories:
    """Clusters of corruptions."""

    clusters: tuple[tuple[str, ...], ...]  # tuples of names in the order of the input, by first member
    correlation: float  # mean Pearson correlation within clusters; NaN if every cluster has one member
    # (K, that correlation) for every K that was tried, the last one chosen.
    correlations: tuple[tuple[int, float], ...]
    dropped: tuple[str, ...]  # names without a defined overlap, left out


def categories(
    overlap: ArrayLike, names: Sequence[str], *, correlation: float = 0.5, restarts: int = 100, seed: int = 0
) -> Categories:
    """Clusters corruptions into as few categories as reach a correlation within them.

    Args:
      overlap, names: O, symmetric [n, n], diagonal 1, whose rows of NaN are left out, and n names, each once.
      correlation: bound that the mean within clusters must exceed, in [-1, 1). If no K reaches it, each corruption is
        a category of its own.
      restarts: starts of K-means for each K, the best taken, >= 1.
      seed: seed of the starts; the result for a K depends on nothing else.

    Raises ValueError for a matrix that is not square and symmetric, repeated names, NaN between two valid corruptions,
    fewer than two of them, a row without variation (its correlation is undefined), or parameters out of range.
    """
    names = tuple(names)
    matrix = checked("overlap", overlap, names)
    if not -1 <= correlation < 1 or restarts < 1:
        raise ValueError(
            f"expected a correlation in [-1, 1) and at least 1 restart, found {correlation} and {restarts}"
        )
    drop = undefined(matrix)
    kept = np.flatnonzero(~drop)
    rows = matrix[np.ix_(kept, kept)]
    if len(kept) < 2 or np.isnan(rows).any():
        raise ValueError(
            f"expected two or more corruptions with an overlap for every pair, found {len(kept)} valid ones and "
            f"{int(np.isnan(rows).sum())} entries of NaN between them"
        )
    flat = np.ptp(rows, axis=0) == 0
    if flat.any():
        raise ValueError(f"expected overlaps that differ, found only equal ones for {names[kept[np.argmax(flat)]]}")
    tried = []
    for k in range(2, len(kept) + 1):
        labels = k_means(rows, k, restarts=restarts, seed=seed)
        tried.append((k, within_cluster_correlation(rows, labels)))
        if tried[-1][1] > correlation:
            break
    clusters = tuple(
        tuple(names[i] for i in kept[labels == label])
        for label in range(k)  # labels count clusters by first member
    )
    return Categories(clusters, tried[-1][1], tuple(tried), tuple(names[i] for i in np.flatnonzero(drop)))


def text(found: Categories) -> str:
    """Lists clusters, one on a line, and the correlation within clusters at each number of clusters K."""
    tried = ", ".join(f"K = {k}: {value:.3f}" for k, value in found.correlations)
    return "\n".join(
        [
            f"{len(found.clusters)} categories, mean correlation within them {found.correlation:.3f} ({tried})",
            *(f"  {i}: {', '.join(cluster)}" for i, cluster in enumerate(found.clusters, 1)),
            f"dropped (no defined overlap): {', '.join(found.dropped) or 'none'}",
        ]
    )


def within_cluster_correlation(overlap: ArrayLike, labels: ArrayLike) -> float:
    """Averages the Pearson correlation between columns of O [n, n] over all pairs with equal labels [n]; NaN for none."""
    labels = np.asarray(labels)
    same = (labels[:, None] == labels) & ~np.eye(len(labels), dtype=bool)
    return float(np.corrcoef(overlap, rowvar=False)[same].mean()) if same.any() else float("nan")


def k_means(points: ArrayLike, k: int, *, restarts: int = 100, seed: int = 0) -> np.ndarray:
    """Clusters points [n, d] by K-means with the smallest sum of squared distances; returns labels int [n].

    Lloyd's algorithm from `restarts` starts of k-means++ (Arthur and Vassilvitskii, 2007), all at once. Labels count
    clusters by first member, none is empty; of clusterings that tie, the first in the order of labels is taken. Raises
    ValueError for k outside 1..n.
    """
    points = np.asarray(points, float)
    n = len(points)
    if not 1 <= k <= n:
        raise ValueError(f"expected between 1 and {n} clusters of {n} points, found {k}")
    centres = _starts(points, k, restarts, np.random.default_rng((seed, k)))
    labels = np.full((restarts, n), -1)
    for _ in range(_ITERATIONS):
        distances = _squared_distances(points, centres)
        new = _fill_empty(distances.argmin(axis=2), distances, k)
        if (new == labels).all():
            break
        labels = new
        member = (labels[:, None, :] == np.arange(k)[:, None]).astype(float)  # [restarts, k, n]
        centres = member @ points / member.sum(axis=2, keepdims=True)
    inertia = ((points - np.take_along_axis(centres, labels[:, :, None], axis=1)) ** 2).sum(axis=(1, 2))
    best = np.flatnonzero(inertia <= inertia.min() + _SAME * (1 + inertia.min()))
    return np.array(min(_by_first_member(labels[r]) for r in best))


def _starts(points, k, restarts, rng):
    """Centres [restarts, k, d] of k-means++: each next one drawn in proportion to its squared distance."""
    apart = _squared_distances(points, points[None])[0]  # [n, n]
    drawn = [rng.integers(len(points), size=restarts)]
    nearest = apart[drawn[0]]
    for _ in range(k - 1):
        cumulative = nearest.cumsum(axis=1)
        draw = rng.random(restarts)[:, None] * cumulative[:, -1:]
        drawn.append(np.minimum((cumulative <= draw).sum(axis=1), len(points) - 1))
        nearest = np.minimum(nearest, apart[drawn[-1]])
    return points[np.stack(drawn, axis=1)]


def _squared_distances(points, centres):
    """[restarts, n, k] from points [n, d] to centres [restarts, k, d]."""
    cross = points @ np.swapaxes(centres, 1, 2)
    squares = (points**2).sum(axis=1)[:, None] + (centres**2).sum(axis=2)[:, None, :]
    return np.maximum(squares - 2 * cross, 0)


def _fill_empty(labels, distances, k):
    """Moves the point furthest from its centre into each empty cluster."""
    sizes = (labels[:, :, None] == np.arange(k)).sum(axis=1)
    for r, label in np.argwhere(sizes == 0):
        to_centre = distances[r, np.arange(labels.shape[1]), labels[r]]
        furthest = int(np.argmax(np.where(sizes[r, labels[r]] > 1, to_centre, -1)))
        sizes[r, labels[r, furthest]] -= 1
        sizes[r, label] += 1
        labels[r, furthest] = label
    return labels


def _by_first_member(labels):
    order = {label: i for i, label in enumerate(dict.fromkeys(labels.tolist()))}
    return [order[label] for label in labels.tolist()]
