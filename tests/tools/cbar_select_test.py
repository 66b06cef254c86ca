"""tools.cbar --step=select as a user runs it."""

import json
import sys

import numpy as np
import pytest

from analysis.cbar import half_sets, scans
from tests import processes
from tools import cbar

NAMES = tuple(f"cbar/c{k:02d}" for k in range(13))
REFERENCES = ("imagenet_c/fog", "imagenet_c/frost", "imagenet_c/saturate")
FAR = NAMES[3:]  # the ten that lie far from the references


def make_scan(seed):
    rng = np.random.default_rng(seed)
    errors = np.linspace(12, 40, 10) + rng.normal(0, 2, (len(NAMES), 10))
    features = rng.normal(0, 0.1, (len(NAMES), 10, 6)).astype(np.float32)
    features[3:] += 2
    return scans.Scan(
        NAMES,
        errors,
        features,
        REFERENCES,
        np.linspace(15, 40, 5) + rng.normal(0, 1, (3, 5)),
        rng.normal(0, 0.1, (3, 5, 6)).astype(np.float32),
    )


@pytest.fixture(scope="module")
def folder_of_scans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scans")
    for seed in range(2):
        scans.write_scan(folder / f"run{seed}.npz", make_scan(seed))
    return folder


def command(*flags):
    return processes.run([sys.executable, "-m", "tools.cbar", "--step=select", *flags])


def test_command_chooses_the_distant_corruptions_and_writes_them(folder_of_scans, tmp_path):
    out = tmp_path / "new" / "chosen.json"
    done = command(f"--scan={folder_of_scans}/run*.npz", "--target=26", f"--out={out}")
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert set(found["members"]) == set(FAR)
    assert [row["name"] for row in found["ranking"]][:10] == list(found["members"])
    assert abs(found["error"] - 26) < 0.26 and found["target"] == 26
    for name, levels in found["members"].items():
        assert f"{name}  levels {', '.join(map(str, levels))}" in done.stdout
    # The errors of the chosen levels, from the run they were chosen in, average to the benchmark's.
    scan = scans.read_scan(found["severities_from"])
    chosen = [scan.candidate_errors[NAMES.index(n), k - 1] for n, levels in found["members"].items() for k in levels]
    assert len(chosen) == 50 and np.mean(chosen) == pytest.approx(found["error"])
    table = half_sets.group_table(scan)
    assert all(list(levels) in table.levels[NAMES.index(n)].tolist() for n, levels in found["members"].items())
    assert len(found["runs"]) == 2 and found["runs"][0]["references"] == list(REFERENCES[:2])
    assert len(found["inputs"]) == 2 and f"written to {out}" in done.stdout
    assert out.with_suffix(".png").stat().st_size > 1000


def test_a_seed_gives_one_result(folder_of_scans, tmp_path):
    paths = [folder_of_scans / "run0.npz", folder_of_scans / "run1.npz"]
    first, again, other = (cbar.select(paths, 26, seed, tmp_path / "o.json") for seed in (0, 0, 1))
    for result in (first, again, other):
        result.pop("written")
    assert first == again
    assert first["ranking"] != other["ranking"]


@pytest.mark.parametrize(
    ("scan", "target", "message"),
    [
        ("nowhere/run*.npz", 26, "expected scans at nowhere/run\\*.npz, found no file"),
        ("nowhere.npz", 26, "expected a scan at nowhere.npz, found no file"),
        ("{scans}/run0.npz", 90, "meet the target error"),
        ("{scans}/run0.npz", -1, "expected a target above 0"),
    ],
)
def test_what_is_wrong_is_refused(folder_of_scans, scan, target, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        cbar.select(cbar.listed([scan.format(scans=folder_of_scans)]), target)
    assert not (folder_of_scans / "cbar_benchmark.json").exists()


def test_missing_flags_are_named():
    done = command("--target=26")
    assert done.returncode != 0 and "expected --scan=FILE and --target=PERCENT" in done.stdout + done.stderr


def test_runs_of_different_candidates_are_refused(folder_of_scans, tmp_path):
    scan = make_scan(2)
    other = scans.Scan(
        (*NAMES[:-1], "cbar/other"),
        scan.candidate_errors,
        scan.candidate_features,
        scan.references,
        scan.reference_errors,
        scan.reference_features,
    )
    scans.write_scan(tmp_path / "other.npz", other)
    with pytest.raises(ValueError, match=r"same candidates in every run, found \['cbar/c12', 'cbar/other'\]"):
        cbar.select([folder_of_scans / "run0.npz", tmp_path / "other.npz"], 26, 0, tmp_path / "o.json")
