"""Random benchmarks against enumeration: what exists, with which probability, and what can be reached."""

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from analysis.selection import nk_benchmarks
from analysis.selection.nk_benchmarks import balanced, by_spread, count_balanced, representation, spread, unbalanced

SMALL = (("a1", "a2"), ("b1", "b2", "b3"), ("c1", "c2", "c3", "c4"), ("d1",))
SIX = tuple(tuple(f"{c}{i}" for i in range(8)) for c in "abcdef")


def every(clusters, n, k):
    """All (n, k) benchmarks with their probability, from the definition."""
    eligible = [c for c in clusters if len(c) >= k]
    combos = list(itertools.combinations(eligible, n))
    found = {}
    for combo in combos:
        ways = list(itertools.product(*(itertools.combinations(c, k) for c in combo)))
        for way in ways:
            found[tuple(sorted(itertools.chain(*way)))] = 1 / len(combos) / len(ways)
    return found


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 1), (4, 1), (2, 2), (3, 2), (4, 2), (1, 4)])
def test_all_that_exist_are_counted_and_can_be_drawn(n, k):
    expected = every(SMALL, n, k)
    assert count_balanced(SMALL, n, k) == len(expected)
    if expected:
        found = balanced(SMALL, n, k, len(expected), seed=1)
        assert len(found) == len(set(found)) and set(found) == set(expected)
    with pytest.raises(ValueError, match=f"between 1 and the {len(expected)} that exist"):
        balanced(SMALL, n, k, len(expected) + 1)


def test_numbers_beyond_any_enumeration_are_counted_exactly():
    clusters = [tuple(f"{c}-{i}" for i in range(30)) for c in range(12)]
    assert count_balanced(clusters, 6, 5) == 924 * 142506**6  # C(12, 6) C(30, 5)^6
    found = balanced(clusters, 6, 5, 50)
    assert len(set(found)) == 50 and {len(f) for f in found} == {30}


@pytest.mark.parametrize("listed", [0, 20_000], ids=["drawn", "from a list"])
def test_draws_follow_the_law(monkeypatch, listed):
    """The first of two benchmarks: categories uniformly, then members uniformly. The second is drawn again until it
    differs from the first, so its law is another.
    """
    monkeypatch.setattr(nk_benchmarks, "_LISTED", listed)
    first, trials = every(SMALL, 2, 2), 1500
    assert len(set(first.values())) == 3  # not uniform over benchmarks
    second = {b: sum(p * first[b] / (1 - p) for a, p in first.items() if a != b) for b in first}
    pairs = [balanced(SMALL, 2, 2, 2, seed=s) for s in range(trials)]
    for drawn, law in zip(zip(*pairs), (first, second), strict=True):
        counts = Counter(drawn)
        observed, expected = [counts[b] for b in law], [trials * p for p in law.values()]
        assert stats.chisquare(observed, expected).pvalue > 0.001


def test_the_example_of_the_original():
    """6 categories, 2 of each, 1000 benchmarks."""
    found = balanced(SIX, 6, 2, 1000, seed=3)
    assert len(set(found)) == 1000 and all(list(b) == sorted(b) for b in found)
    counts = representation(found, SIX)
    assert (counts == 2).all() and (spread(counts) == 0).all()
    assert found == balanced(SIX, 6, 2, 1000, seed=3) != balanced(SIX, 6, 2, 1000, seed=4)


def reachable(n, k):
    """Standard deviations, to .1, of all ways to write n k as n counts of at least 1."""
    parts = [p for p in itertools.combinations_with_replacement(range(1, n * k), n) if sum(p) == n * k]
    return sorted({round(float(np.std(p)), 1) for p in parts})


def test_substitution_reaches_every_standard_deviation_there_is():
    assert reachable(6, 2) == [0, 0.6, 0.8, 1.0, 1.2, 1.4, 1.5, 1.8, 2.2]
    start = balanced(SIX, 6, 2, 100)
    found = unbalanced(start, SIX)
    assert len(found) == len(set(found)) and not set(found) & set(start)
    counts = representation(found, SIX)
    assert (counts >= 1).all() and (counts.sum(axis=1) == 12).all()
    bins = by_spread((*start, *found), SIX, more_than=0)
    assert list(bins) == reachable(6, 2)
    assert sum(map(len, bins.values())) == len(start) + len(found)
    assert {tuple(sorted(c)) for c in representation(bins[1.5], SIX).tolist()} >= {(1, 1, 1, 1, 3, 5)}
    most = bins[2.2]
    assert {tuple(sorted(c)) for c in representation(most, SIX).tolist()} == {(1, 1, 1, 1, 1, 7)}
    kept = by_spread((*start, *found), SIX)
    assert kept == {value: group for value, group in bins.items() if len(group) > 200} and 0.0 not in kept


def test_full_categories_stop_the_substitution():
    clusters = (("a1", "a2"), ("b1", "b2"))
    assert unbalanced([("a1", "a2", "b1", "b2")], clusters) == ()
    found = unbalanced([("a1", "b1", "b2")], (("a1", "a2"), ("b1", "b2", "b3")))
    assert found == ()  # a has one member only, and may not lose it
    assert set(unbalanced([("a1", "a2", "b1", "b2")], (("a1", "a2"), ("b1", "b2", "b3")))) == {
        ("a1", "b1", "b2", "b3"),
        ("a2", "b1", "b2", "b3"),
    }


def test_spread_leaves_out_categories_that_are_not_represented():
    np.testing.assert_allclose(spread([[0, 2, 2], [1, 3, 0], [1, 1, 4]]), [0, 1, np.sqrt(2)])
