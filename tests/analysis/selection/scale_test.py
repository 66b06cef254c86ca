"""Algorithm 1 on sixty candidates, its graph search against NetworkX, and its stability under resampling."""

import itertools
import time

import networkx
import numpy as np
import pytest

from analysis.selection import algorithm, select
from tests.analysis.matrices import OFF, indices, label, symmetric
from tests.analysis.published import FIGURE3, IMAGENET_C


def check_sweep(unclipped):
    overlap, names = np.maximum(unclipped, 0), label(len(unclipped))
    swept = algorithm.sweep(overlap, names, np.linspace(0, 1, 21), unclipped=unclipped)
    sizes = [one.size for one in swept]
    assert sizes == sorted(sizes)
    assert sizes[-1] == len(names) or overlap[OFF(len(names), 1)].max() > 1
    for one in swept:
        assert one.exact
        for s in one.sets[:50]:
            i = list(indices(s, names))
            assert len(i) == one.size
            assert len(i) < 2 or overlap[np.ix_(i, i)][OFF(len(i), 1)].max() <= one.threshold
    return swept


@pytest.mark.parametrize("kind", ["uniform", "normal", "mostly clipped"])
def test_sixty_candidates_at_any_threshold_take_seconds(kind):
    rng = np.random.default_rng(1)
    values = {
        "uniform": rng.uniform(0, 1, (60, 60)),
        "normal": rng.normal(0.1, 0.3, (60, 60)),
        "mostly clipped": rng.normal(-0.2, 0.3, (60, 60)),
    }[kind]
    start = time.process_time()
    check_sweep(symmetric(values))
    assert time.process_time() - start < 10


def test_sixty_candidates_with_a_quarter_of_a_billion_largest_sets():
    rng = np.random.default_rng(2)
    family = np.repeat(np.arange(12), 5)
    same = family[:, None] == family
    unclipped = symmetric(np.where(same, rng.uniform(0.6, 0.9, (60, 60)), rng.normal(0, 0.05, (60, 60))))
    overlap, names = np.maximum(unclipped, 0), label(60)
    start = time.process_time()
    found = select(overlap, names, 0.3, unclipped=unclipped)
    assert time.process_time() - start < 10
    assert (found.size, found.complete, found.exact) == (12, False, True)
    assert len(found.sets) == algorithm.MAX_SETS
    # Local optimality, checked apart: no exchange of one or two members within their families helps.
    members = np.array(indices(found.members, names))
    sums = {}
    for a, b in itertools.combinations(range(12), 2):
        for x, y in itertools.product(range(5), repeat=2):
            other = members.copy()
            other[a], other[b] = 5 * (members[a] // 5) + x, 5 * (members[b] // 5) + y
            sums[tuple(other)] = overlap[np.ix_(other, other)][OFF(12, 1)].sum()
    assert min(sums.values()) == pytest.approx(overlap[np.ix_(members, members)][OFF(12, 1)].sum(), abs=1e-9)


def test_maximum_cliques_match_networkx():
    rng = np.random.default_rng(4)
    for density in (0.2, 0.5, 0.8, 0.95):
        joined = np.triu(rng.uniform(size=(25, 25)) < density, 1)
        joined = joined | joined.T
        adjacent = [sum(1 << int(j) for j in np.flatnonzero(row)) for row in joined]
        maximal = list(networkx.find_cliques(networkx.from_numpy_array(joined)))
        size = max(map(len, maximal))
        assert algorithm.maximum_size(adjacent) == size
        found, complete = algorithm.maximum_cliques(adjacent, size, 10**6)
        expected = {tuple(sorted(c)) for c in maximal if len(c) == size}
        assert complete and len(found) == len(expected)
        assert {tuple(algorithm.bits(c)) for c in found} == expected


def test_stability_counts_winners():
    certain = np.stack([FIGURE3] * 5)
    found = algorithm.stability(certain, IMAGENET_C, 0.2)
    winner = select(FIGURE3, IMAGENET_C, 0.2).members
    assert found.sets == ((winner, 1.0),) and found.sizes == {5: 1.0} and found.resamples == 5
    assert found.members == {name: float(name in winner) for name in IMAGENET_C}
    pair = np.array([[1, 0.1], [0.1, 1]])
    mixed = np.stack([pair, pair, pair + 0.2 * (1 - np.eye(2)), np.full((2, 2), np.nan)])
    found = algorithm.stability(mixed, "ab", 0.15)
    assert found.resamples == 3
    assert found.sets == ((("a", "b"), 2 / 3), (("a",), 1 / 3))
    assert found.members == {"a": 1.0, "b": 2 / 3} and found.sizes == {1: 1 / 3, 2: 2 / 3}


@pytest.mark.parametrize("limit", [algorithm._LISTED, 1])
def test_stability_selects_in_each_resample_as_select_does(monkeypatch, limit):
    monkeypatch.setattr(algorithm, "_LISTED", limit)
    rng = np.random.default_rng(7)
    unclipped = np.stack([symmetric(np.round(rng.normal(0.05, 0.15, (7, 7)), 1)) for _ in range(250)])
    unclipped[::5, 2] = unclipped[::5, :, 2] = np.nan
    samples, names = np.maximum(unclipped, 0), ("d", "b", "a", "c", "g", "f", "e")
    for free in (None, unclipped):
        found = algorithm.stability(samples, names, 0.1, unclipped=free)
        each = [
            select(sample, names, 0.1, unclipped=None if free is None else other).members
            for sample, other in zip(samples, unclipped)
        ]
        assert dict(found.sets) == pytest.approx({members: each.count(members) / 250 for members in set(each)})
    unclipped[3, 0, 1] = unclipped[3, 1, 0] = np.nan
    with pytest.raises(ValueError, match=r"NaN for \(d, b\)"):
        algorithm.stability(np.maximum(unclipped, 0), names, 0.1)
