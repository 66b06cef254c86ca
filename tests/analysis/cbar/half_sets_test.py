"""Severity spread, groups of five levels and their tables, against the rules written out in loops."""

import numpy as np
import pytest

from analysis.cbar import scans
from analysis.cbar.scans import Scan
from corruptions.cbar.severities import SELECTED


def slow_groups(errors, spread):
    """The rule with explicit loops, levels counted from 1; a level replaces an earlier one unless it is worse."""
    groups = []
    for i in range(3, 9):

        def relative(j, i=i):
            return errors[j - 1] / errors[i - 1] - 1

        def nearest(goal, levels, relative=relative):
            best = None
            for j in levels:
                if best is None or abs(goal - relative(j)) <= abs(goal - relative(best)):
                    best = j
            return best

        s1 = nearest(-spread, range(1, i - 1))
        s2 = nearest(-spread / 2, range(s1 + 1, i))
        s5 = nearest(spread, range(i + 2, 11))
        s4 = nearest(spread / 2, range(i + 1, s5))
        groups.append([s1, s2, i, s4, s5])
    return groups


def scan(seed=0, candidates=4, references=("a", "saturate", "b"), width=6):
    rng = np.random.default_rng(seed)
    return Scan(
        tuple(f"c{k}" for k in range(candidates)),
        rng.uniform(5, 60, (candidates, 10)),
        rng.normal(size=(candidates, 10, width)).astype(np.float32),
        tuple(references),
        rng.uniform(5, 60, (len(references), 5)),
        rng.normal(size=(len(references), 5, width)).astype(np.float32),
    )


def test_spread_is_the_mean_of_both_ends():
    errors = np.array([[5, 7, 10, 12, 20], [30, 30, 20, 20, 15]], float)
    # (|-.5| + |1|) / 2 = .75 and (|.5| + |-.25|) / 2 = .375
    assert scans.severity_spread(errors) == pytest.approx((0.75 + 0.375) / 2)


@pytest.mark.parametrize("seed", range(20))
def test_groups_follow_the_rule(seed):
    rng = np.random.default_rng(seed)
    errors = np.sort(rng.uniform(5, 90, 10)) if seed % 2 else rng.integers(5, 12, 10).astype(float)  # many ties
    spread = rng.uniform(0.1, 1)
    found = scans.severity_groups(errors, spread)
    assert found.tolist() == slow_groups(errors, spread)
    assert (np.diff(found) > 0).all() and found.min() >= 1 and found.max() <= 10


def test_ties_go_to_the_larger_level():
    assert scans.severity_groups(np.full(10, 20.0), 0.5)[2].tolist() == [3, 4, 5, 9, 10]


@pytest.mark.parametrize("benchmark", SELECTED)
def test_every_published_group_is_one_the_rule_can_give(benchmark):
    """With errors that meet -s, -s/2, 0, s/2, s exactly at the published levels, those are its group."""
    for name, levels in SELECTED[benchmark].items():
        errors = np.interp(np.arange(1, 11), (0, *levels, 11), (1, 10, 15, 20, 25, 30, 60))
        chosen = scans.severity_groups(errors, 0.5)
        assert tuple(chosen[levels[2] - 3]) == levels, name


def test_tables_are_means_over_the_levels_of_a_group():
    scanned = scan()
    table = scans.group_table(scanned)
    spread = np.mean([(abs(e[0] / e[2] - 1) + abs(e[4] / e[2] - 1)) / 2 for e in scanned.reference_errors[[0, 2]]])
    assert table.spread == pytest.approx(spread)
    assert table.references == ("a", "b") and table.names == scanned.candidates
    others = scanned.reference_features[[0, 2]].reshape(10, -1).astype(float)
    for c in range(4):
        expected = slow_groups(scanned.candidate_errors[c], spread)
        assert table.levels[c].tolist() == expected
        for g, levels in enumerate(expected):
            error = np.mean([scanned.candidate_errors[c, k - 1] for k in levels])
            distance = np.mean(
                [min(np.linalg.norm(scanned.candidate_features[c, k - 1] - r) for r in others) for k in levels]
            )
            assert table.error[c, g] == pytest.approx(error)
            assert table.distance[c, g] == pytest.approx(distance)


def test_the_extra_corruptions_are_no_references_however_they_are_qualified():
    names = ("imagenet_c/saturate", "spatter", "x/gaussian_blur", "speckle_noise")
    with pytest.raises(ValueError, match="expected references besides saturate"):
        scans.group_table(scan(references=names))


def test_errors_of_zero_are_refused_by_name():
    scanned = scan()
    scanned.candidate_errors[2, 4] = 0
    with pytest.raises(ValueError, match=r"c2: expected 10 errors, above 0 at levels 3\.\.8"):
        scans.group_table(scanned)
    with pytest.raises(ValueError, match="above 0 at severity 3"):
        scans.severity_spread([[1, 1, 0, 1, 1]])
