"""Bootstrap of test images against plain resampling, the delta method and known truth."""

import numpy as np
import pytest

from analysis.overlap import overlap_matrix
from analysis.overlap.uncertainty import resample_accuracies, standard_errors
from tests.analysis import published
from tests.analysis.overlap.matrices import by_definition
from tests.analysis.published import NOC


def simulated_bits(rng, full, number, shared=True):
    """Correctness with the given accuracies; shared difficulty correlates the answers of all models."""
    noise = rng.uniform(size=(*full.shape, number))
    if shared:
        noise = 0.5 * noise + 0.5 * rng.uniform(size=number)
        noise = noise.argsort(axis=-1).argsort(axis=-1) / number
    return noise < full[..., None]


def resampled_errors(bits, resamples, seed=0):
    """Errors of one training, from its bits [1 + n, 1 + n, N]."""
    return standard_errors(bits[None], resamples, seed)


def test_resampled_counts_are_exact():
    bits = np.random.default_rng(5).integers(0, 2, (2, 3, 3, 50))
    resampled = resample_accuracies(bits, 20, seed=7)
    rng = np.random.default_rng(7)
    for accuracy in resampled:
        images = rng.integers(0, 50, 50)
        np.testing.assert_allclose(accuracy, bits[..., images].mean(axis=(0, 3)), rtol=1e-12)


def test_bootstrap_agrees_with_the_delta_method_on_independent_answers():
    full = published.accuracies(published.TABLE8, published.ALEXNET_NOC, NOC)
    bits = simulated_bits(np.random.default_rng(6), full, 3000, shared=False)
    errors = resampled_errors(bits, 600)
    delta = overlap_matrix(bits.mean(axis=-1), names=NOC, number=3000)
    off = ~np.eye(8, dtype=bool)
    ratio = errors.overlap[off] / delta.se[off]
    assert np.median(ratio) == pytest.approx(1, abs=0.05) and ratio.min() > 0.8 and ratio.max() < 1.25
    lower, upper = np.percentile(errors.unclipped_samples, (2.5, 97.5), axis=0)
    assert (lower <= delta.unclipped + 1e-12).all() and (delta.unclipped <= upper + 1e-12).all()
    again = resampled_errors(bits, 600)
    np.testing.assert_array_equal(errors.unclipped_samples, again.unclipped_samples)


def test_bootstrap_sees_that_images_are_shared():
    full = published.accuracies(published.TABLE8, published.ALEXNET_NOC, NOC)
    bits = simulated_bits(np.random.default_rng(6), full, 3000)
    off = ~np.eye(8, dtype=bool)
    delta = overlap_matrix(bits.mean(axis=-1), names=NOC, number=3000).se[off]
    assert np.median(resampled_errors(bits, 300).overlap[off] / delta) < 0.9


def test_bootstrap_intervals_cover_the_truth():
    full = np.array([[0.8, 0.4, 0.4], [0.8, 0.7, 0.5], [0.8, 0.45, 0.7]])
    truth, rng = by_definition(full)[0, 1], np.random.default_rng(8)
    hits = 0
    for k in range(200):
        errors = resampled_errors(rng.uniform(size=(3, 3, 400)) < full[..., None], 200, seed=k)
        lower, upper = np.percentile(np.maximum(errors.unclipped_samples[:, 0, 1], 0), (5, 95))
        hits += lower <= truth <= upper
    assert 0.84 <= hits / 200 <= 0.96


def test_bootstrap_of_a_forty_by_forty_study_is_fast_enough_and_marks_invalid():
    rng = np.random.default_rng(9)
    full = rng.uniform(0.3, 0.5, (41, 41))
    full[:, 0] = 0.8
    full[range(1, 41), range(1, 41)] = 0.7
    full[3, 3], full[0, 3] = 0.3, 0.6
    errors = resampled_errors(rng.uniform(size=(41, 41, 500)) < full[..., None], 200)
    assert errors.unclipped_samples.shape == (200, 40, 40)
    undefined = np.isnan(errors.unclipped_samples).all(axis=(0, 2))
    assert undefined[2] and not np.delete(undefined, 2).any()
    assert np.isnan(errors.overlap[2]).all()
    assert np.isfinite(np.delete(np.delete(errors.overlap, 2, 0), 2, 1)).all()


def test_bootstrap_refuses_what_is_not_correctness():
    with pytest.raises(ValueError, match="expected correctness of 0 and 1"):
        resample_accuracies(np.full((2, 2, 5), 0.5), 10)
    with pytest.raises(ValueError, match=r"found shape \(2, 3, 5\)"):
        resample_accuracies(np.zeros((2, 3, 5), bool), 10)
    with pytest.raises(ValueError, match="at least 2 resamples"):
        resample_accuracies(np.zeros((2, 2, 5), bool), 1)
