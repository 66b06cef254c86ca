"""Prediction of overlap from distances, on matrices of which the answer is known."""

import itertools

import numpy as np
import pytest
import scipy.stats

from analysis.comparison import prediction
from analysis.selection import select

NAMES = tuple(f"c{k}" for k in range(8))


def positions(seed=0, number=8):
    """Corruptions as points of a plane, their distances, and an overlap that falls with distance
    and reaches 0.
    """
    points = np.random.default_rng(seed).uniform(size=(number, 2))
    distance = np.linalg.norm(points[:, None] - points, axis=-1)
    return distance, np.maximum(0, 1 - 2 * distance)


def test_agreement_is_the_rank_correlation_over_pairs():
    distance, overlap = positions()
    upper = np.triu_indices(8, 1)
    noisy = overlap + 0.3 * distance[::-1, ::-1]
    found = prediction.rank_agreement((noisy + noisy.T) / 2, distance, NAMES, resamples=100)
    expected = scipy.stats.spearmanr(-distance[upper], ((noisy + noisy.T) / 2)[upper]).statistic
    assert found.spearman == pytest.approx(expected) and found.pairs == 28
    exact = prediction.rank_agreement(1 - distance, distance, NAMES, resamples=100)
    assert exact.spearman == pytest.approx(1) and exact.spearman_interval == pytest.approx((1, 1))


def test_isotonic_is_the_best_decreasing_function():
    """Against all block averages: the least squares fit pools neighbours into blocks of equal
    value.
    """
    rng = np.random.default_rng(0)
    x, y = rng.permutation(7).astype(float), rng.normal(size=7)
    x[1], y[1] = x[0], 3.0  # two pairs at one distance count together
    positions, fitted = prediction.isotonic(x, y)
    assert (np.diff(positions) > 0).all() and (np.diff(fitted) <= 0).all()
    found = np.interp(x, positions, fitted)

    def loss_of(cuts):
        blocks = np.searchsorted(cuts, np.searchsorted(positions, x), side="right")
        means = [y[blocks == b].mean() for b in range(len(cuts) + 1)]
        fit = np.array(means)[blocks]
        return ((fit - y) ** 2).sum() if (np.diff(means) <= 0).all() else np.inf

    splits = range(1, len(positions))
    best = min(loss_of(cuts) for n in range(len(positions)) for cuts in itertools.combinations(splits, n))
    assert ((found - y) ** 2).sum() == pytest.approx(best)


def test_predictions_follow_a_known_law_and_ignore_the_pair_itself():
    distance, overlap = positions(1, 14)
    predicted = prediction.predicted_overlap(overlap, distance)
    upper = np.triu_indices(14, 1)
    assert np.abs(predicted - overlap)[upper].max() < 0.25 and np.abs(predicted - overlap)[upper].mean() < 0.02
    assert (np.diag(predicted) == 1).all() and np.array_equal(predicted, predicted.T)
    changed = overlap.copy()
    changed[3, :], changed[:, 3] = -5, -5  # all that is known of c3
    again = prediction.predicted_overlap(changed, distance)
    np.testing.assert_array_equal(again[3], predicted[3])
    assert (again != predicted).any()


def test_predictions_from_meaningless_distances_are_no_better_than_the_mean():
    rng = np.random.default_rng(0)
    errors, spreads = [], []
    for seed in range(5):
        _, overlap = positions(seed)
        shuffled = rng.permutation(28)
        distance = np.zeros((8, 8))
        distance[np.triu_indices(8, 1)] = shuffled
        predicted = prediction.predicted_overlap(overlap, distance + distance.T)
        upper = np.triu_indices(8, 1)
        errors.append(((predicted - overlap)[upper] ** 2).mean())
        spreads.append(overlap[upper].var())
    assert np.mean(errors) > 0.95 * np.mean(spreads)


def test_undefined_corruptions_are_left_out():
    distance, overlap = positions()
    overlap[2] = overlap[:, 2] = np.nan
    predicted = prediction.predicted_overlap(overlap, distance)
    assert np.isnan(predicted[2]).all() and np.isnan(predicted).sum() == 15
    kept = [0, 1, 3, 4, 5, 6, 7]
    alone = prediction.predicted_overlap(overlap[np.ix_(kept, kept)], distance[np.ix_(kept, kept)])
    np.testing.assert_array_equal(predicted[np.ix_(kept, kept)], alone)
    found = prediction.compare_selections(overlap, predicted, NAMES, 0.2)
    assert "c2" not in found.benchmarks.first
    without = prediction.compare_selections(
        overlap[np.ix_(kept, kept)], alone, tuple(n for n in NAMES if n != "c2"), 0.2
    )
    assert found == without


def test_selections_are_judged_by_the_measured_matrix():
    _, overlap = positions(3)
    distance, _ = positions(4)
    predicted = np.maximum(0, 1 - 1.5 * distance)  # of other corruptions: a poor prediction
    found = prediction.compare_selections(overlap, predicted, NAMES, 0.3)
    assert found.benchmarks.first == select(predicted, NAMES, 0.3).members
    assert found.benchmarks.second == select(overlap, NAMES, 0.3).members

    def mean(matrix, members):
        index = [NAMES.index(name) for name in members]
        return np.mean([matrix[i, j] for i, j in itertools.combinations(index, 2)])

    members = found.benchmarks.first
    pairs = [overlap[NAMES.index(a), NAMES.index(b)] for a, b in itertools.combinations(members, 2)]
    assert found.predicted_overlap == pytest.approx(mean(predicted, members))
    assert found.mean_overlap == pytest.approx(mean(overlap, members))
    assert found.best_overlap == pytest.approx(mean(overlap, found.benchmarks.second))
    assert found.largest_overlap == pytest.approx(max(pairs))
    assert found.violations == sum(value > 0.3 for value in pairs)
    others = [mean(overlap, one) for one in itertools.combinations(NAMES, len(members))]
    assert found.random_sets == len(others)
    assert found.random_mean == pytest.approx(np.mean(others)) and found.random_std == pytest.approx(np.std(others))
    assert found.random_better == pytest.approx(np.mean([value <= found.mean_overlap + 1e-12 for value in others]))


def test_a_perfect_prediction_selects_the_same_and_beats_chance():
    _, overlap = positions(5, 12)
    names = tuple(f"c{k}" for k in range(12))
    found = prediction.compare_selections(overlap, overlap, names, 0.2)
    assert found.benchmarks.jaccard == 1 and found.violations == 0
    assert found.mean_overlap == found.best_overlap < found.random_mean


def test_many_sets_are_sampled():
    """Of 24 corruptions there are 42,504 sets of five; the mean over sets is the mean over
    pairs.
    """
    _, overlap = positions(6, 24)
    sets = prediction._sets(24, 5, 0)
    assert sets.shape == (20_000, 5) and all(len(set(row)) == 5 for row in sets[:100].tolist())
    means = prediction._mean_overlaps(overlap, sets)
    pairs = overlap[np.triu_indices(24, 1)]
    assert means.mean() == pytest.approx(pairs.mean(), abs=5 * pairs.std() / np.sqrt(20_000))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: prediction.predicted_overlap(np.eye(3), np.zeros((3, 3))), "at least 4 corruptions"),
        (lambda: prediction.predicted_overlap(np.eye(4), np.zeros((3, 3))), "square and of one size"),
        (lambda: prediction.predicted_overlap(np.eye(4), np.triu(np.ones((4, 4)))), "expected a symmetric distance"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
