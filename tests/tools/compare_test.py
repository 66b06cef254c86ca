"""tools.compare on two small studies written by the test."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from analysis.overlap import overlap_matrix
from analysis.overlap.files import write_overlap, write_overlap_long

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("a", "b", "c", "d", "e")


def study(path, seed, order, seconds):
    """A study of five corruptions; two seeds differ by noise alone."""
    path.mkdir()
    shared, noise = np.random.default_rng(7), np.random.default_rng(seed)
    accuracy = np.full((6, 6), 0.5) + shared.uniform(0, 0.25, (6, 6))
    accuracy[:, 0] = 0.9
    accuracy[0, 1:] = 0.45
    accuracy[np.arange(1, 6), np.arange(1, 6)] = 0.85
    accuracy = accuracy + noise.normal(0, 0.01, accuracy.shape)
    keep = [0, *(1 + NAMES.index(name) for name in order)]
    found = overlap_matrix(accuracy[np.ix_(keep, keep)], names=order, number=10_000)
    write_overlap(path / "overlap.csv", order, found.overlap)
    write_overlap_long(path / "overlap_long.csv", found)
    (path / "timing.json").write_text(
        json.dumps({"training_seconds": {"standard|0": 100, "a|0": seconds, f"extra{seed}|0": 7}})
    )
    return found


def compare(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "tools.compare", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    return done.returncode, done.stdout, done.stderr


def test_two_studies_in_different_order(tmp_path):
    first = study(tmp_path / "one", 1, NAMES, 60)
    second = study(tmp_path / "two", 2, NAMES[::-1], 20)
    code, out, err = compare(f"--first={tmp_path / 'one'}", f"--second={tmp_path / 'two'}", "--threshold=0.4")
    assert code == 0, err
    result = json.loads((tmp_path / "two" / "comparison.json").read_text())
    pairs = np.triu_indices(5, 1)
    x, y = first.unclipped[pairs], second.unclipped[::-1, ::-1][pairs]
    assert result["matrices"]["spearman"] == pytest.approx(stats.spearmanr(x, y).statistic)
    assert result["matrices"]["mean_difference"] == pytest.approx(np.abs(x - y).mean())
    assert result["training_seconds"] == [60, 20] and "3.0 times" in out
    assert [b["threshold"] for b in result["benchmarks"]].count(0.4) == 1 and "at threshold 0.4" in out


def test_studies_of_other_corruptions_are_refused(tmp_path):
    study(tmp_path / "one", 1, NAMES, 1)
    study(tmp_path / "two", 1, NAMES[:4], 1)
    code, _, err = compare(f"--first={tmp_path / 'one'}", f"--second={tmp_path / 'two'}")
    assert code == 1 and "found only in one: e" in err and "Traceback" not in err
    code, _, err = compare(f"--first={tmp_path / 'one'}", f"--second={tmp_path / 'nothing'}")
    assert code == 1 and "nothing" in err
