"""The table of classes, and its interval against the roots of its definition."""

import numpy as np
import pytest

from analysis import class_accuracies, lines


@pytest.mark.parametrize(("correct", "number"), [(0, 13), (13, 13), (5, 20), (1, 1)])
def test_the_ends_of_the_interval_are_shares_that_are_just_not_excluded(correct, number):
    """At both ends s, |p - s| is 1.96 standard errors sqrt(s (1 - s) / n) of s itself."""
    for end in class_accuracies.interval(correct, number):
        assert 0 <= round(end, 12) <= 1
        assert abs(correct / number - end) == pytest.approx(
            1.959964 * max(0, end * (1 - end) / number) ** 0.5, abs=1e-6
        )


def test_classes_are_tabulated(tmp_path):
    labels = np.array([2, 0, 2, 2, 0])
    correct = np.array([True, False, False, True, False])
    class_accuracies.write_classes(tmp_path / "classes.csv", correct, labels, ["tench, Tinca", "none", "cat"], "tiny")
    assert lines.sealed((tmp_path / "classes.csv").read_text())
    rows = [fields for _, fields in lines.read_lines(tmp_path / "classes.csv", class_accuracies.HEADER)]
    assert [row[:2] for row in rows] == [["tench_Tinca", "2"], ["cat", "3"]]
    assert [float(row[2]) for row in rows] == pytest.approx([0, 2 / 3])
    assert all(float(row[3]) <= float(row[2]) <= float(row[4]) for row in rows)
