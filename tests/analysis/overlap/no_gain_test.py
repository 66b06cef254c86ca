"""A study whose trainings bring no gain: every table is written, and no benchmark is selected."""

import numpy as np

from analysis.frames import Count
from analysis.overlap import study as overlap_study
from analysis.overlap.measured import read_overlap
from tests.analysis.made_up import write_answers

NAMES = ("noc/border", "noc/hue")


def written(folder, correct):
    """Results of a study with so many correct answers of 200: (model, corruption) -> number."""
    counts = [
        Count(model, 0, name, 0 if name == "clean" else "random", correct(model, name), 200)
        for model in ("standard", *NAMES)
        for name in ("clean", *NAMES)
    ]
    write_answers(folder, counts)
    given = {"dataset": "shapes", "num_classes": 10, "threshold": 0.1, "origin": "made up"}
    overlap, found = overlap_study.write_results(folder, NAMES, (0,), **given)
    assert {count.key: count.correct for count in found} == {count.key: count.correct for count in counts}
    return overlap


def test_without_a_defined_overlap_the_tables_are_written(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(overlap_study.log, "propagate", True)
    (tmp_path / "benchmark.json").write_text("{}")  # of an earlier run
    written(tmp_path, lambda model, name: 150)
    _, matrix, *_ = read_overlap(tmp_path / "overlap.csv")
    assert np.isnan(matrix[0, 1])
    files = {path.name for path in tmp_path.iterdir()}
    assert files >= {"counts.csv", "scores.csv", "overlap_long.csv", "overlap.png"}
    assert not files & {"benchmark.json", "stability.json"}
    assert "No benchmark is selected" in caplog.text


def test_near_chance_the_tables_are_written_and_flagged(tmp_path, capsys):
    overlap = written(tmp_path, lambda model, name: 30 if model == name else 22)
    assert overlap.flags == ("weak", "weak")
    assert "standard: clean accuracy 0.1100 is near chance" in capsys.readouterr().out
    assert (tmp_path / "overlap.csv").is_file() and (tmp_path / "overlap_long.csv").is_file()
