"""Correlations of weighted values, for bootstraps of correlations.

A bootstrap sample of N values is a row of weights: how often each value was drawn. Every statistic takes weights [R, N] and
gives R values, so an interval costs matrix products instead of a loop. The first row of weights is all ones: the
statistic of the values themselves.
"""

import numpy as np
from numpy.typing import ArrayLike

ROUNDING = 1e-24  # relative error of sums of squares


def draw(number: int, resamples: int, seed: int = 0) -> np.ndarray:
    """Draws weights float64 [1 + resamples, number]: ones, then counts of draws with replacement."""
    drawn = np.random.default_rng(seed).multinomial(number, np.full(number, 1 / number), size=resamples)
    return np.concatenate([np.ones((1, number)), drawn])


def pearson(x: ArrayLike, y: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """Computes Pearson's r [R] of x and y, both [N] or [R, N], under weights [R, N].

    Values where x or y is NaN take no part. NaN where x or y does not vary.
    """
    x, y, weights = present(x, y, weights)
    dx, dy = x - mean(x, weights), y - mean(y, weights)
    sums = [np.einsum("rn,rn,rn->r", weights, a, b) for a, b in ((dx, dx), (dy, dy), (dx, dy))]
    # Equal values differ from their mean by rounding.
    scales = [np.einsum("rn,rn,rn->r", weights, a, a) for a in (x, y)]
    varies = (sums[0] > ROUNDING * scales[0]) & (sums[1] > ROUNDING * scales[1])
    return np.where(varies, correlation(*sums), np.nan)


def correlation(of_x: np.ndarray, of_y: np.ndarray, of_both: np.ndarray) -> np.ndarray:
    """Divides a covariance by the root of both variances; NaN where a variance is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(of_both / np.sqrt(of_x * of_y), -1, 1)


def spearman(x: np.ndarray, y: np.ndarray, weights: ArrayLike) -> np.ndarray:
    """Computes Spearman's rho [R] of x and y [N] under weights [R, N]; ties share their mean rank."""
    x, y, weights = present(x, y, weights)
    return pearson(_ranks(x[0], weights), _ranks(y[0], weights), weights)


def present(x: ArrayLike, y: ArrayLike, weights: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gives x, y and weights as [R, N]; where x or y is NaN, all three are 0."""
    weights = np.asarray(weights, float)
    x, y = (np.broadcast_to(np.asarray(values, float), weights.shape) for values in (x, y))
    known = ~(np.isnan(x) | np.isnan(y))
    return np.where(known, x, 0), np.where(known, y, 0), np.where(known, weights, 0)


def mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Computes the weighted means [R, 1] of values [R, N] without NaN; NaN where all weights are 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return (weights * values).sum(axis=-1, keepdims=True) / weights.sum(axis=-1, keepdims=True)


def _ranks(values, weights):
    """Mean rank of every value among the weights[r] copies of each: [R, N]."""
    _, group = np.unique(values, return_inverse=True)
    by_group = weights @ (group[:, None] == np.arange(group.max() + 1))
    below = np.cumsum(by_group, axis=-1) - by_group
    return (below + (by_group + 1) / 2)[:, group]
