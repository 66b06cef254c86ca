"""Scan files: what is written is read back, what is missing is named."""

import dataclasses

import numpy as np
import pytest

from analysis.cbar import scans
from analysis.cbar.scans import Scan


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


@pytest.fixture
def path(tmp_path, scan):
    path = tmp_path / "scans" / "run0.csv"
    scans.write_scan(path, scan, "revision abc")
    return path


def edit(path, change):
    path.write_text(change(path.read_text()))


def change_features(path, change):
    features = scans.features_path(path)
    with np.load(features) as file:
        arrays = {key: file[key] for key in file.files}
    change(arrays)
    np.savez(features, **arrays)


def test_a_scan_is_read_back_exactly(path, scan):
    found = scans.read_scan(path)
    for field in dataclasses.fields(Scan):
        before, after = getattr(scan, field.name), getattr(found, field.name)
        np.testing.assert_array_equal(np.asarray(before), np.asarray(after))
    first, *lines = path.read_text().splitlines()
    assert first.startswith("# revision abc |") and lines[:2] == [
        "role,corruption,level,error",
        f"candidate,cbar/ripple,1,{float(scan.candidate_errors[0, 0])!r}",
    ]
    assert sorted(p.name for p in path.parent.iterdir()) == ["run0.csv", "run0.npz"]


def test_missing_rows_are_named(path):
    gone = ("candidate,cbar/lines,7,", "#")  # with the digest, which tells of an edit
    edit(path, lambda text: "".join(x for x in text.splitlines(True) if not x.startswith(gone)))
    with pytest.raises(
        ValueError, match=r"expected a row for every level, found 1 missing: candidate cbar/lines level 7"
    ):
        scans.read_scan(path)


def test_missing_features_are_named(path):
    change_features(path, lambda arrays: arrays.pop("reference|imagenet_c/fog|2"))
    with pytest.raises(ValueError, match=r"run0.npz: .* found 1 missing: reference imagenet_c/fog level 2"):
        scans.read_scan(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.update({"candidate|x|1": np.zeros(4)}), "of the rows of run0.csv only, found"),
        (
            lambda a: a.update({"candidate|cbar/lines|3": np.zeros(5)}),
            r"same width .* \(5,\) for candidate cbar/lines level 3",
        ),
        (lambda a: a.update({"candidate|cbar/lines|3": np.full(4, np.nan)}), "expected finite features"),
    ],
)
def test_wrong_features_are_refused(path, change, message):
    change_features(path, change)
    with pytest.raises(ValueError, match=message):
        scans.read_scan(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("candidate,cbar/lines,1,", "canditate,cbar/lines,1,", "expected the role candidate or reference"),
        ("candidate,cbar/lines,10,", "candidate,cbar/lines,11,", "expected a level 1..10 of a candidate, found '11'"),
        ("reference,imagenet_c/fog,5,", "reference,imagenet_c/fog,6,", "expected a level 1..5 of a reference"),
        ("candidate,cbar/lines,2,", "candidate,cbar/lines,1,", "cbar/lines level 1 again"),
        ("candidate,cbar/lines,1,", "candidate,cbar/lines,1,1000", "expected an error in percent, 0..100"),
        ("candidate,cbar/lines,1,", "candidate,cbar/lines,1,x", "expected an error in percent, found"),
        ("role,", "rule,", "expected the header"),
    ],
)
def test_wrong_rows_are_refused(path, old, new, message):
    edit(path, lambda text: text.replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        scans.read_scan(path)


def test_files_that_are_absent_or_damaged_are_refused(path, tmp_path):
    with pytest.raises(FileNotFoundError, match="found no file"):
        scans.read_scan(tmp_path / "none.csv")
    with pytest.raises(ValueError, match=r"\*\.csv"):
        scans.read_scan(tmp_path / "run0.npz")
    features = scans.features_path(path)
    features.write_bytes(features.read_bytes()[:100])
    with pytest.raises(ValueError, match="cannot be read"):
        scans.read_scan(path)
    features.unlink()
    with pytest.raises(FileNotFoundError, match="expected the features of the scan at"):
        scans.read_scan(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidates": ("a", "a")}, "each once"),
        ({"candidate_errors": np.full((2, 10), 101.0)}, "in percent, 0..100"),
        ({"candidate_errors": np.full((2, 10), np.nan)}, "in percent, 0..100"),
        ({"reference_errors": np.ones((1, 4))}, r"expected errors \(1, 5\)"),
        ({"reference_features": np.ones((1, 5, 3))}, "features of one width"),
        ({"reference_features": np.full((1, 5, 4), np.inf)}, "finite features of the references"),
    ],
)
def test_scans_that_make_no_sense_are_refused(scan, change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(scan, **change)
