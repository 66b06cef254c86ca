"""Walks between two corruptions: those of made-up accuracies, and the streams that they make."""

import itertools

import numpy as np
import pytest

from evaluation.streams import walks

ROW, COLUMN = np.meshgrid(np.arange(21), np.arange(21), indexing="ij")
PLANE = 100 - 10 * (ROW + COLUMN) / 4
HILL = 80 * np.exp(-((ROW / 10) ** 2) - (COLUMN / 8) ** 2)


@pytest.mark.parametrize(
    "accuracy, target, start, end, number, mean",
    [
        (PLANE, 60, 15, 16, 32, 60),
        (PLANE, 40, 20, 20, 41, 40.609756),
        (PLANE, 20, 20, 20, 41, 25.609756),
        (HILL, 40, 9, 7, 17, 39.922501),
        (HILL, 20, 12, 10, 23, 19.989608),
        (HILL, 0, 20, 20, 41, 0.306244),
    ],
)
def test_walks_on_made_up_accuracies(accuracy, target, start, end, number, mean):
    path = walks.path(accuracy, target)
    assert path[0] == (start, 0) and path[-1] == (0, end) and len(path) == number == start + end + 1
    np.testing.assert_allclose(np.mean([accuracy[node] for node in path]), mean, atol=1e-6)
    steps = {(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(path)}
    assert steps <= {(-1, 0), (0, 1)}


def test_moves_of_the_plane_at_60():
    path = walks.path(PLANE, 60)
    moves = "".join("u" if b[1] > a[1] else "d" for a, b in itertools.pairwise(path))
    assert moves == "uudd" * 7 + "uud"


def test_the_second_corruption_becomes_the_first():
    size = len(walks.GRID)
    assert walks.GRID == (0, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5)
    asked = []

    def measure(first, second):
        asked.append((first, second))
        return PLANE[:size, :size]

    found = walks.walks(["a/x", "a/y", "a/z"], 5, 90, measure, 3)
    assert [(walk.first, walk.second) for walk in found] == asked
    assert all(walk.first != walk.second for walk in found)
    assert all(b.first == a.second for a, b in itertools.pairwise(found))
    stream = walks.stream(found, 40, 7, 0)
    nodes = sum(len(walk.path) for walk in found)
    assert len(stream) == 7 * nodes and len(stream.segments) == nodes
    assert all(len(set(stream.image[stream.segment == k])) == 7 for k in range(nodes))
    first = stream.segments[0].parts
    assert len(first) == 1 and first[0] == (found[0].first, walks.GRID[found[0].path[0][0]])
    last = stream.segments[len(found[0].path) - 1].parts
    assert last == ((found[0].second, walks.GRID[found[0].path[-1][1]]),)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: walks.path(np.zeros((3, 4)), 0), r"expected finite accuracies \[n, n\]"),
        (lambda: walks.path(np.full((3, 3), np.nan), 0), "expected finite accuracies"),
        (lambda: walks.walks(["a/x"], 1, 0, None, 0), "expected two corruptions or more"),
        (lambda: walks.stream([], 40, 41, 0), "expected 1 to 40 images at a node, the test images at hand, found 41"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
