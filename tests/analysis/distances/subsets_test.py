"""The order of the subset experiment against its description in plain Python, ties included."""

import time

import numpy as np
import pytest

from analysis.distances import subsets


def plain(distances):
    """Rank by rank: the r-th nearest transform of each reference, by distance, if not yet
    listed.
    """
    number, references = len(distances), len(distances[0])
    nearest = [sorted(range(number), key=lambda n: distances[n][c]) for c in range(references)]  # sorted() is stable
    listed = []
    for rank in range(number):
        for c in sorted(range(references), key=lambda c: distances[nearest[c][rank]][c]):
            if nearest[c][rank] not in listed:
                listed.append(nearest[c][rank])
    return listed


@pytest.mark.parametrize("levels", [0, 3, 1])  # 0: real numbers; else so many different ones, so that most tie
@pytest.mark.parametrize(("number", "references"), [(1, 1), (7, 1), (1, 5), (40, 6), (6, 40)])
def test_order_is_the_described_one(number, references, levels):
    rng = np.random.default_rng(number + references)
    shape = (number, references)
    distances = rng.integers(0, levels, shape).astype(float) if levels else rng.random(shape)
    assert subsets.closest_first(distances).tolist() == plain(distances.tolist())


def test_rank_comes_before_distance():
    """The second nearest of a near reference is listed after the nearest of a far one."""
    assert subsets.closest_first([[1.0, 90.0], [2.0, 80.0], [70.0, 50.0]]).tolist() == [0, 2, 1]


def test_the_papers_pool_takes_seconds():
    distances = np.random.default_rng(0).random((100_000, 75))
    start = time.process_time()
    order = subsets.closest_first(distances)
    assert time.process_time() - start < 20
    assert np.array_equal(np.sort(order), np.arange(100_000))
    assert order[0] == np.unravel_index(distances.argmin(), distances.shape)[0]


def test_subsets_are_both_ends_and_a_sample():
    order = np.random.default_rng(1).permutation(50)
    rng = np.random.default_rng(2)
    assert subsets.choose(order, 3, "closest", rng).tolist() == order[:3].tolist()
    assert subsets.choose(order, 3, "farthest", rng).tolist() == order[47:].tolist()
    drawn = [subsets.choose(order, 5, "random", rng) for _ in range(400)]
    assert all(len(set(one)) == 5 for one in drawn)
    counts = np.bincount(np.concatenate(drawn), minlength=50)  # 40 each, standard deviation 6
    assert abs(counts - 40).max() < 27


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: subsets.closest_first(np.zeros((0, 3))), "expected finite distances"),
        (lambda: subsets.closest_first([[1.0, np.nan]]), "expected finite distances"),
        (lambda: subsets.choose(np.arange(3), 4, "closest", None), r"a size in 1\.\.3, found 4"),
        (lambda: subsets.choose(np.arange(3), 1, "nearest", None), "a kind among closest, farthest, random"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
