"""select_noc.py as a user runs it."""

import hashlib
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import select_noc
from analysis import overlap_files
from analysis.overlap import overlap_matrix
from tests.analysis import published
from tests.analysis.published import IMAGENET_C

ROOT = pathlib.Path(select_noc.__file__).parent
FIGURE3 = published.FIGURE3[:, :15]


def command(*flags):
    return subprocess.run(
        [sys.executable, str(ROOT / "select_noc.py"), *flags], cwd=ROOT, capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def matrix(tmp_path):
    path = tmp_path / "overlap.csv"
    overlap_files.write_overlap(path, IMAGENET_C, FIGURE3)
    return path


def test_command_prints_and_writes_the_published_selection(matrix, tmp_path):
    out = tmp_path / "new" / "chosen.json"
    done = command(f"--overlap={matrix}", "--threshold=0.2", f"--out={out}", "--sweep")
    assert done.returncode == 0, done.stderr
    winner = ["snow", "brightness", "contrast", "elastic_transform", "jpeg_compression"]
    lines = done.stdout.splitlines()
    assert lines[0] == "benchmark of 5 from 15 candidates, overlap <= 0.2"
    assert [line.split()[0] for line in lines[2:7]] == winner
    assert lines[7].split()[:2] == ["all", "0.054"]
    assert "10 set(s) of size 5; 0 more with the same mean overlap" in done.stdout
    assert "dropped (no defined overlap): none" in done.stdout
    assert any(line.split()[:3] == ["0.60", "10", "0.174"] for line in lines)
    found = json.loads(out.read_text())
    assert found["members"] == winner
    assert (found["threshold"], found["strict"]) == (0.2, False)
    assert found["mean_overlap"] == pytest.approx(0.054)
    assert found["number_of_sets"] == 10 and len(found["alternatives"]) == 9
    assert winner not in found["alternatives"]
    assert found["inputs"] == {str(matrix): hashlib.sha256(matrix.read_bytes()).hexdigest()}
    assert set(found["versions"]) == {"python", "numpy", "scipy"}
    assert len(found["sweep"]) == 21 and found["sweep"][4]["members"] == winner
    assert "at most the threshold" in found["rule"]


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (["--threshold=1.5"], 1, "expected a threshold in [0, 1], found 1.5"),
        (["--threshold=-0.1"], 1, "found -0.1"),
        (["--threshold=nan"], 1, "found nan"),
        (["--threshold=much"], 1, "much"),
        (["stray"], 1, "found ['stray']"),
    ],
)
def test_bad_flags_are_refused_without_a_traceback(matrix, flags, status, message):
    done = command(f"--overlap={matrix}", *flags)
    assert done.returncode == status
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not matrix.with_name("benchmark.json").exists()


def test_missing_and_damaged_files_are_refused_without_a_traceback(tmp_path):
    done = command(f"--overlap={tmp_path / 'none.csv'}")
    assert done.returncode == 1 and f"expected a table at {tmp_path / 'none.csv'}, found no file" in done.stderr
    path = tmp_path / "overlap.csv"
    path.write_text("corruption,a,b\na,1,0.5\n")
    done = command(f"--overlap={path}")
    assert done.returncode == 1 and "expected a square matrix, found 1 rows and 2 columns" in done.stderr
    assert "Traceback" not in done.stderr
    done = command()
    assert done.returncode != 0 and "expected --overlap=FILE" in done.stdout + done.stderr


def test_long_form_breaks_ties_and_shows_pairs_near_the_threshold(tmp_path, capsys):
    full = published.accuracies(published.TABLE7, published.ALEXNET_S4, IMAGENET_C)
    found = overlap_matrix(full, names=IMAGENET_C, number=5000)
    path = tmp_path / "overlap.csv"
    overlap_files.write_overlap(path, IMAGENET_C, found.overlap)
    alone = select_noc.run(path, 0.1)
    assert alone["mean_unclipped_overlap"] is None and alone["pairs_near_threshold"] is None
    overlap_files.write_overlap_long(tmp_path / "overlap_long.csv", found)
    both = select_noc.run(path, 0.1, strict=True)
    assert both["mean_unclipped_overlap"] < 0 == both["mean_overlap"]
    assert len(both["inputs"]) == 2
    assert "below the threshold" in both["rule"]
    assert json.loads((tmp_path / "benchmark.json").read_text()) == both
    wide = select_noc.run(path, 0.3)
    close = {frozenset(item["pair"]) for item in wide["pairs_near_threshold"]}
    members = [IMAGENET_C.index(name) for name in wide["members"]]
    expected = {
        frozenset((IMAGENET_C[i], IMAGENET_C[j]))
        for i in members
        for j in members
        if i < j and abs(found.overlap[i, j] - 0.3) <= 2 * found.se[i, j]
    }
    assert close == expected != set()
    assert "near the threshold: " in capsys.readouterr().out


def test_long_form_of_another_study_is_refused(tmp_path):
    full = published.accuracies(published.TABLE7, published.ALEXNET_S4, IMAGENET_C)
    found = overlap_matrix(full, names=IMAGENET_C)
    overlap_files.write_overlap(tmp_path / "overlap.csv", IMAGENET_C, FIGURE3)
    overlap_files.write_overlap_long(tmp_path / "overlap_long.csv", found)
    with pytest.raises(ValueError, match=r"overlap_long\.csv: expected the overlaps of the matrix beside it"):
        select_noc.run(tmp_path / "overlap.csv", 0.1)


def test_dropped_candidates_are_reported(tmp_path, capsys):
    matrix = np.array([[1, 0, np.nan], [0, 1, np.nan], [np.nan, np.nan, np.nan]])
    overlap_files.write_overlap(tmp_path / "overlap.csv", ("a", "b", "c"), matrix)
    found = select_noc.run(tmp_path / "overlap.csv", 0.1)
    assert found["members"] == ["a", "b"] and found["dropped"] == ["c"]
    assert "dropped (no defined overlap): c" in capsys.readouterr().out
