"""Agreement of two overlap matrices against SciPy, plain resampling and simulated studies."""

import itertools

import numpy as np
import pytest
from scipy import stats

from analysis.overlap import agreement as overlap_agreement
from analysis.overlap.agreement import MAXIMUM, OTHER, TIE, WINNER
from analysis.overlap.measured import MeasuredOverlap
from tests.analysis import published
from tests.analysis.matrices import by_definition, imagenet_c
from tests.analysis.published import IMAGENET_C

UPPER = np.triu_indices(15, 1)


def agreement(first, second, names, *, se=None, **given):
    """The agreement of two unclipped matrices, of equal standard errors."""
    studies = (MeasuredOverlap(tuple(names), np.maximum(m, 0), np.asarray(m, float), se) for m in (first, second))
    return overlap_agreement.agreement(*studies, **given)


def benchmark_agreement(first, second, names, threshold, second_unclipped=None):
    both = ((first, first), (second, second if second_unclipped is None else second_unclipped))
    return overlap_agreement.benchmark_agreement(*(MeasuredOverlap(tuple(names), *m) for m in both), threshold)


def two_architectures(rng, n, noise=0.1):
    """Overlaps of one set of corruptions measured twice: effects of each corruption, of pairs, and noise."""
    effect, pair = rng.normal(0, 0.2, n), rng.normal(0, 0.1, (n, n))
    common = effect[:, None] + effect + (pair + pair.T) / np.sqrt(2)
    both = []
    for _ in range(2):
        wobble = rng.normal(0, noise, (n, n))
        both.append(common + (wobble + wobble.T) / np.sqrt(2))
        np.fill_diagonal(both[-1], 1)
    return both


def test_correlations_are_those_of_scipy():
    first, second = two_architectures(np.random.default_rng(0), 15)
    second = np.maximum(second, 0)  # ties at 0
    np.fill_diagonal(second, 1)
    found = agreement(first, second, IMAGENET_C)
    assert found.pearson == pytest.approx(stats.pearsonr(first[UPPER], second[UPPER]).statistic)
    assert found.spearman == pytest.approx(stats.spearmanr(first[UPPER], second[UPPER]).statistic)
    assert found.mean_difference == pytest.approx(abs(first - second)[UPPER].mean())
    assert np.isnan(found.standardised)
    assert found[:5] == agreement(first, second, IMAGENET_C)[:5] != agreement(first, second, IMAGENET_C, seed=1)[:5]


def test_intervals_are_those_of_corruptions_resampled_one_by_one():
    first, second = two_architectures(np.random.default_rng(1), 10)
    found = agreement(first, second, "abcdefghij", resamples=4000, level=0.9)
    rng, plain = np.random.default_rng(2), []
    for _ in range(700):
        drawn = rng.integers(0, 10, 10)
        pairs = [(drawn[a], drawn[b]) for a, b in itertools.combinations(range(10), 2) if drawn[a] != drawn[b]]
        x, y = (np.array([m[i, j] for i, j in pairs]) for m in (first, second))
        plain.append((stats.pearsonr(x, y).statistic, stats.spearmanr(x, y).statistic))
    expected = np.percentile(plain, [5, 95], axis=0).T
    np.testing.assert_allclose(found.pearson_interval, expected[0], atol=0.03)
    np.testing.assert_allclose(found.spearman_interval, expected[1], atol=0.03)


def test_intervals_cover_the_correlation_of_many_corruptions():
    rng = np.random.default_rng(3)
    n, trials, names = 25, 80, [f"c{i}" for i in range(25)]
    # Variances of a pair: two effects .04 each and the pair .01, of which both studies see the same, and noise .01.
    truth = 0.09 / 0.10
    hits = sum(
        found.pearson_interval[0] <= truth <= found.pearson_interval[1]
        for found in (agreement(*two_architectures(rng, n), names, resamples=200, level=0.9) for _ in range(trials))
    )
    assert 0.78 <= hits / trials <= 0.98


def test_two_test_sets_of_the_same_models_differ_by_their_noise():
    rng = np.random.default_rng(4)
    full = published.accuracies(published.TABLE7, published.ALEXNET_S4, IMAGENET_C)
    first, second = (by_definition(rng.binomial(5000, full) / 5000) for _ in range(2))
    se = imagenet_c(number=5000).se
    found = agreement(first, second, IMAGENET_C, se=se)
    assert found.standardised == pytest.approx(1, abs=0.25)
    shifted = second + np.where(np.eye(15), 0, 0.2)
    assert agreement(first, shifted, IMAGENET_C, se=se).standardised > 3


def test_undefined_corruptions_are_left_out():
    first, second = two_architectures(np.random.default_rng(5), 6)
    first[1] = first[:, 1] = np.nan
    second[4] = second[:, 4] = np.nan
    kept = [0, 2, 3, 5]
    found = agreement(first, second, "abcdef")
    assert found.dropped == ("b", "e") and found.pairs == 6
    assert found[:5] == agreement(*(m[np.ix_(kept, kept)] for m in (first, second)), "acdf")[:5]
    flat = np.eye(4)
    assert np.isnan(agreement(flat, second[np.ix_(kept, kept)], "acdf").pearson)


def matrix(n, **pairs):
    """Overlap 0 but for the pairs given as ab=value."""
    found = np.eye(n)
    for (a, b), value in pairs.items():
        i, j = ord(a) - ord("a"), ord(b) - ord("a")
        found[i, j] = found[j, i] = value
    return found


def test_benchmarks_by_hand():
    # First: a and b conflict, {a, c, d} has a lower mean than {b, c, d}. Second: a and c conflict, only {b, c, d} is
    # left as {a, b, d} has a higher mean.
    first = matrix(4, ab=0.5, bc=0.1)
    second = matrix(4, ac=0.5, ab=0.1)
    found = benchmark_agreement(first, second, "abcd", 0.2)
    assert found.first == ("a", "c", "d") and found.second == ("b", "c", "d") and found.shared == ("c", "d")
    assert found.jaccard == 0.5
    assert found.first_in_second == OTHER and found.second_in_first == MAXIMUM
    tied = benchmark_agreement(first, matrix(4, ac=0.5, ad=0.1), "abcd", 0.2)
    assert tied.second == ("b", "c", "d")
    same = benchmark_agreement(first, first, "abcd", 0.2)
    assert same.jaccard == 1 and same.first_in_second == same.second_in_first == WINNER
    # Mean 0 either way in the second: a tie that the alphabet decides.
    other = benchmark_agreement(matrix(3, ab=0.5, ac=0.1), matrix(3, ab=0.5), "abc", 0.2)
    assert (other.first, other.second, other.first_in_second) == (("b", "c"), ("a", "c"), TIE)
    # The unclipped overlap decides it otherwise.
    both = matrix(3, ab=0.5, ac=0.1), matrix(3, ab=0.5)
    other = benchmark_agreement(*both, "abc", 0.2, second_unclipped=matrix(3, ab=0.5, bc=-0.3))
    assert other.first_in_second == WINNER
    # Size decides first.
    assert benchmark_agreement(matrix(3, ab=0.5), matrix(3), "abc", 0.2)[5:] == (OTHER, OTHER)
    # An overlap that equals the threshold is allowed.
    assert benchmark_agreement(matrix(2), matrix(2, ab=0.2), "ab", 0.2).first_in_second == WINNER


def test_a_sweep_over_thresholds_agrees_with_the_published_benchmarks():
    printed = published.FIGURE3[:, :15]
    found = [benchmark_agreement(printed, printed, IMAGENET_C, at) for at in published.ALGORITHM1]
    for one, (size, _, winners, _) in zip(found, published.ALGORITHM1.values(), strict=True):
        assert len(one.first) == size and set(one.first) in winners
        assert one.jaccard == 1 and one.first_in_second == WINNER
    # The recovered matrix before it was rounded to two decimals selects from the same maximum sets.
    assert benchmark_agreement(imagenet_c().overlap, printed, IMAGENET_C, 0.3).jaccard == 1


def test_candidates_undefined_in_one_matrix_are_selected_in_neither():
    first, second = matrix(3), matrix(3)
    second[2] = second[:, 2] = np.nan
    found = benchmark_agreement(first, second, "abc", 0.1)
    assert found.first == found.second == ("a", "b") and found.jaccard == 1
