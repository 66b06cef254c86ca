"""Severity scans are read back and joined; spread, groups of five levels and tables against loops."""

import dataclasses

import numpy as np
import pytest

import corruptions
from analysis.cbar import scans
from analysis.cbar.scans import Scan, join
from corruptions.cbar.severities import SELECTED
from runtime import artifacts
from tests.analysis.made_up import counted
from tests.refusing import refuses


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


def test_a_scan_is_read_back_exactly(tmp_path):
    whole, path = scan(), tmp_path / "scans" / "run0.npz"
    scans.write_scan(path, whole, "revision abc")
    found = scans.read_scan(path)
    for field in dataclasses.fields(Scan):
        before, after = getattr(whole, field.name), getattr(found, field.name)
        assert type(before) is type(after)
        np.testing.assert_array_equal(np.asarray(before), np.asarray(after))
    refuses(lambda: scans.write_scan(tmp_path / "run0.csv", whole), "a scan, *.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidate_errors": None}, "expected the arrays candidates, .* of a scan, found candidates"),
        ({"candidates": np.ones(2)}, "found .*candidates float64"),
        ({"reference_errors": np.array([["x"] * 5])}, "found .*reference_errors <U1"),
        ({"candidate_errors": np.full((4, 10), 101.0)}, r"run0\.npz: expected errors of the candidates in percent"),
    ],
)
def test_archives_that_are_no_scan_are_refused(change, message, tmp_path):
    arrays = {
        name: np.asarray(value) for name, value in (dataclasses.asdict(scan()) | change).items() if value is not None
    }
    artifacts.write(tmp_path / "run0.npz", arrays, {})
    with pytest.raises(ValueError, match=message):
        scans.read_scan(tmp_path / "run0.npz")


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "run0.npz"
    scans.write_scan(path, scan())
    path.write_bytes(path.read_bytes()[:100])
    refuses(lambda: scans.read_scan(path), "cannot be read")


CONDITIONS = [
    (name, level)
    for benchmark, levels in (("cbar_candidates", 10), ("imagenet_c", 5))
    for name in corruptions.names(benchmark)
    for level in range(1, levels + 1)
]


def counts():
    rows = [counted("standard", seed, "clean", 0, 190, 200) for seed in (0, 1)]
    for k, (name, level) in enumerate(CONDITIONS):
        rows += [counted("standard", seed, name, level, 100 + (k + seed) % 50, 200) for seed in (0, 1)]
    return rows


def centres():
    return {condition: np.full(4, k, np.float32) for k, condition in enumerate(CONDITIONS)}


def test_every_level_in_its_place_and_seeds_averaged(tmp_path):
    scans.write_scan(tmp_path / "s.npz", join(counts(), centres(), "standard"))
    found = scans.read_scan(tmp_path / "s.npz")
    assert found.candidates == corruptions.names("cbar_candidates") and found.candidate_errors.shape == (30, 10)
    assert found.references == corruptions.names("imagenet_c") and found.reference_features.shape == (15, 5, 4)
    k = CONDITIONS.index(("cbar/ripple", 7))
    row = found.candidates.index("cbar/ripple")
    mean = (100 + k % 50 + 100 + (k + 1) % 50) / 2
    assert found.candidate_errors[row, 6] == pytest.approx(100 * (1 - mean / 200))
    assert (found.candidate_features[row, 6] == k).all()


def test_what_is_missing_is_named():
    incomplete = [row for row in counts() if row[1][:2] != ("cbar/lines", 3)]
    refuses(lambda: join(incomplete, centres(), "standard"), "1: cbar/lines level 3")
    without = {key: value for key, value in centres().items() if key[0] != "imagenet_c/fog"}
    refuses(lambda: join(counts(), without, "standard"), "5: imagenet_c/fog level 1")
    refuses(lambda: join(counts(), centres(), "augmix"), "of the model")


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
    refuses(lambda: scans.group_table(scan(references=names)), "references besides saturate")
