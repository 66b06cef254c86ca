"""Results on disk: matrices are read back exactly, damaged ones refused; a study without gain."""

import numpy as np
import pytest

from analysis.overlap import study as overlap_study
from analysis.overlap.measured import read_overlap
from tests.analysis.made_up import counted, write_answers
from tests.analysis.matrices import noc, write_overlap, write_pairs
from tests.analysis.published import NOC


def test_a_matrix_is_read_back_exactly(tmp_path):
    path, found = tmp_path / "overlap.csv", noc(number=5000)
    matrix = found.overlap.copy()
    matrix[2, :] = matrix[:, 2] = np.nan
    write_overlap(path, NOC, matrix)
    read = read_overlap(path)
    assert read.names == NOC and read.files == (path,) and read.unclipped is None and read.se is None
    np.testing.assert_array_equal(read.overlap, matrix)
    path.write_text("# a published matrix\n" + path.read_text())
    np.testing.assert_array_equal(read_overlap(path).overlap, matrix)


def test_the_pairs_beside_a_matrix_hold_its_details(tmp_path):
    found = noc(number=5000)
    write_overlap(tmp_path / "overlap.csv", NOC, found.overlap)
    path = tmp_path / "overlap_long.csv"
    write_pairs(path, found)
    read = read_overlap(tmp_path / "overlap.csv")
    np.testing.assert_allclose(read.unclipped, found.unclipped, atol=1e-15)
    off = ~np.eye(len(NOC), dtype=bool)
    np.testing.assert_array_equal(read.se[off], found.se[off])
    assert len(read.files) == 2
    text = path.read_text()
    for wrong, message in (
        ("\n".join(line for line in text.splitlines() if "hue" not in line), "a line for every pair, found 7 missing"),
        (text + text.splitlines()[3], "every pair of two names once"),
        (text.replace("T_ij", "T"), "expected the header i,j,O,se,T_ij,T_ji,flags,se_holds, found"),
    ):
        path.write_text(wrong + "\n")
        with pytest.raises(ValueError, match=message):
            read_overlap(tmp_path / "overlap.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("corruption,a,b\na,1,0.5\n", "square matrix, found 1 rows and 2 columns"),
        ("corruption,a,b\nb,1,0.5\na,0.5,1\n", "expected the row of 'a'"),
        ("corruption,a,b\na,1,0.5\nb,0.4,1\n", r"symmetric matrix, found 0.5 for \(a, b\) and 0.4"),
        ("corruption,a,b\na,1,0.5\nb,nan,1\n", "symmetric matrix"),
        ("corruption,a,b\na,1,0.5\nb,0.5,0\n", "on the diagonal, found 0.0 for b"),
        ("corruption,a,b\na,1,-0.2\nb,-0.2,1\n", r"overlaps from 0 up, clipped as published, found -0\.2 for \(a, b\)"),
        ("corruption,a,a\na,1,0.5\na,0.5,1\n", "every name once"),
        ("corruption,a,b\na,1,x\nb,x,1\n", "expected a finite number or nan, found 'x'"),
        ("corruption,a,b\na,1,inf\nb,inf,1\n", "found 'inf'"),
        ("corruption,a,b\na,1,0.5\nb,0.5\n", "expected a finite number or nan, found ''"),
        ("a,b\n1,0\n", "expected the header corruption"),
        ("# only a comment\n", "comma-separated values, found"),
    ],
)
def test_damaged_matrices_are_refused(tmp_path, text, message):
    path = tmp_path / "overlap.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_overlap(path)
    assert str(path) in str(error.value)


NAMES = ("noc/border", "noc/hue")


def written(folder, correct):
    """Results of a study with so many correct answers of 200: (model, corruption) -> number."""
    counts = [
        counted(model, 0, name, 0 if name == "clean" else "random", correct(model, name), 200)
        for model in ("standard", *NAMES)
        for name in ("clean", *NAMES)
    ]
    write_answers(folder, counts)
    given = {"dataset": "shapes", "num_classes": 10, "threshold": 0.1, "origin": "made up"}
    overlap, found = overlap_study.write_results(folder, NAMES, (0,), **given)
    assert sorted(found) == sorted(counts)
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
