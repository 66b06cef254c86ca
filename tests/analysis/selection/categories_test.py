"""Categories against exhaustive search, SciPy's K-means, block matrices and the published overlaps."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.cluster import vq

from analysis.selection.nk_benchmarks import categories, k_means, within_cluster_correlation
from tests.analysis.matrices import imagenet_c
from tests.analysis.published import FIGURE3, IMAGENET_C


def inertia(points, labels):
    labels = np.asarray(labels)
    return sum(((points[labels == c] - points[labels == c].mean(axis=0)) ** 2).sum() for c in set(labels.tolist()))


def best_by_trying_all(points, k):
    every = (p for p in itertools.product(range(k), repeat=len(points) - 1) if len({0, *p}) == k)
    return min(((0, *p) for p in every), key=lambda labels: inertia(points, labels))


def correlation_by_definition(matrix, clusters, names):
    """Mean over ordered pairs in the same cluster, with SciPy's Pearson correlation."""
    pairs = [
        stats.pearsonr(matrix[:, names.index(a)], matrix[:, names.index(b)]).statistic
        for cluster in clusters
        for a, b in itertools.permutations(cluster, 2)
    ]
    return np.mean(pairs) if pairs else np.nan


def blocks(sizes, inside, outside, noise=0.0, seed=0):
    """Overlap matrix with categories of the given sizes."""
    of = np.repeat(np.arange(len(sizes)), sizes)
    matrix = np.where(of[:, None] == of, inside, outside)
    wobble = np.triu(np.random.default_rng(seed).uniform(-noise, noise, matrix.shape), 1)
    matrix = matrix + wobble + wobble.T
    np.fill_diagonal(matrix, 1)
    return matrix, of


@pytest.mark.parametrize("k", [2, 3, 4])
def test_k_means_finds_the_best_of_all_partitions(k):
    points = np.random.default_rng(k).uniform(size=(8, 3))
    found = k_means(points, k, restarts=100)
    best = best_by_trying_all(points, k)
    assert inertia(points, found) == pytest.approx(inertia(points, best), rel=1e-12)
    assert found[0] == 0 and set(found) == set(range(k))


@pytest.mark.parametrize("k", [2, 3, 4, 6, 9])
def test_k_means_on_the_published_rows_is_as_good_as_scipys(k):
    theirs = min(
        inertia(FIGURE3, vq.kmeans2(FIGURE3, k, iter=30, minit="++", seed=np.random.default_rng(r), missing="warn")[1])
        for r in range(60)
    )
    assert inertia(FIGURE3, k_means(FIGURE3, k)) <= theirs + 1e-9


def test_k_means_with_repeated_points_leaves_no_cluster_empty():
    points = np.array([[0.0], [0], [0], [1], [1]])
    np.testing.assert_array_equal(k_means(points, 2), [0, 0, 0, 1, 1])
    assert set(k_means(points, 4)) == {0, 1, 2, 3}
    assert list(k_means(points, 5)) == [0, 1, 2, 3, 4] and list(k_means(points, 1)) == [0] * 5


def test_published_overlaps_fall_into_noises_blurs_and_weather():
    found = categories(FIGURE3, IMAGENET_C)
    of = {name: i for i, cluster in enumerate(found.clusters) for name in cluster}
    assert sorted(of) == sorted(IMAGENET_C) and found.dropped == ()
    assert len({of[name] for name in IMAGENET_C[:3]}) == 1
    assert len({of[name] for name in IMAGENET_C[3:7]}) == 1
    assert of["gaussian_noise"] != of["defocus_blur"] != of["fog"] == of["contrast"]
    assert categories(imagenet_c().overlap, IMAGENET_C).clusters == found.clusters  # far from a tie by rounding
    for seed in range(1, 4):
        assert categories(FIGURE3, IMAGENET_C, seed=seed) == found


def test_the_criterion_is_the_one_of_the_definition():
    found = categories(FIGURE3, IMAGENET_C)
    assert [k for k, _ in found.correlations] == list(range(2, len(found.clusters) + 1))
    assert found.correlation == found.correlations[-1][1] > 0.5
    assert all(value <= 0.5 for _, value in found.correlations[:-1])
    assert found.correlation == pytest.approx(correlation_by_definition(FIGURE3, found.clusters, IMAGENET_C))
    for k, value in found.correlations:
        labels = k_means(FIGURE3, k)
        clusters = [[n for n, label in zip(IMAGENET_C, labels, strict=True) if label == c] for c in range(k)]
        assert value == pytest.approx(correlation_by_definition(FIGURE3, clusters, IMAGENET_C))
    more = categories(FIGURE3, IMAGENET_C, correlation=0.7)
    assert len(more.clusters) > len(found.clusters) and more.correlation > 0.7


def test_blocks_are_found():
    matrix, of = blocks((6, 5, 5, 4), 0.8, 0.05, noise=0.05)
    order = np.random.default_rng(1).permutation(20)
    names = tuple(f"c{i:02d}" for i in order)
    found = categories(matrix[np.ix_(order, order)], names, correlation=0.8)
    expected = {frozenset(f"c{i:02d}" for i in np.flatnonzero(of == c)) for c in range(4)}
    assert set(map(frozenset, found.clusters)) == expected
    for cluster in found.clusters:
        assert list(cluster) == sorted(cluster, key=names.index)
    assert [c[0] for c in found.clusters] == sorted((c[0] for c in found.clusters), key=names.index)


def test_corruptions_without_any_overlap_are_categories_of_their_own():
    found = categories(np.eye(5), "abcde")
    assert found.clusters == tuple((n,) for n in "abcde") and np.isnan(found.correlation)
    assert [k for k, _ in found.correlations] == [2, 3, 4, 5]
    # Columns of the identity: every pair correlates by -1 / (n - 1).
    assert found.correlations[0][1] == pytest.approx(-0.25)


def test_undefined_rows_are_dropped_and_reported():
    matrix, _ = blocks((3, 3), 0.8, 0.1, noise=0.05)
    wide = np.full((7, 7), np.nan)
    kept = [0, 1, 3, 4, 5, 6]
    wide[np.ix_(kept, kept)] = matrix
    found = categories(wide, "abxcdef")
    assert found.dropped == ("x",) and set(found.clusters) == {("a", "b", "c"), ("d", "e", "f")}
    assert found.clusters == categories(matrix, "abcdef").clusters


def test_pairs_of_equal_labels_only():
    matrix = np.random.default_rng(3).uniform(size=(4, 4))
    assert np.isnan(within_cluster_correlation(matrix, [0, 1, 2, 3]))
    one = stats.pearsonr(matrix[:, 1], matrix[:, 3]).statistic
    assert within_cluster_correlation(matrix, [0, 1, 2, 1]) == pytest.approx(one)
