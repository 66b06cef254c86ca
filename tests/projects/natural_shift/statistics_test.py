"""Statistics under weights against SciPy and NumPy on repeated samples."""

import numpy as np
import pytest
from scipy import stats

from projects.natural_shift import prediction


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    x = rng.normal(50, 10, 40).round()  # with ties
    return x, x + rng.normal(0, 8, 40), prediction.draw(40, 25, seed=1)


def test_weights_are_ones_and_then_samples_with_replacement():
    weights = prediction.draw(7, 200)
    assert weights.shape == (201, 7) and (weights[0] == 1).all()
    assert (weights.sum(axis=1) == 7).all() and (weights == weights.round()).all()
    assert abs((weights[1:] == 0).mean() - (6 / 7) ** 7) < 0.05
    assert (weights == prediction.draw(7, 200)).all() and (weights != prediction.draw(7, 200, seed=1)).any()


@pytest.mark.parametrize(
    "statistic, reference",
    [
        (prediction.pearson, lambda x, y: stats.pearsonr(x, y)[0]),
        (prediction.spearman, lambda x, y: stats.spearmanr(x, y)[0]),
        (lambda *given: np.transpose(prediction.line(*given)), lambda x, y: np.polyfit(x, y, 1)),
        (lambda x, y, weights: prediction.covariances([x, y], weights), lambda x, y: np.cov([x, y], ddof=0)),
    ],
)
def test_statistics_are_those_of_repeated_samples(sample, statistic, reference):
    x, y, weights = sample
    expected = [reference(*(np.repeat(values, row.astype(int)) for values in (x, y))) for row in weights]
    np.testing.assert_allclose(statistic(x, y, weights), expected, atol=1e-9)


def test_models_without_a_value_take_no_part(sample):
    x, y, weights = sample
    x[3], y[5] = np.nan, np.nan
    kept = np.delete(np.arange(40), [3, 5])
    for statistic in (prediction.pearson, prediction.spearman):
        np.testing.assert_allclose(
            statistic(x, y, weights), statistic(x[kept], y[kept], weights[:, kept]), rtol=0, atol=1e-12
        )


def test_what_does_not_vary_has_no_correlation_and_no_line():
    for value in (0.1, 80.3, np.nan):
        given = np.full(5, value), np.arange(5.0), np.ones((1, 5))
        assert np.isnan(prediction.pearson(*given)).all() and np.isnan(prediction.line(*given)[0]).all()


def test_the_interval_is_about_that_of_fishers_transformation():
    x, noise = np.random.default_rng(0).normal(size=(2, 115))
    y = 0.75 * x + noise
    found = prediction.estimate(prediction.pearson(x, y, prediction.draw(115, 2000)))
    low, high = np.tanh(np.arctanh(found["value"]) + np.array([-1, 1]) * 1.96 / np.sqrt(112))
    assert found["value"] == pytest.approx(stats.pearsonr(x, y)[0])
    assert (found["low"], found["high"]) == (pytest.approx(low, abs=0.05), pytest.approx(high, abs=0.05))


def test_an_interval_takes_half_of_the_resamples_and_a_p_three_models():
    assert np.isnan(prediction.estimate([0.5, np.nan, np.nan, 0.4])["low"])
    assert prediction.estimate([0.5, 0.3, np.nan, 0.4])["low"] == pytest.approx(0.3025)
    assert np.isnan(prediction.estimate([np.nan, np.nan])["high"])
    assert prediction.p_value(1.0, 10) == 0
    assert np.isnan(prediction.p_value(0.5, 2))
