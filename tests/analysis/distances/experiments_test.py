"""The experiments around MSD: the order of subsets against its description in plain Python, spreads against loops."""

import statistics
import time

import numpy as np
import pytest

from analysis.distances import experiments

IMAGES, DRAWS = (2, 5), (1, 3, 4)


def plain(distances):
    """Rank by rank: the r-th nearest transform of each reference, by distance, if not yet listed."""
    number, references = len(distances), len(distances[0])
    nearest = [sorted(range(number), key=lambda n: distances[n][c]) for c in range(references)]  # sorted() is stable
    listed = []
    for rank in range(number):
        for c in sorted(range(references), key=lambda c: distances[nearest[c][rank]][c]):
            if nearest[c][rank] not in listed:
                listed.append(nearest[c][rank])
    return listed


@pytest.mark.parametrize("levels", [0, 3, 1])  # 0: real numbers; else this many different values, so that most tie
@pytest.mark.parametrize(("number", "references"), [(1, 1), (7, 1), (1, 5), (40, 6), (6, 40)])
def test_order_is_the_described_one(number, references, levels):
    rng = np.random.default_rng(number + references)
    shape = (number, references)
    distances = rng.integers(0, levels, shape).astype(float) if levels else rng.random(shape)
    assert experiments.closest_first(distances).tolist() == plain(distances.tolist())


def test_rank_comes_before_distance():
    """The second nearest of a near reference is listed after the nearest of a far one."""
    assert experiments.closest_first([[1.0, 90.0], [2.0, 80.0], [70.0, 50.0]]).tolist() == [0, 2, 1]


def test_the_papers_pool_takes_seconds():
    distances = np.random.default_rng(0).random((100_000, 75))
    start = time.process_time()
    order = experiments.closest_first(distances)
    assert time.process_time() - start < 20
    assert np.array_equal(np.sort(order), np.arange(100_000))
    assert order[0] == np.unravel_index(distances.argmin(), distances.shape)[0]


def test_subsets_are_both_ends_and_a_sample():
    order = np.random.default_rng(1).permutation(50)
    rng = np.random.default_rng(2)
    assert experiments.choose(order, 3, "closest", rng).tolist() == order[:3].tolist()
    assert experiments.choose(order, 3, "farthest", rng).tolist() == order[47:].tolist()
    drawn = [experiments.choose(order, 5, "random", rng) for _ in range(400)]
    assert all(len(set(one)) == 5 for one in drawn)
    counts = np.bincount(np.concatenate(drawn), minlength=50)  # 40 each, standard deviation 6
    assert abs(counts - 40).max() < 27


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: experiments.closest_first(np.zeros((0, 3))), "expected finite distances"),
        (lambda: experiments.closest_first([[1.0, np.nan]]), "expected finite distances"),
        (lambda: experiments.choose(np.arange(3), 4, "closest", None), r"a size in 1\.\.3, found 4"),
        (lambda: experiments.choose(np.arange(3), 1, "nearest", None), "a kind among closest, farthest, random"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_centres_are_those_of_the_first_draws():
    rng = np.random.default_rng(0)
    transform, draws = rng.normal(size=(2, 7)), rng.normal(size=(4, 2, 7))
    found = experiments.nested_distances(transform.astype(np.float32), draws.astype(np.float32), DRAWS)
    assert found.shape == (2, 3)
    for g in range(2):
        for j, number in enumerate(DRAWS):
            centre = sum(draws[k, g] for k in range(number)) / number
            assert found[g, j] == pytest.approx(np.linalg.norm(transform[g] - centre), rel=1e-5)


def test_spreads_by_their_definition():
    distances = np.random.default_rng(1).uniform(1, 2, (3, 6, 2, 3))
    rows = experiments.spreads(distances, IMAGES, DRAWS)
    assert [row[:4] for row in rows] == [(n, m, 3, 6) for n in IMAGES for m in DRAWS]
    for row in rows:
        cells = distances[:, :, IMAGES.index(row.images), DRAWS.index(row.draws)].tolist()
        relative = [100 * statistics.stdev(cell) / statistics.mean(cell) for cell in cells]
        assert row.distance == pytest.approx(statistics.mean(map(statistics.mean, cells)))
        assert row.spread == pytest.approx(statistics.mean(relative))
        assert row.spread_error == pytest.approx(statistics.stdev(relative) / 3**0.5)
    text = experiments.spreads_text(rows)
    assert f"{rows[-1].spread:.1f} ({rows[-1].spread_error:.1f})" in text.splitlines()[-1]


def test_what_has_no_spread_is_refused():
    with pytest.raises(ValueError, match="at least 2 resamplings, found 1"):
        experiments.spreads(np.ones((3, 1, 2, 3)), IMAGES, DRAWS)
    with pytest.raises(ValueError, match=r"\[pairs, resamplings, 2, 3\], found shape \(3, 6, 3, 2\)"):
        experiments.spreads(np.ones((3, 6, 3, 2)), IMAGES, DRAWS)
