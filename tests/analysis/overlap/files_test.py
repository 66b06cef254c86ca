"""A matrix is read with its details: alone where it is published alone, never where they are lost."""

import numpy as np
import pytest

from analysis.overlap.files import read_measured, write_overlap


def test_a_study_whose_details_are_lost_is_refused(tmp_path):
    write_overlap(tmp_path / "overlap.csv", ("noc/hue", "noc/border"), np.array([[1, 0.25], [0.25, 1]]))
    assert read_measured(tmp_path / "overlap.csv").unclipped is None  # such as a published matrix
    (tmp_path / "counts.csv").touch()
    with pytest.raises(
        FileNotFoundError, match=r"overlap_long\.csv beside the matrix of a study, .* overlap\.py again"
    ):
        read_measured(tmp_path / "overlap.csv")
