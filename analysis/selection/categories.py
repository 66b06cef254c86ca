"""Categories of corruptions: clusters of rows of the overlap matrix.

K-means with K = 2, 3, ... on the rows of O (Euclidean, diagonal 1 included), until corruptions of one cluster have
similar overlaps: the mean Pearson correlation between columns of O over all ordered pairs in the same cluster exceeds
.5. Pairs are pooled over clusters; a cluster of one has none. Source: Laugros, Caplier, Ospici, "Using Synthetic
Corruptions to Measure Robustness to Natural Distribution Shifts" (BMVC 2021) and its code, which draws K-means without
a seed; here equal seeds give equal clusters.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.selection.algorithm import undefined

_ITERATIONS = 1000
_SAME = 1e-9  # inertias closer than this are equal


@dataclass(frozen=True)
class Categories:
    """Clusters of corruptions.

    Attributes:
      clusters: tuples of names in the order of the input, by first member.
      correlation: mean Pearson correlation within clusters; NaN if every cluster has one member.
      correlations: (K, that correlation) for every K that was tried, the last one chosen.
      dropped: names without a defined overlap, left out.
    """

    clusters: tuple[tuple[str, ...], ...]
    correlation: float
    correlations: tuple[tuple[int, float], ...]
    dropped: tuple[str, ...]


def categories(
    overlap: ArrayLike, names: Sequence[str], *, correlation: float = 0.5, restarts: int = 100, seed: int = 0
) -> Categories:
    """Clusters corruptions into as few categories as reach a correlation within them.

    Args:
      overlap, names: O, symmetric [n, n], diagonal 1, whose rows of NaN are left out, and n names, each once.
      correlation: bound that the mean within clusters must exceed, in [-1, 1). If no K reaches it, each corruption is
        a category of its own.
      restarts: starts of K-means for each K, the best taken, >= 1.
      seed: of the starts; the result for a K depends on nothing else.

    Raises:
      ValueError: a matrix that is not square and symmetric, repeated names, NaN between two valid corruptions, fewer
        than two of them, a row without variation (its correlation is undefined), or parameters out of range.
    """
    names, matrix = tuple(names), np.asarray(overlap, float)
    if len(set(names)) != len(names) or matrix.shape != (len(names), len(names)):
        raise ValueError(f"expected a square overlap of {len(names)} distinct names, found shape {matrix.shape}")
    if not np.allclose(matrix, matrix.T, rtol=0, atol=1e-9, equal_nan=True):
        raise ValueError("expected a symmetric overlap, found differences across the diagonal")
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
    clusters by first member, none is empty; of clusterings that tie, the first in the order of labels is taken.

    Raises:
      ValueError: k outside 1..n.
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
    centre_index = rng.integers(len(points), size=restarts)
    centres = points[centre_index][:, None]
    for _ in range(k - 1):
        nearest = _squared_distances(points, centres).min(axis=2)
        cumulative = nearest.cumsum(axis=1)
        draw = rng.random(restarts)[:, None] * cumulative[:, -1:]
        centre_index = np.minimum((cumulative <= draw).sum(axis=1), len(points) - 1)
        centres = np.concatenate([centres, points[centre_index][:, None]], axis=1)
    return centres


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
