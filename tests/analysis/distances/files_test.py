"""Tables of distances and files of centres, read back and refused."""

import math

import numpy as np
import pytest

from analysis.distances.files import (
    Distance,
    read_centres,
    read_msd,
    write_centres,
    write_msd,
)

ROWS = [
    Distance("standard", "imagenet_c/fog", 1, 0.1, 0.01, 0.2, math.nan),
    Distance("standard", "imagenet_c/fog", 2, 0.3, 0.01, 0.4, 0.02),
    Distance("augmix=rotate+equalize", "imagenet_c/fog", 1, 1.0, 0.1, 2.0, 0.2),
    Distance("augmix=rotate+equalize", "imagenet_c/fog", 2, 3.0, 0.1, 4.0, 0.2),
    Distance("standard", "noc/hue", "random", 5.0, 0.1, 6.0, 0.2),
    Distance("standard", "noc/border", 0.25, 7.0, 0.1, 8.0, 0.2),
]


def test_rows_are_read_back_exactly(tmp_path):
    write_msd(tmp_path / "msd.csv", ROWS, "revision abc")
    found = read_msd(tmp_path / "msd.csv")
    assert repr(found) == repr(ROWS)  # NaN is not equal to itself
    assert [type(row.severity) for row in found] == [int, int, int, int, str, float]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "standard,imagenet_c/fog,1,0.1,0.01,0.2,nan",
            "expected every measurement once, found standard,imagenet_c/fog,1",
        ),
        ("standard,imagenet_c/fog,3,x,0.01,0.2,nan", "line 9: expected numbers"),
        ("standard,imagenet_c/fog,much,1,0.01,0.2,nan", "line 9: expected numbers"),
        ("standard,imagenet_c/fog,3,nan,0.01,0.2,nan", "distances of at least 0"),
        ("standard,imagenet_c/fog,3,-1,0.01,0.2,nan", "distances of at least 0"),
    ],
)
def test_wrong_lines_are_refused(tmp_path, line, message):
    path = tmp_path / "msd.csv"
    write_msd(path, ROWS, "comment")
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(ValueError, match=message):
        read_msd(path)


def test_centres_are_read_back_by_name_and_severity(tmp_path):
    centres = {("imagenet_c/fog", 3): np.arange(4.0), ("noc/hue", "random"): np.ones(4), ("noc/hue", 0.5): np.zeros(4)}
    write_centres(tmp_path / "features.npz", centres)
    found = read_centres(tmp_path / "features.npz")
    assert found.keys() == centres.keys()
    for key, value in centres.items():
        np.testing.assert_array_equal(found[key], value)
    with pytest.raises(FileNotFoundError, match="found no file"):
        read_centres(tmp_path / "none.npz")
    (tmp_path / "broken.npz").write_bytes(b"PK no archive")
    with pytest.raises(ValueError, match="cannot be read"):
        read_centres(tmp_path / "broken.npz")
    np.savez(tmp_path / "other.npz", other=np.ones(3))
    with pytest.raises(ValueError, match=r"called corruption\|severity"):
        read_centres(tmp_path / "other.npz")
