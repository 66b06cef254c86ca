"""A study whose trainings bring no gain: every table is written, and no benchmark is selected."""

import numpy as np

from analysis.overlap import study as overlap_study
from analysis.overlap.measured import read_overlap

NAMES = ("noc/border", "noc/hue")


def test_without_a_defined_overlap_the_tables_are_written(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(overlap_study.log, "propagate", True)
    right = np.arange(200) < 150
    by_model = {(model, 0): right for model in ("standard", *NAMES)}
    correctness = dict.fromkeys(("clean", *NAMES), by_model)
    (tmp_path / "benchmark.json").write_text("{}")  # of an earlier run
    overlap_study.write_results(
        tmp_path, correctness, NAMES, dataset="shapes", num_classes=10, threshold=0.1, origin="no gain"
    )
    _, matrix, *_ = read_overlap(tmp_path / "overlap.csv")
    assert np.isnan(matrix[0, 1])
    written = {path.name for path in tmp_path.iterdir()}
    assert written >= {"counts.csv", "scores.csv", "overlap_long.csv", "overlap.png"}
    assert not written & {"benchmark.json", "stability.json"}
    assert "No benchmark is selected" in caplog.text


def test_near_chance_the_tables_are_written_and_flagged(tmp_path, capsys):
    few, more = np.arange(200) < 22, np.arange(200) < 30
    correctness = {
        name: {(model, 0): more if model == name else few for model in ("standard", *NAMES)} for name in NAMES
    }
    correctness["clean"] = {(model, 0): few for model in ("standard", *NAMES)}
    overlap = overlap_study.write_results(
        tmp_path, correctness, NAMES, dataset="shapes", num_classes=10, threshold=0.1, origin="near chance"
    )
    assert overlap.flags == ("weak", "weak")
    assert "standard: clean accuracy 0.1100 is near chance" in capsys.readouterr().out
    assert (tmp_path / "overlap.csv").is_file() and (tmp_path / "overlap_long.csv").is_file()
