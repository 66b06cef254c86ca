"""A matrix is read with its details: alone where it is published alone, never where they are lost."""

import numpy as np
import pytest

from analysis.overlap import overlap_matrix
from analysis.overlap.files import read_measured, write_overlap, write_overlap_long


def test_a_study_whose_details_are_lost_is_refused(tmp_path):
    write_overlap(tmp_path / "overlap.csv", ("noc/hue", "noc/border"), np.array([[1, 0.25], [0.25, 1]]))
    assert read_measured(tmp_path / "overlap.csv").unclipped is None  # such as a published matrix
    (tmp_path / "counts.csv").touch()
    with pytest.raises(
        FileNotFoundError, match=r"overlap_long\.csv beside the matrix of a study, .* overlap\.py again"
    ):
        read_measured(tmp_path / "overlap.csv")


def test_a_matrix_that_lost_the_digest_its_details_have_is_refused(tmp_path):
    names, path = ("noc/hue", "noc/border"), tmp_path / "overlap.csv"
    accuracy = np.array([[0.9, 0.5, 0.4], [0.9, 0.8, 0.5], [0.9, 0.6, 0.8]])
    found = overlap_matrix(accuracy, names=names, number=1000)
    write_overlap(path, names, found.overlap, "a study")
    write_overlap_long(tmp_path / "overlap_long.csv", found, "a study")
    assert read_measured(path).unclipped is not None
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(ValueError, match=r"overlap\.csv: expected a first line with a digest"):
        read_measured(path)
