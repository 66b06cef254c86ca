"""A study of earlier code opens in eval.py, overlap.py and tools.report; nothing is done again.

tests/fixtures/old_study.tar.xz is a workdir of revision d01f4fd (before the rooms), with neither
figures in PDF nor lock files:

    overlap.py --config=configs/overlap_shapes.py --config.dataset.train_limit=600
    --config.dataset.test_limit=200
        --config.train.epochs=6 --config.train.batch_size=50 --config.train.learning_rate=0.05
        --config.eval.batch_size=100 --config.study.corruptions="('noc/border','noc/hue')"
"""

import pathlib
import subprocess
import sys
import tarfile

import pytest

import eval as evaluate
import overlap
from analysis import tables
from analysis.overlap.files import read_overlap
from configs import default, overlap_shapes

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIXTURE = ROOT / "tests" / "fixtures" / "old_study.tar.xz"

# eval.py of the same revision: model, severity of noc/rain -> correct answers of 200.
RAIN = {
    ("standard", 0.0): 63, ("standard", 1.0): 43,
    ("noc/border", 0.0): 48, ("noc/border", 1.0): 53,
    ("noc/hue", 0.0): 53, ("noc/hue", 1.0): 37,
}  # fmt: skip


@pytest.fixture
def workdir(tmp_path):
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "old_study"


def finished(workdir):
    """Time of writing of every file that training or evaluation made, and so must not be made
    again.
    """
    patterns = ("models/*/*/metrics.jsonl", "models/*/*/final.json", "models/*/*/checkpoints/**/*", "answers/*.npz")
    files = [path for pattern in patterns for path in workdir.glob(pattern) if path.is_file()]
    assert len(files) > 40
    return {path.relative_to(workdir): path.stat().st_mtime_ns for path in files}


def test_eval_adds_what_is_asked_for(workdir):
    before, counts = finished(workdir), tables.read_counts(workdir / "counts.csv")
    config = default.get_config()
    config.eval.update({"corruptions": ("noc/rain",), "severity": "0,1", "batch_size": 100})
    found = evaluate.run(config, workdir)
    rain = {(row.model, row.severity): row.correct for row in found if row.corruption == "noc/rain"}
    assert rain == RAIN
    assert [row for row in found if row.corruption != "noc/rain"] == counts
    assert tables.read_counts(workdir / "counts.csv") == found
    after = finished(workdir)
    assert {path: after[path] for path in before} == before
    added = sorted(str(path) for path in after.keys() - before.keys())
    assert added == ["answers/noc.rain-0.0.npz", "answers/noc.rain-1.0.npz"]


def test_overlap_finds_the_study_finished(workdir):
    before, counts = finished(workdir), tables.read_counts(workdir / "counts.csv")
    names, matrix = read_overlap(workdir / "overlap.csv")
    config = overlap_shapes.get_config()
    config.dataset.update({"train_limit": 600, "test_limit": 200})
    config.train.update({"epochs": 6, "batch_size": 50, "learning_rate": 0.05})
    config.eval.batch_size = 100
    config.study.corruptions = ("noc/border", "noc/hue")
    found = overlap.run(config, workdir)
    assert found.names == names and found.overlap.tolist() == matrix.tolist()
    assert tables.read_counts(workdir / "counts.csv") == counts
    assert finished(workdir) == before


def test_the_report_is_made(workdir):
    before = finished(workdir)
    command = [sys.executable, "-m", "tools.report", f"--workdir={workdir}", "--nosamples"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    page = (workdir / "report.html").read_text()
    assert "noc/hue" in page and "resampl" in page
    assert finished(workdir) == before
