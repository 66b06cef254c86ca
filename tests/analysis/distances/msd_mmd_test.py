"""MSD, MMD, their spread, rank correlation and experiments, against definitions and simulated redraws."""

import statistics
import time

import numpy as np
import pytest
import scipy.stats

from analysis.distances import experiments, msd_mmd


def features(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def minimal_sample_distance(samples, centres):
    return msd_mmd.measure_distances(samples, centres).msd[0]


def mean_distance(samples, centres):
    return msd_mmd.measure_distances(samples, centres).mmd[0]


def test_msd_and_mmd_are_their_definitions():
    samples, centres = features(0, 40, 7), features(1, 5, 7)
    msd = [min(np.sqrt(sum((a - c) ** 2)) for a in samples) for c in centres]
    mmd = [np.sqrt(sum((sum(samples) / 40 - c) ** 2)) for c in centres]
    np.testing.assert_allclose(minimal_sample_distance(samples, centres), msd, rtol=1e-12)
    np.testing.assert_allclose(mean_distance(samples, centres), mmd, rtol=1e-12)


def test_near_and_far_from_the_origin_are_equally_exact():
    """Distances come from differences: a common offset, a thousand times the distance, costs no digits that matter."""
    samples, centres = features(0, 40, 7), features(1, 5, 7)
    there = minimal_sample_distance(samples + 1e3, centres + 1e3)
    np.testing.assert_allclose(there, minimal_sample_distance(samples, centres), rtol=1e-9)


@pytest.mark.parametrize("chunk", [1, 7, 40])
def test_streams_equal_the_whole(chunk):
    samples, centres = features(0, 40, 3, 7), features(1, 3, 5, 7)
    members = msd_mmd.halves(40, 2, np.random.default_rng(2))
    stream = msd_mmd.Stream(centres)
    for start in range(0, 40, chunk):
        stream.add(samples[start : start + chunk], members[:, start : start + chunk])
    for g in range(3):
        own = samples[members[g], g]
        np.testing.assert_allclose(stream.msd[g], minimal_sample_distance(own, centres[g]), rtol=1e-12)
        np.testing.assert_allclose(stream.mmd[g], mean_distance(own, centres[g]), rtol=1e-12)
    assert stream.number.tolist() == [40, 20, 20]


def test_halves_are_halves_and_row_zero_is_all():
    rng = np.random.default_rng(0)
    members = msd_mmd.halves(11, 400, rng)
    assert members[0].all() and (members[1:].sum(1) == 5).all()
    # Every member is in a half with probability 5/11; 400 halves have a standard error of .025.
    np.testing.assert_allclose(members[1:].mean(0), 5 / 11, atol=5 * 0.025)
    weights = msd_mmd.half_weights(11, 3, rng)
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(weights[0], 1 / 11)
    assert msd_mmd.half_weights(1, 2, rng).tolist() == [[1], [1], [1]]


def test_spread_over_halves_is_the_spread_of_redrawn_images_and_draws():
    """Figure 6: the standard deviation when images and draws are drawn anew, found from one set of them."""
    rng = np.random.default_rng(0)
    images, draws, width = 100, 100, 16
    apart = np.full(width, 0.5)

    def measure():
        """Feature of one augmentation [images, D] and of draws of a corruption [draws, images, D], same images."""
        shared = rng.normal(size=(images, width))  # differences between images that both see
        own = 0.6 * rng.normal(size=(images, width))
        drawn = rng.normal(size=(draws, 1, width)) + 0.3 * rng.normal(size=(draws, images, width))
        return shared, shared + own + apart + drawn

    def distance(augmentation, corruption):
        return np.linalg.norm(augmentation.mean(0) - corruption.mean((0, 1)))

    redrawn = np.std([distance(*measure()) for _ in range(150)], ddof=1)
    found = []
    for _ in range(6):
        augmentation, corruption = measure()
        image_weights = msd_mmd.half_weights(images, 60, rng)
        draw_weights = msd_mmd.half_weights(draws, 60, rng)
        centres = np.einsum("gk,gi,kid->gd", draw_weights, image_weights, corruption, optimize=True)
        stream = msd_mmd.Stream(centres[:, None])
        stream.add((image_weights @ augmentation)[None])
        assert stream.msd[0, 0] == pytest.approx(distance(augmentation, corruption), rel=1e-5)
        found.append(msd_mmd.spread(stream.msd)[0])
    assert np.mean(found) == pytest.approx(redrawn, rel=0.2)


def test_spread_needs_two_halves():
    assert np.isnan(msd_mmd.spread(np.ones((2, 3)))).all()
    np.testing.assert_allclose(msd_mmd.spread([[9.0], [1.0], [3.0]]), [np.sqrt(2)])


@pytest.mark.parametrize("seed", range(5))
def test_spearman_is_scipys_with_average_ranks(seed):
    x, y = np.random.default_rng(seed).integers(0, 6, (2, 20))  # many ties
    assert msd_mmd.spearman(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-12)
    assert np.isnan(msd_mmd.spearman(np.ones(20), y))


def test_intervals_of_spearman_hold_the_truth_at_their_rate():
    """For pairs with correlation .7 (rank correlation 6/pi asin .35), about nine in ten intervals contain it."""
    rng = np.random.default_rng(0)
    truth = 6 / np.pi * np.arcsin(0.35)
    held = []
    for seed in range(60):
        x = rng.normal(size=40)
        y = 0.7 * x + np.sqrt(1 - 0.49) * rng.normal(size=40)
        lower, upper = msd_mmd.spearman_interval(x, y, resamples=200, seed=seed)
        held.append(lower <= truth <= upper)
    assert 0.8 <= np.mean(held) < 1


def test_intervals_are_undefined_where_most_resamples_are_constant():
    assert all(np.isnan(msd_mmd.spearman_interval([1, 1, 1, 2], [1, 1, 1, 1])))


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
