"""Bootstrap of test images against plain resampling, the delta method and known truth."""

import numpy as np
import pytest

from analysis.overlap import overlap_matrix
from analysis.overlap.bootstrap import accuracies_under_resampling, bootstrap
from tests.analysis import published
from tests.analysis.overlap.score_test import by_definition
from tests.analysis.published import NOC


def simulated_bits(rng, full, number, shared=True):
    """Correctness with the given accuracies; shared difficulty correlates the answers of all models."""
    noise = rng.uniform(size=(*full.shape, number))
    if shared:
        noise = 0.5 * noise + 0.5 * rng.uniform(size=number)
        noise = noise.argsort(axis=-1).argsort(axis=-1) / number
    return noise < full[..., None]


def test_resampled_counts_are_exact():
    bits = np.random.default_rng(5).integers(0, 2, (2, 3, 3, 50))
    found = accuracies_under_resampling(bits, 20, seed=7)
    rng = np.random.default_rng(7)
    for one in found:
        chosen = rng.integers(0, 50, 50)
        np.testing.assert_allclose(one, bits[..., chosen].mean(axis=(0, 3)), rtol=1e-12)


def test_bootstrap_agrees_with_the_delta_method_on_independent_answers():
    full = published.accuracies(published.TABLE8, published.ALEXNET_NOC, NOC)
    bits = simulated_bits(np.random.default_rng(6), full, 3000, shared=False)
    found = bootstrap(bits, resamples=600)
    delta = overlap_matrix(bits.mean(axis=-1), names=NOC, number=3000)
    off = ~np.eye(8, dtype=bool)
    ratio = found.se[off] / delta.se[off]
    assert np.median(ratio) == pytest.approx(1, abs=0.05) and ratio.min() > 0.8 and ratio.max() < 1.25
    assert (found.lower <= delta.overlap + 1e-12).all() and (delta.overlap <= found.upper + 1e-12).all()
    assert (found.invalid == 0).all()
    again = bootstrap(bits, resamples=600)
    np.testing.assert_array_equal(found.samples, again.samples)


def test_bootstrap_sees_that_images_are_shared():
    full = published.accuracies(published.TABLE8, published.ALEXNET_NOC, NOC)
    bits = simulated_bits(np.random.default_rng(6), full, 3000)
    off = ~np.eye(8, dtype=bool)
    delta = overlap_matrix(bits.mean(axis=-1), names=NOC, number=3000).se[off]
    assert np.median(bootstrap(bits, resamples=300).se[off] / delta) < 0.9


def test_bootstrap_intervals_cover_the_truth():
    full = np.array([[0.8, 0.4, 0.4], [0.8, 0.7, 0.5], [0.8, 0.45, 0.7]])
    truth, rng = by_definition(full)[0, 1], np.random.default_rng(8)
    hits = 0
    for k in range(200):
        found = bootstrap(rng.uniform(size=(3, 3, 400)) < full[..., None], resamples=200, level=0.9, seed=k)
        hits += found.lower[0, 1] <= truth <= found.upper[0, 1]
    assert 0.84 <= hits / 200 <= 0.96


def test_bootstrap_of_a_forty_by_forty_study_is_fast_enough_and_marks_invalid():
    rng = np.random.default_rng(9)
    full = rng.uniform(0.3, 0.5, (41, 41))
    full[:, 0] = 0.8
    full[range(1, 41), range(1, 41)] = 0.7
    full[3, 3], full[0, 3] = 0.3, 0.6
    bits = rng.uniform(size=(41, 41, 500)) < full[..., None]
    found = bootstrap(bits, resamples=200)
    assert found.samples.shape == (200, 40, 40)
    assert found.invalid[2] == 1 and (np.delete(found.invalid, 2) == 0).all()
    assert np.isnan(found.se[2]).all() and np.isfinite(np.delete(np.delete(found.se, 2, 0), 2, 1)).all()


def test_bootstrap_refuses_what_is_not_correctness():
    with pytest.raises(ValueError, match="expected correctness of 0 and 1"):
        bootstrap(np.full((2, 2, 5), 0.5))
    with pytest.raises(ValueError, match=r"found shape \(2, 3, 5\)"):
        bootstrap(np.zeros((2, 3, 5), bool))
    with pytest.raises(ValueError, match="at least 2 resamples"):
        bootstrap(np.zeros((2, 2, 5), bool), resamples=1)
