"""Algorithm 1 against the published matrix, brute force and integer programming."""

import itertools

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from analysis.overlap import overlap_matrix
from analysis.selection import algorithm, select
from tests.analysis import published
from tests.analysis.matrices import OFF, indices, label, symmetric
from tests.analysis.published import FIGURE3, IMAGENET_C, NOC


def brute_force(overlap, threshold, strict=False, unclipped=None):
    """Every subset: (largest sets, the best by mean overlap, mean unclipped overlap, names)."""
    n = len(overlap)
    allowed = overlap < threshold if strict else overlap <= threshold
    for size in range(n, 0, -1):
        sets = [
            s
            for s in itertools.combinations(range(n), size)
            if all(allowed[i, j] for i, j in itertools.combinations(s, 2))
        ]
        if sets:
            break

    def rank(s):
        pairs = list(itertools.combinations(s, 2))
        second = overlap if unclipped is None else unclipped
        return *(round(sum(m[p] for p in pairs), 8) for m in (overlap, second)), s

    return set(sets), min(sets, key=rank)


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
    measured = overlap_matrix(
        published.accuracies(published.TABLE7, published.ALEXNET_S4, IMAGENET_C), names=IMAGENET_C
    )
    by_value = select(FIGURE3, IMAGENET_C, 0.10, unclipped=measured.unclipped)
    assert by_value.members == ("fog", "elastic_transform", "jpeg_compression")
    assert by_value.mean_unclipped < 0


def test_all_published_noc_pairs_are_compatible():
    measured = overlap_matrix(published.accuracies(published.TABLE8, published.ALEXNET_NOC, NOC), names=NOC)
    found = select(measured.overlap, NOC, 0.1)
    assert found.members == NOC
    assert found.mean_overlap == pytest.approx(0.015, abs=0.0005)


@pytest.mark.parametrize("seed", range(30))
def test_brute_force(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    unclipped = np.round(symmetric(rng.normal(0.1, 0.3, (n, n))), int(rng.integers(1, 4)))
    np.fill_diagonal(unclipped, 1)
    overlap, names = np.maximum(unclipped, 0), label(n)
    for threshold in (0, 0.1, 0.3, 0.5, 1):
        for strict in (False, True):
            sets, best = brute_force(overlap, threshold, strict, unclipped)
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
    sets, best = brute_force(overlap, 0.5, unclipped=unclipped)
    assert len(sets) == 81
    found = select(overlap, names, 0.5, unclipped=unclipped, max_sets=5)
    assert not found.complete and found.exact and len(found.sets) == 5
    assert indices(found.members, names) == best
    assert {indices(s, names) for s in found.sets} < sets
    assert "over 5 sets of size 4" in found.describe()
    whole = select(overlap, names, 0.5, unclipped=unclipped)
    assert (whole.members, len(whole.sets), whole.complete) == (found.members, 81, True)
    _, best = brute_force(overlap, 0.5)
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
    monkeypatch.setattr(algorithm, "MAX_NODES", 3)
    rng = np.random.default_rng(3)
    family = np.repeat(np.arange(6), 3)
    cross = rng.uniform(0, 0.2, (18, 18))
    overlap = symmetric(np.where(family[:, None] == family, 0.8, cross))
    found = select(overlap, label(18), 0.3, max_sets=2)
    assert not found.exact and "gave up" in found.describe() and found.size == 6


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
