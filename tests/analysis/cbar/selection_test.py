"""The search for a dissimilar benchmark, against brute force on few candidates."""

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy.stats

from analysis.cbar import scans, selection
from analysis.cbar.scans import GroupTable

TARGET = 30.0


def table(seed, number, names=None, width=8.0):
    rng = np.random.default_rng(seed)
    levels = np.broadcast_to(np.arange(1, 6), (number, 6, 5)) + np.arange(6)[:, None]
    names = names or tuple(f"c{k:02d}" for k in range(number))
    error = TARGET + rng.uniform(-width, width, (number, 6))
    return GroupTable(names, levels, error, rng.uniform(1, 2, (number, 6)), 0.5, ("r",))


def valid_choices(error, subset, target, precision=0.01):
    """All group choices of a subset whose mean is within the relative precision."""
    return [
        groups
        for groups in itertools.product(range(6), repeat=5)
        if abs(5 * target - sum(error[c, g] for c, g in zip(subset, groups))) / (5 * target) < precision
    ]


def test_half_sets_exist_exactly_where_brute_force_finds_a_choice():
    scan = table(0, 7)
    scan.error[:2] += 30  # no choice for sets with both, few for sets with one
    found = scans.half_sets(scan.error, scan.distance, TARGET, np.random.default_rng(0))
    by_set = {tuple(m): tuple(g) for m, g in zip(found.members.tolist(), found.groups.tolist())}
    assert len(by_set) == len(found.members)
    choices = {subset: valid_choices(scan.error, subset, TARGET) for subset in itertools.combinations(range(7), 5)}
    assert set(by_set) == {subset for subset, valid in choices.items() if valid}
    assert 0 < len(by_set) < len(choices)
    for k, (subset, groups) in enumerate(by_set.items()):
        assert groups in choices[subset]
        assert found.error[k] == pytest.approx(np.mean([scan.error[c, g] for c, g in zip(subset, groups)]))
        assert found.distance[k] == pytest.approx(np.mean([scan.distance[c, g] for c, g in zip(subset, groups)]))
        assert found.masks[k] == sum(1 << c for c in subset)


def test_choices_are_uniform():
    scan = table(3, 5, width=12)
    valid = valid_choices(scan.error, range(5), TARGET, 0.0005)
    assert 20 < len(valid) < 80
    rng = np.random.default_rng(0)
    draws = 100 * len(valid)
    counts = Counter(
        tuple(scans.half_sets(scan.error, scan.distance, TARGET, rng, 0.0005).groups[0].tolist()) for _ in range(draws)
    )
    assert set(counts) == set(valid)
    assert scipy.stats.chisquare([counts[groups] for groups in valid]).pvalue > 1e-4


@pytest.mark.parametrize(
    ("error", "target", "precision", "kept"),
    [
        *((TARGET * (1 + offset), TARGET, 0.01, abs(offset) < 0.01) for offset in (0.0099, 0.0101, -0.0099, -0.0101)),
        *((error, 8.0, 0.5, False) for error in (12.0, 4.0)),  # |40 - 60| / 40 = .5, exactly the precision
    ],
)
def test_the_precision_is_relative_to_the_target_and_excludes_its_ends(error, target, precision, kept):
    errors = np.full((5, 6), error)
    assert len(scans.half_sets(errors, errors, target, np.random.default_rng(0), precision).error) == kept


def test_thirty_candidates_have_every_half_set_and_meet_the_target():
    scan = table(1, 30)
    run = selection.measure(scan, TARGET, 0)
    assert len(run.halves.error) == 142_506 == len(np.unique(run.halves.masks))
    assert (abs(run.halves.error - TARGET) < 0.01 * TARGET).all()
    assert len(run.distances) == 100_000


def test_a_seed_gives_one_result():
    scan = table(1, 12)
    run, again, other = (selection.measure(scan, TARGET, seed, number=5000) for seed in (0, 0, 1))
    np.testing.assert_array_equal(run.halves.groups, again.halves.groups)
    assert run.contribution == again.contribution
    assert (run.halves.groups != other.halves.groups).any() and run.contribution != other.contribution


def halves_of(members, error=None):
    members = np.array(members, np.int8)
    error = np.full(len(members), TARGET) if error is None else np.array(error, float)
    return scans.HalfSets(members, np.zeros_like(members), error, np.arange(len(members), dtype=float))


def test_benchmarks_are_uniform_over_disjoint_pairs():
    sets = list(itertools.combinations(range(11), 5))[::5]
    halves = halves_of(sets)
    pairs = selection.random_benchmarks(halves, np.random.default_rng(0), 20_000)
    possible = [(i, j) for i, j in np.ndindex(len(sets), len(sets)) if not set(sets[i]) & set(sets[j])]
    counts = Counter(map(tuple, pairs.tolist()))
    assert len(possible) > 50 and set(counts) <= set(possible)
    assert scipy.stats.chisquare([counts[pair] for pair in possible]).pvalue > 1e-4


def test_contributions_are_standardised_differences_of_means():
    rng = np.random.default_rng(0)
    holds, distance = rng.random((50, 4)) < 0.4, rng.normal(size=50)
    holds[:, 3] = False
    found = selection.contributions(holds, distance)
    expected = [(distance[holds[:, c]].mean() - distance.mean()) / distance.std() for c in range(3)]
    np.testing.assert_allclose(found[:3], expected)
    assert np.isnan(found[3])


def test_distant_candidates_are_ranked_first_whatever_their_order_in_a_run():
    """Distances by name: the ranking follows them although every run lists the candidates in another order."""
    names = [f"c{k:02d}" for k in range(14)]
    runs = []
    for seed in range(3):
        order = tuple(np.random.default_rng(seed).permutation(names).tolist())
        scan = table(seed, 14, order, width=4)
        distance = np.array([1 + names.index(name) for name in order], float)
        scan = scan._replace(distance=np.tile(distance[:, None], 6))
        runs.append(selection.measure(scan, TARGET, seed, number=20_000))
    ranking = selection.rank(runs)
    assert [name for name, *_ in ranking] == names[::-1]
    for name, mean, error in ranking:
        values = [run.contribution[name] for run in runs]
        assert mean == pytest.approx(np.mean(values))
        assert error == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))


def test_ranking_puts_undefined_candidates_last_and_ties_by_name():
    runs = [
        selection.Run(None, None, {"b": 1.0, "a": 1.0, "d": float("nan"), "c": float("nan"), "e": 2.0}, None),
        selection.Run(None, None, {"a": 1.0, "b": 1.0, "c": 3.0, "d": float("nan"), "e": 0.0}, None),
    ]
    assert [name for name, *_ in selection.rank(runs)] == ["c", "a", "b", "e", "d"]


def test_the_choice_is_the_pair_closest_to_the_target():
    runs = [selection.measure(table(seed, 11, width=5), TARGET, seed, number=5000) for seed in range(2)]
    members = [f"c{k:02d}" for k in (10, 3, 1, 0, 4, 5, 6, 7, 8, 9)]
    found = selection.choose(runs, members, TARGET)
    pairs = []
    for number, run in enumerate(runs):
        allowed = {run.table.names.index(name) for name in members}
        sets = [set(m) for m in run.halves.members.tolist()]
        for i, j in itertools.combinations(range(len(sets)), 2):
            if sets[i] | sets[j] == allowed:
                pairs.append((abs((run.halves.error[i] + run.halves.error[j]) / 2 - TARGET), number, i, j))
    _, number, i, j = min(pairs)
    halves = runs[number].halves
    assert (found.run, found.pairs, found.members) == (number, len(pairs), tuple(members))
    assert found.error == pytest.approx((halves.error[i] + halves.error[j]) / 2)
    assert found.distance == pytest.approx((halves.distance[i] + halves.distance[j]) / 2)
    expected = {
        f"c{c:02d}": tuple(range(g + 1, g + 6))  # the group g of table()
        for h in (i, j)
        for c, g in zip(halves.members[h].tolist(), halves.groups[h].tolist())
    }
    assert found.levels == expected and list(found.levels) == members


def test_equally_good_choices_go_to_the_first_run():
    scan = table(0, 10)
    halves = halves_of([range(5), range(5, 10)], [TARGET + 1, TARGET])
    mirrored = halves._replace(error=np.array([TARGET - 1, TARGET]), groups=np.ones((2, 5), np.int8))
    runs = [selection.Run(scan, h, dict.fromkeys(scan.names, 0.0), None) for h in (halves, mirrored)]
    assert selection.choose(runs, scan.names, TARGET).run == 0
    assert selection.choose(runs[::-1], scan.names, TARGET).levels["c00"] == (2, 3, 4, 5, 6)
