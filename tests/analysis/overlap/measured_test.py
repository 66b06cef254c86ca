"""Matrices on disk: read back exactly, with their details, and refused where something is wrong."""

import numpy as np
import pytest

from analysis.overlap import overlap_matrix
from analysis.overlap.measured import read_overlap
from tests.analysis import published
from tests.analysis.overlap.matrices import write_overlap, write_pairs
from tests.analysis.published import ALEXNET_NOC, NOC, TABLE8


def measured_overlap():
    return overlap_matrix(published.accuracies(TABLE8, ALEXNET_NOC, NOC), names=NOC, number=5000)


def test_a_matrix_is_read_back_exactly(tmp_path):
    path, found = tmp_path / "overlap.csv", measured_overlap()
    matrix = found.overlap.copy()
    matrix[2, :] = matrix[:, 2] = np.nan
    write_overlap(path, NOC, matrix)
    read = read_overlap(path)
    assert read.names == NOC and read.files == (path,) and read.unclipped is None and read.se is None
    np.testing.assert_array_equal(read.overlap, matrix)
    path.write_text("# a published matrix\n" + path.read_text())
    np.testing.assert_array_equal(read_overlap(path).overlap, matrix)


def test_the_pairs_beside_a_matrix_hold_its_details(tmp_path):
    found = measured_overlap()
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
        ("corruption,a,a\na,1,0.5\na,0.5,1\n", "every name once"),
        ("corruption,a,b\na,1,x\nb,x,1\n", "expected a finite number or nan, found 'x'"),
        ("corruption,a,b\na,1,inf\nb,inf,1\n", "found 'inf'"),
        ("corruption,a,b\na,1,0.5\nb,0.5\n", "found ''|expected"),
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
