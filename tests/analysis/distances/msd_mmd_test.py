"""MSD, MMD, their spread and rank correlation, against definitions written out and simulated redraws."""

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


def test_the_minimum_is_over_transforms_and_only_corruptions_are_averaged():
    """An augmentation that seldom makes the corruption has MSD 0 however far its mean lies; not the other way round."""
    corruption = np.tile([3.0, 4.0], (50, 1))
    augmentation = np.zeros((50, 2))
    augmentation[17] = corruption[0]
    assert minimal_sample_distance(augmentation, corruption[:1])[0] == 0
    assert mean_distance(augmentation, corruption[:1])[0] == pytest.approx(5 * 49 / 50)
    # The centre of the same augmentation is its mean, which no transform reaches.
    assert minimal_sample_distance(corruption, augmentation.mean(0)[None])[0] == pytest.approx(5 * 49 / 50)


def test_mixtures_keep_msd_low_until_the_end_while_mmd_grows():
    """The paper's toy experiment, with two clouds of features in place of motion blur and impulse noise."""
    fractions = [0, 0.5, 0.9, 0.99, 1]
    rng = np.random.default_rng(0)
    blur, noise = rng.normal(size=(2, 1000, 32)) * 0.1
    blur += 1.0
    centre = rng.normal(size=(100, 32)).mean(0, keepdims=True) * 0.1
    msd, mmd = experiments.mixture_distances(blur, noise, centre, fractions)
    within, apart = np.sqrt(32 * 0.01), np.sqrt(32)
    assert (msd[:4, 0] < within).all() and msd[4, 0] > 0.7 * apart
    np.testing.assert_allclose(mmd[1:, 0], np.array(fractions[1:]) * apart, rtol=0.03)
    assert (np.diff(mmd[:, 0]) > 0).all()


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


def test_spearman_by_hand():
    assert msd_mmd.spearman([1, 2, 3], [10, 200, 3000]) == pytest.approx(1)
    assert msd_mmd.spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    # ranks 1.5, 1.5, 3 and 1, 2, 3: covariance 1.5, variances 1.5 and 2
    assert msd_mmd.spearman([0, 0, 5], [1, 2, 3]) == pytest.approx(1.5 / np.sqrt(1.5 * 2))
    assert np.isnan(msd_mmd.spearman([1, 1, 1], [1, 2, 3]))


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: minimal_sample_distance(np.zeros((3, 2)), np.zeros((2, 3))), "expected features"),
        (lambda: minimal_sample_distance(np.full((3, 2), np.nan), np.zeros((2, 2))), "finite features"),
        (lambda: minimal_sample_distance(np.zeros((0, 2)), np.zeros((2, 2))), "none of them empty"),
        (lambda: msd_mmd.Stream(np.zeros((1, 1, 1))).msd, "expected transforms in every weighting"),
        (lambda: msd_mmd.Stream(np.zeros((1, 1, 1))).add(np.zeros((2, 1, 1)), np.ones((1, 3), bool)), "members"),
        (lambda: msd_mmd.spearman([1, 2], [1, 2, 3]), "two rows"),
        (lambda: msd_mmd.spearman([1, np.nan], [1, 2]), "without NaN"),
        (lambda: msd_mmd.halves(0, 3, None), "something to halve"),
        (lambda: experiments.mixture_distances(np.ones((2, 1)), np.ones((2, 1)), np.ones((1, 1)), [1.2]), "fractions"),
        (lambda: experiments.mixture_distances(np.ones((2, 1)), np.ones((3, 1)), np.ones((1, 1)), [1]), "as many"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
