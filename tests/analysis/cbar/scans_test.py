"""Severity scans: what is written is read back, errors and features are joined, what does not fit is refused."""

import dataclasses

import numpy as np
import pytest

import corruptions
from analysis import frames
from analysis.cbar import scans
from analysis.cbar.scans import Scan, join
from runtime import artifacts


@pytest.fixture
def scan():
    rng = np.random.default_rng(0)
    return Scan(
        ("cbar/ripple", "cbar/lines"),
        rng.uniform(0, 100, (2, 10)),
        rng.normal(size=(2, 10, 4)).astype(np.float32),
        ("imagenet_c/fog",),
        rng.uniform(0, 100, (1, 5)),
        rng.normal(size=(1, 5, 4)).astype(np.float32),
    )


def test_a_scan_is_read_back_exactly(scan, tmp_path):
    scans.write_scan(tmp_path / "scans" / "run0.npz", scan, "revision abc")
    found = scans.read_scan(tmp_path / "scans" / "run0.npz")
    for field in dataclasses.fields(Scan):
        before, after = getattr(scan, field.name), getattr(found, field.name)
        assert type(before) is type(after)
        np.testing.assert_array_equal(np.asarray(before), np.asarray(after))
    with pytest.raises(ValueError, match=r"a scan, \*\.npz, found"):
        scans.write_scan(tmp_path / "run0.csv", scan)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidate_errors": None}, "expected the arrays candidates, .* of a scan, found candidates"),
        ({"candidates": np.ones(2)}, "found .*candidates float64"),
        ({"reference_errors": np.array([["x"] * 5])}, "found .*reference_errors <U1"),
        ({"candidate_errors": np.full((2, 10), 101.0)}, r"run0\.npz: expected errors of the candidates in percent"),
    ],
)
def test_archives_that_are_no_scan_are_refused(scan, change, message, tmp_path):
    arrays = {
        name: np.asarray(value) for name, value in (dataclasses.asdict(scan) | change).items() if value is not None
    }
    artifacts.write(tmp_path / "run0.npz", arrays, {})
    with pytest.raises(ValueError, match=message):
        scans.read_scan(tmp_path / "run0.npz")


def test_files_that_are_absent_or_damaged_are_refused(scan, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected a scan at .*, found no file"):
        scans.read_scan(tmp_path / "none.npz")
    path = tmp_path / "run0.npz"
    scans.write_scan(path, scan)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="cannot be read"):
        scans.read_scan(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidates": ("a", "a")}, "each once"),
        ({"candidate_errors": np.full((2, 10), np.nan)}, "in percent, 0..100"),
        ({"reference_errors": np.ones((1, 4))}, r"expected errors \(1, 5\)"),
        ({"reference_features": np.ones((1, 5, 3))}, "features of one width"),
        ({"reference_features": np.full((1, 5, 4), np.inf)}, "finite features of the references"),
    ],
)
def test_scans_that_make_no_sense_are_refused(scan, change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(scan, **change)


CONDITIONS = [
    (name, level)
    for benchmark, levels in (("cbar_candidates", 10), ("imagenet_c", 5))
    for name in corruptions.names(benchmark)
    for level in range(1, levels + 1)
]


def counts():
    rows = [frames.Count("standard", seed, "clean", 0, 190, 200) for seed in (0, 1)]
    for k, (name, level) in enumerate(CONDITIONS):
        rows += [frames.Count("standard", seed, name, level, 100 + (k + seed) % 50, 200) for seed in (0, 1)]
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
    incomplete = [count for count in counts() if (count.corruption, count.severity) != ("cbar/lines", 3)]
    with pytest.raises(ValueError, match="errors of every level of cbar_candidates, missing 1: cbar/lines level 3"):
        join(incomplete, centres(), "standard")
    without = {key: value for key, value in centres().items() if key[0] != "imagenet_c/fog"}
    with pytest.raises(ValueError, match="features of every level of imagenet_c, missing 5: imagenet_c/fog level 1"):
        join(counts(), without, "standard")
    with pytest.raises(ValueError, match="of the model"):
        join(counts(), centres(), "augmix")
