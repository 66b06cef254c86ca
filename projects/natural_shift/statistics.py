"""Correlations and lines under resampled models.

A bootstrap sample of N models is a row of weights: how often each model was drawn. Every statistic takes weights [R, N] and
gives R values, so an interval costs matrix products instead of a loop. The first row of weights is all ones: the
statistic of the models themselves.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.frames import percentile_interval

_ROUNDING = 1e-24  # relative error of sums of squares


def draw(number: int, resamples: int, seed: int = 0) -> np.ndarray:
    """Draws weights float64 [1 + resamples, number]: ones, then counts of draws with replacement."""
    drawn = np.random.default_rng(seed).multinomial(number, np.full(number, 1 / number), size=resamples)
    return np.concatenate([np.ones((1, number)), drawn])


def estimate(values: ArrayLike, level: float = 0.95) -> dict[str, float]:
    """Makes {value, low, high} of values [1 + R]: the first one, and the interval of the others.

    The ends are NaN where fewer than half of the resamples define the statistic.
    """
    values = np.asarray(values, float)
    low, high = percentile_interval(values[1:], level, known=0.5)
    return {"value": float(values[0]), "low": low, "high": high}


def covariances(columns: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """Computes the covariances of V columns [V, N] without NaN under weights [R, N]: [R, V, V]."""
    columns, weights = np.asarray(columns, float), np.asarray(weights, float)
    columns = columns - columns.mean(axis=1, keepdims=True)  # differences of large squares lose digits
    total = weights.sum(axis=1)[:, None]
    means = weights @ columns.T / total
    result = np.empty((len(weights), len(columns), len(columns)))
    for i, column in enumerate(columns):  # one at a time: [R, N] in memory, not [R, V, N]
        result[:, i] = (weights * column) @ columns.T / total - means[:, i, None] * means
    return result


def pearson(x: ArrayLike, y: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """Computes Pearson's r [R] of x and y, both [N] or [R, N], under weights [R, N].

    Models where x or y is NaN take no part. NaN where x or y does not vary.
    """
    x, y, weights = _present(x, y, weights)
    dx, dy = x - _mean(x, weights), y - _mean(y, weights)
    sums = [np.einsum("rn,rn,rn->r", weights, a, b) for a, b in ((dx, dx), (dy, dy), (dx, dy))]
    # Equal values differ from their mean by rounding.
    scales = [np.einsum("rn,rn,rn->r", weights, a, a) for a in (x, y)]
    varies = (sums[0] > _ROUNDING * scales[0]) & (sums[1] > _ROUNDING * scales[1])
    return np.where(varies, correlation(*sums), np.nan)


def correlation(of_x: np.ndarray, of_y: np.ndarray, of_both: np.ndarray) -> np.ndarray:
    """Divides a covariance by the root of both variances; NaN where a variance is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(of_both / np.sqrt(of_x * of_y), -1, 1)


def p_value(r: float, number: int) -> float:
    """Computes the two-sided p of r = 0 over `number` models, by Student's t; NaN below 3 models."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(2 * stats.t.sf(abs(r) * np.sqrt((number - 2) / np.float64(1 - r * r)), number - 2))


def spearman(x: np.ndarray, y: np.ndarray, weights: ArrayLike) -> np.ndarray:
    """Computes Spearman's rho [R] of x and y [N] under weights [R, N]; ties share their mean rank."""
    x, y, weights = _present(x, y, weights)
    return pearson(_ranks(x[0], weights), _ranks(y[0], weights), weights)


def line(x: ArrayLike, y: ArrayLike, weights: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Fits y = slope x + intercept by least squares under weights [R, N]: (slope [R], intercept [R]).

    Models where x or y is NaN take no part. NaN where fewer than two different x are left.
    """
    x, y, weights = _present(x, y, weights)
    centre_x, centre_y = _mean(x, weights), _mean(y, weights)
    dx, dy = x - centre_x, y - centre_y
    variance = (weights * dx * dx).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        varies = variance > _ROUNDING * (weights * x * x).sum(axis=-1)
        slope = np.where(varies, (weights * dx * dy).sum(axis=-1) / variance, np.nan)
    return slope, centre_y[..., 0] - slope * centre_x[..., 0]


def _present(x, y, weights):
    """x, y and weights as [R, N]; a model with NaN has weight and values 0."""
    weights = np.asarray(weights, float)
    x, y = (np.broadcast_to(np.asarray(values, float), weights.shape) for values in (x, y))
    present = ~(np.isnan(x) | np.isnan(y))
    return np.where(present, x, 0), np.where(present, y, 0), np.where(present, weights, 0)


def _mean(values, weights):
    with np.errstate(invalid="ignore", divide="ignore"):
        return (weights * values).sum(axis=-1, keepdims=True) / weights.sum(axis=-1, keepdims=True)


def _ranks(values, weights):
    """Mean rank of every model among the weights[r] copies of each: [R, N]."""
    _, group = np.unique(values, return_inverse=True)
    by_group = weights @ (group[:, None] == np.arange(group.max() + 1))
    below = np.cumsum(by_group, axis=-1) - by_group
    return (below + (by_group + 1) / 2)[:, group]
