"""Algorithm 1 against the published matrix, NetworkX and integer programming, on sixty candidates, and resampled."""

import itertools
import time

import networkx
import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from analysis.selection import algorithm, cliques, select
from tests.analysis import published
from tests.analysis.matrices import OFF, imagenet_c, indices, label, noc, symmetric
from tests.analysis.published import FIGURE3, IMAGENET_C, NOC
from tests.refusing import refuses


def largest_sets(overlap, threshold, strict=False, unclipped=None):
    """By NetworkX: (all largest sets, the best of them by mean overlap, mean unclipped overlap, names)."""
    joined = np.triu(overlap < threshold if strict else overlap <= threshold, 1)
    cliques = [tuple(sorted(clique)) for clique in networkx.find_cliques(networkx.from_numpy_array(joined))]
    sets = {clique for clique in cliques if len(clique) == max(map(len, cliques))}

    def rank(s):
        pairs = list(itertools.combinations(s, 2))
        second = overlap if unclipped is None else unclipped
        return *(round(sum(m[p] for p in pairs), 8) for m in (overlap, second)), s

    return sets, min(sets, key=rank)


@pytest.mark.parametrize("threshold", sorted(published.ALGORITHM1))
def test_published_matrix(threshold):
    size, number, winners, mean = published.ALGORITHM1[threshold]
    found = select(FIGURE3, IMAGENET_C, threshold)
    assert (found.size, len(found.sets), found.complete, found.exact) == (size, number, True, True)
    assert set(found.members) in winners
    assert found.mean_overlap == pytest.approx(mean, abs=0.0005)
    tied = [set(s) for s in (found.members, *found.ties)]
    assert sorted(map(sorted, tied)) == sorted(map(sorted, winners))
    assert found.dropped == ()


def test_published_matrix_strict():
    found = select(FIGURE3, IMAGENET_C, 0.10, strict=True)
    assert (found.size, len(found.sets)) == (3, 16)
    assert all(FIGURE3[np.ix_(i, i)][OFF(3, 1)].max() < 0.1 for i in (list(indices(s, IMAGENET_C)) for s in found.sets))


def test_ties_go_to_unclipped_overlap_then_to_names():
    by_name = select(FIGURE3, IMAGENET_C, 0.10)
    assert by_name.members == ("brightness", "elastic_transform", "jpeg_compression")
    assert by_name.mean_unclipped is None
    by_value = select(FIGURE3, IMAGENET_C, 0.10, unclipped=imagenet_c().unclipped)
    assert by_value.members == ("fog", "elastic_transform", "jpeg_compression")
    assert by_value.mean_unclipped < 0


def test_all_published_noc_pairs_are_compatible():
    found = select(noc().overlap, NOC, 0.1)
    assert found.members == NOC
    assert found.mean_overlap == pytest.approx(0.015, abs=0.0005)


def drawn(seed, n):
    rng = np.random.default_rng(seed)
    return np.round(symmetric(rng.normal(0.1, 0.3, (n, n))), int(rng.integers(1, 4)))


@pytest.mark.parametrize("unclipped", [*(drawn(n, 1 + n % 11) for n in range(30)), drawn(4, 20), drawn(5, 25), FIGURE3])
def test_sets_are_all_that_are_largest_and_the_winner_is_the_best(unclipped):
    overlap, names = np.maximum(unclipped, 0), label(len(unclipped))
    for threshold in (0, 0.1, 0.3, 0.5, 1):
        for strict in (False, True):
            sets, best = largest_sets(overlap, threshold, strict, unclipped)
            found = select(overlap, names, threshold, strict, unclipped)
            assert {indices(s, names) for s in found.sets} == sets
            assert indices(found.members, names) == best
            assert found.sets[0] == found.members
            cut = select(overlap, names, threshold, strict, unclipped, max_sets=1)  # branch and bound decides
            assert indices(cut.members, names) == best


@pytest.mark.parametrize("seed", range(8))
def test_the_winner_is_exact_when_the_list_is_cut(seed):
    """Families of near-copies: more largest sets than are listed, so branch and bound decides."""
    rng = np.random.default_rng(seed)
    family = np.repeat(np.arange(4), 3)
    cross = np.round(rng.normal(0, 0.04, (12, 12)), 2 if seed % 2 else 6)
    unclipped = symmetric(np.where(family[:, None] == family, 0.8, cross))
    overlap, names = np.maximum(unclipped, 0), label(12)
    sets, best = largest_sets(overlap, 0.5, unclipped=unclipped)
    assert len(sets) == 81
    found = select(overlap, names, 0.5, unclipped=unclipped, max_sets=5)
    assert not found.complete and found.exact and len(found.sets) == 5
    assert indices(found.members, names) == best
    assert {indices(s, names) for s in found.sets} < sets
    assert "over 5 sets of size 4" in found.describe()
    whole = select(overlap, names, 0.5, unclipped=unclipped)
    assert (whole.members, len(whole.sets), whole.complete) == (found.members, 81, True)
    _, best = largest_sets(overlap, 0.5)
    assert indices(select(overlap, names, 0.5, max_sets=2).members, names) == best


def integer_program(overlap, threshold):
    """Maximise M sum x_i - sum O_ij y_ij, y_ij >= x_i + x_j - 1, x_i + x_j <= 1 on conflicts."""
    n = len(overlap)
    rows, cols = np.triu_indices(n, 1)
    pairs, values = len(rows), overlap[np.triu_indices(n, 1)]
    large = 1 + values.sum()
    cost = np.concatenate([np.full(n, -large), values])
    table = np.zeros((pairs, n + pairs))
    table[np.arange(pairs), rows] = table[np.arange(pairs), cols] = 1
    conflict = values > threshold
    table[np.arange(pairs), n + np.arange(pairs)] = np.where(conflict, 0, -1)
    solved = milp(
        cost,
        constraints=LinearConstraint(table, -np.inf, 1),
        integrality=np.concatenate([np.ones(n), np.zeros(pairs)]),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0},
    )
    assert solved.success, solved.message
    chosen = np.flatnonzero(solved.x[:n] > 0.5)
    return len(chosen), overlap[np.ix_(chosen, chosen)][OFF(len(chosen), 1)].sum()


DRAWN = symmetric(np.random.default_rng(17).uniform(0, 1, (16, 16)))


@pytest.mark.parametrize(
    ("overlap", "threshold"), [*((DRAWN, at) for at in (0.05, 0.2, 0.5)), (FIGURE3, 0.2), (FIGURE3, 0.5)]
)
def test_integer_program(overlap, threshold):
    size, total = integer_program(overlap, threshold)
    found = select(overlap, label(len(overlap)), threshold)
    assert found.size == size
    assert found.mean_overlap * size * (size - 1) / 2 == pytest.approx(total, abs=1e-6)


def test_giving_up_is_stated(monkeypatch):
    monkeypatch.setattr(algorithm, "MAX_BRANCHES", 3)
    rng = np.random.default_rng(3)
    family = np.repeat(np.arange(6), 3)
    cross = rng.uniform(0, 0.2, (18, 18))
    overlap = symmetric(np.where(family[:, None] == family, 0.8, cross))
    found = select(overlap, label(18), 0.3, max_sets=2)
    assert not found.exact and "gave up" in found.describe() and found.size == 6
    # No exchange of one member for another of its family helps.
    members = indices(found.members, label(18))
    for k, v in enumerate(members):
        for other in (3 * (v // 3), 3 * (v // 3) + 1, 3 * (v // 3) + 2):
            changed = [*members[:k], other, *members[k + 1 :]]
            assert overlap[np.ix_(changed, changed)][OFF(6, 1)].mean() >= found.mean_overlap - 1e-9


@pytest.mark.parametrize(
    ("kind", "number", "size"),
    [("random", 105, 32), *(pytest.param(*of, marks=pytest.mark.slow) for of in (("random", 150, 38), ("dense", 300, 70), ("triples", 105, 35)))],
)  # fmt: skip
def test_large_and_hard_graphs_end(kind, number, size):
    """Candidates in triples; at random so that nine pairs in ten are allowed, or 19 in 20."""
    rng = np.random.default_rng(0)
    if kind == "triples":
        family = np.repeat(np.arange(number // 3), 3)
        unclipped = symmetric(np.where(family[:, None] == family, 0.8, rng.normal(0, 0.05, (number, number))))
    else:
        unclipped = symmetric(rng.uniform(0, 1, (number, number)))
    threshold = {"triples": 0.3, "random": 0.9, "dense": 0.95}[kind]
    start = time.process_time()
    found = select(np.maximum(unclipped, 0), label(number), threshold, unclipped=unclipped)
    assert time.process_time() - start < 60
    assert found.size >= size
    inside = indices(found.members, label(number))
    assert unclipped[np.ix_(inside, inside)][OFF(found.size, 1)].max() <= threshold
    assert found.exact == (kind == "random") and found.largest == (kind != "dense")
    assert found.exact or "gave up" in found.describe()


def test_stability_says_where_it_stopped(monkeypatch):
    """Forty candidates in pairs: a resample takes some thousand branches, and the first ones count."""
    rng = np.random.default_rng(0)
    family = np.repeat(np.arange(20), 2)
    overlap = symmetric(np.where(family[:, None] == family, 0.8, rng.normal(0, 0.05, (40, 40))))
    samples = np.stack([symmetric(overlap + rng.normal(0, 0.05, (40, 40))) for _ in range(200)])
    names, given = label(40), (np.maximum(samples, 0), label(40), 0.3)
    monkeypatch.setattr(algorithm, "MAX_BRANCHES", 20_000)
    found = algorithm.stability(*given, unclipped=samples)
    assert 100 <= found.resamples < 200
    assert f"first {found.resamples} of 200" in found.bound and "perhaps not the best" in found.bound
    same = algorithm.stability(
        *(of[: found.resamples] for of in given[:1]), *given[1:], unclipped=samples[: found.resamples]
    )
    assert same.members == found.members and set(same.sizes) == {20} and set(names) >= set(same.sets[0][0])
    monkeypatch.setattr(algorithm, "MAX_BRANCHES", 2000)
    swept = algorithm.sweep(np.maximum(overlap, 0), names, (0, 0.3), unclipped=overlap)
    assert [one.exact for one in swept] == [True, False]


def test_resamples_of_a_hundred_candidates_take_seconds():
    """Candidates in pairs whose overlaps lie close together, so that each resample takes thousands of branches."""
    rng = np.random.default_rng(0)
    family = np.repeat(np.arange(50), 2)
    overlap = symmetric(np.where(family[:, None] == family, 0.8, rng.normal(0, 0.02, (100, 100))))
    samples = np.stack([symmetric(overlap + rng.normal(0, 0.05, (100, 100))) for _ in range(110)])
    start = time.process_time()
    found = algorithm.stability(np.maximum(samples, 0), label(100), 0.3, unclipped=samples)
    assert time.process_time() - start < 20
    assert found.resamples >= 100 and set(found.sizes) == {50} and "branches" in found.bound


def test_invalid_candidates_are_dropped_and_named():
    overlap = FIGURE3.copy()
    gone = IMAGENET_C.index("jpeg_compression")
    overlap[gone] = overlap[:, gone] = np.nan
    found = select(overlap, IMAGENET_C, 0.2)
    kept = [i for i in range(15) if i != gone]
    expected = select(FIGURE3[np.ix_(kept, kept)], [IMAGENET_C[i] for i in kept], 0.2)
    assert found.dropped == ("jpeg_compression",)
    assert (found.members, found.sets) == (expected.members, expected.sets)


def test_order_of_the_input_does_not_matter():
    rng = np.random.default_rng(5)
    for threshold in (0.1, 0.3, 0.6):
        order = rng.permutation(15)
        shuffled = select(FIGURE3[np.ix_(order, order)], [IMAGENET_C[i] for i in order], threshold)
        found = select(FIGURE3, IMAGENET_C, threshold)
        assert set(shuffled.members) == set(found.members)
        assert [IMAGENET_C[i] for i in sorted(map(IMAGENET_C.index, shuffled.members))] == list(found.members)
        assert [set(s) for s in shuffled.sets] == [set(s) for s in found.sets]


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
        maximal = list(networkx.find_cliques(networkx.from_numpy_array(joined)))
        size = max(map(len, maximal))
        found, complete, largest = cliques.largest_cliques(joined, 10**6, cliques.Work(10**6))
        expected = {tuple(sorted(c)) for c in maximal if len(c) == size}
        assert complete and largest and len(found) == len(expected)
        assert {tuple(cliques.bits(c)) for c in found} == expected


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
    refuses(lambda: algorithm.stability(np.maximum(unclipped, 0), names, 0.1), "NaN for (d, b)")
