"""First-order variances of gain and overlap: binomial noise over the test images, and the jackknife
over seeds. The symbols are those of `analysis.overlap.score`.
"""

import numpy as np


def above_zero(clean: np.ndarray) -> np.ndarray:
    """Puts NaN in the place of accuracies of 0, which nothing can be divided by."""
    return np.where(clean > 0, clean, np.nan)


def binomial_gain_variance(full: np.ndarray, number: int, relative: bool) -> np.ndarray:
    """Computes the variance of each gain, SE(G)^2 = SE(R_jj)^2 + SE(R_0j)^2: [n].

    Args:
      full: accuracies [1 + n, 1 + n], clean first.
      number: test images.
      relative: whether R is relative to clean accuracy.
    """
    a, clean = full[:, 1:], above_zero(full[:, :1])
    variance = a * (1 - a) / number
    if relative:
        variance = (variance + (a / clean) ** 2 * clean * (1 - clean) / number) / clean**2
    return variance[0] + np.diag(variance[1:])


def binomial_overlap_variance(
    full: np.ndarray, robustness: np.ndarray, gain: np.ndarray, transfer: np.ndarray, number: int, relative: bool
) -> np.ndarray:
    """Computes the delta-method variance of the unclipped O: sum over the nine accuracies in it of
    (dO/dA)^2 A (1 - A) / N. Symmetric [n, n]; the diagonal means nothing.

    Args:
      full, number, relative: as of `binomial_gain_variance`.
      robustness, gain, transfer: what `analysis.overlap.score.compute` gives of `full`.
    """
    noise = full * (1 - full) / number
    clean = above_zero(full[1:, 0]) if relative else np.ones(len(gain))  # A[i,0]
    standard_clean = above_zero(full[0, 0]) if relative else 1.0
    gain = np.where(gain > 0, gain, np.nan)
    on_itself = np.diag(robustness[1:])

    # One direction, T[i->j]; rows i, columns j.
    cross = 1 / (gain[None, :] * clean[:, None])  # d / dA[i,j]
    baseline = (transfer - 1) / gain / standard_clean  # d / dA[0,j]
    self_ = -transfer / gain / clean[None, :]  # d / dA[j,j]
    # Accuracies of clean images enter both directions, so their derivatives add before squaring.
    clean_i = -robustness[1:] / (gain * clean[:, None])  # d / dA[i,0], through R[i,j]
    clean_j = transfer * on_itself / gain / clean[None, :]  # d / dA[j,0], through R[j,j]
    clean_0 = -(transfer - 1) * robustness[0] / gain / standard_clean  # d / dA[0,0]

    trained, noise_on_itself = noise[1:, 1:], np.diag(noise[1:, 1:])
    directed = cross**2 * trained + baseline**2 * noise[0, 1:] + self_**2 * noise_on_itself
    variance = directed + directed.T
    if relative:
        shared = clean_i + clean_j.T
        variance += shared**2 * noise[1:, :1] + (shared**2 * noise[1:, :1]).T
        variance += (clean_0 + clean_0.T) ** 2 * noise[0, 0]
    return variance / 4


def leave_one_out(accuracy: np.ndarray) -> np.ndarray:
    """Means of accuracies [S >= 2, ...] over all seeds but one, for each seed left out: [S,
    ...].
    """
    seeds = len(accuracy)
    return (seeds * accuracy.mean(axis=0) - accuracy) / (seeds - 1)


def jackknife_variance(left_out: np.ndarray) -> np.ndarray:
    """Jackknife variance (S - 1) / S sum_s (x_s - mean)^2 of a score x_s [S, ...] computed with
    each seed left out.
    """
    seeds = len(left_out)
    return (seeds - 1) / seeds * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0)
