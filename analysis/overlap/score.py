"""Overlap: does robustness to one corruption bring robustness to another?

Model 0 is standard, model i was trained with corruption i; A[m,c] is the accuracy of model m on corruption c, A[m,0]
on clean images.

    R[m,c]    = A[m,c] / A[m,0]                             robustness
    G[j]      = R[j,j] - R[0,j]                             gain
    T[i->j]   = (R[i,j] - R[0,j]) / G[j]                    directed transfer, trained with i,
                                                            tested on j
    O[i,j]    = max(0, (T[i->j] + T[j->i]) / 2)             overlap; O[i,i] = 1

Source: Laugros, Caplier, Ospici, "Using the Overlapping Score to Improve Corruption Benchmarks" (2021). The code of their
follow-up (BMVC 2021) has A in the place of R: clean accuracies of 1 give that.

A benchmark is balanced where robustness to each of its corruptions counts about equally; else a family of overlapping
corruptions dominates the mean (the same authors, "Increasing the Coverage and Balance of Robustness Benchmarks by Using
Non-Overlapping Corruptions", Table 2 and Fig. 3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from analysis import frames

WEAK_GAIN = 0.03
_SIGMAS = 3
_CHANCE_MARGIN = 0.05
_CLEAN_DROP = 0.1
_ROUNDING = 8 * np.finfo(float).eps
"""Differences of R below this are rounding, where only accuracies are known: ratios of counts of N images differ by 1 / N^2 or more."""
_WHOLE = 1e-6


@dataclass(frozen=True, eq=False)
class Overlap:
    """Overlap of n corruptions with the numbers behind it. Directed arrays: [trained, tested].

    Attributes:
      names: corruptions, n of them.
      overlap: O, float64 [n, n]; rows and columns of invalid corruptions are NaN.
      unclipped: (T[i->j] + T[j->i]) / 2 before the maximum with 0.
      se: standard error of `unclipped` (0 on the diagonal; NaN without a number of images or seeds). First order: up
        to an eighth too small where a gain is only a few of its own standard errors (`analysis.overlap.uncertainty`
        has no such limit).
      transfer: T; column j is NaN where j is invalid.
      gain: G, [n].
      gain_se: standard error of G, [n].
      robustness: R [1 + n, n], row 0 standard.
      clean_accuracy: A[m, 0], [1 + n].
      flags: for each corruption "", "weak" (0 < G < max(.03, 3 SE), a standard model near chance, or fewer than 20 test
        images) or "invalid" (G <= 0, or a clean accuracy of 0).
      warnings: sentences for the reader.
      number: test images, or None.
      seeds: number of trainings averaged.
    """

    names: tuple[str, ...]
    overlap: np.ndarray
    unclipped: np.ndarray
    se: np.ndarray
    transfer: np.ndarray
    gain: np.ndarray
    gain_se: np.ndarray
    robustness: np.ndarray
    clean_accuracy: np.ndarray
    flags: tuple[str, ...]
    warnings: tuple[str, ...]
    number: int | None
    seeds: int


def overlap_matrix(
    accuracy: ArrayLike,
    clean_accuracy: ArrayLike | None = None,
    *,
    names: Sequence[str],
    number: int | None = None,
    num_classes: int | None = None,
) -> Overlap:
    """Computes the overlap score of every pair of corruptions, with standard errors.

    Several seeds are averaged as accuracies, before any ratio is taken. Where the accuracies are right answers over `number`,
    differences of ratios come from these counts in integers, so that equal ratios are equal. Standard errors add two
    variances: binomial noise over the test images (delta method, accuracies taken as independent, each with one image
    more that is right and one that is wrong, so that none is certain;
    not divided by the number of seeds, because all seeds see the same images) and, with several seeds, the jackknife
    variance over seeds (all models of a seed left out together).

    Args:
      accuracy: [1 + n, n], or with seeds [S, 1 + n, n], in [0, 1]; row 0 standard, row i trained with names[i - 1],
        columns in the order of names. Without `clean_accuracy`: one more column, first, with clean accuracies.
      clean_accuracy: [1 + n] or [S, 1 + n].
      names: the n corruptions, each once.
      number: test images behind each accuracy, >= 1; None leaves binomial noise out.
      num_classes: K, to flag a standard model near chance, A[0,0] below 1/K + max(3 SE, .05 (1 - 1/K)), whose
        robustness means nothing; None does not look.

    Raises ValueError for shapes that do not fit, or values outside [0, 1].
    """
    names = tuple(names)
    full = _check(accuracy, clean_accuracy, names, number)
    mean = full.mean(axis=0)
    near_chance = _near_chance(mean[0, 0], number, num_classes)
    few = [] if number is None else frames.intervals().too_few(number)
    notes = few + near_chance + _of_clean(mean[:, 0], names, number)
    n, seeds, right = len(names), len(full), _right_answers(full, number)
    robustness, gain, transfer, unclipped = compute(mean, None if right is None else right.sum(axis=0))
    gain_variance, variance = np.zeros(n), np.zeros((n, n))
    if number is not None:
        gain_variance = gain_variance + binomial_gain_variance(mean, number)
        variance = variance + binomial_overlap_variance(mean, robustness, gain, transfer, number)
    if seeds > 1:
        _, gains, _, overlaps = compute(leave_one_out(full), None if right is None else right.sum(axis=0) - right)
        gain_variance = gain_variance + jackknife_variance(gains)
        variance = variance + jackknife_variance(overlaps)
    if number is None and seeds == 1:
        gain_variance, variance = np.full(n, np.nan), np.full((n, n), np.nan)
    gain_se, se = np.sqrt(gain_variance), np.sqrt(variance)
    np.fill_diagonal(se, np.where(np.isnan(np.diag(unclipped)), np.nan, 0.0))
    tau = np.maximum(WEAK_GAIN, _SIGMAS * np.nan_to_num(gain_se))
    flags = tuple(
        "invalid" if not g > 0 else "weak" if few or near_chance or g < t else ""
        for g, t in zip(gain, tau, strict=True)
    )
    notes += [
        f"{name}: training on it gives a gain of {g:+.4f} on itself ("
        + ("no overlap is defined)" if flag == "invalid" else f"below {t:.3f}: overlap is unreliable)")
        for name, g, t, flag in zip(names, gain, tau, flags, strict=True)
        if flag == "invalid" or g < t
    ]
    both, of_models = (np.maximum(unclipped, 0), unclipped, se, transfer), (gain, gain_se, robustness, mean[:, 0])
    return Overlap(names, *both, *of_models, flags, tuple(notes), number, seeds)


def compute(full: ArrayLike, right: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Computes (R, G, T, unclipped O) from accuracies [..., 1 + n, 1 + n], clean first; batches lead.

    Where G[j] <= 0, column j of T and row and column j of O are NaN: a division by a negative gain would flip signs. A
    clean accuracy of 0 gives NaN, too. `right` are the numbers of right answers behind the accuracies, integers of the same
    shape: differences of ratios are then exact. Without them a difference within rounding is 0.
    """
    full = np.asarray(full, float)
    robustness = full[..., 1:] / above_zero(full[..., :1])
    apart = _apart(robustness[..., 1:, :], robustness[..., :1, :]) if right is None else _exactly_apart(right)
    gain = np.diagonal(apart, axis1=-2, axis2=-1)
    transfer = apart / np.where(gain > 0, gain, np.nan)[..., None, :]
    return robustness, gain, transfer, (transfer + np.swapaxes(transfer, -1, -2)) / 2


def _apart(first, second):
    """First minus second, 0 where rounding alone parts them."""
    difference = first - second
    return np.where(np.abs(difference) <= _ROUNDING * np.abs(first), 0.0, difference)


def _exactly_apart(right):
    """R[i,j] - R[0,j], [..., n, n], from numbers of right answers: a / b - c / d = (a d - c b) / (b d)."""
    clean, standard_clean = right[..., 1:, :1], right[..., :1, :1]
    difference = (right[..., 1:, 1:] * standard_clean - right[..., :1, 1:] * clean).astype(float)
    return difference / above_zero((clean * standard_clean).astype(float))


def _right_answers(full, number):
    """The numbers of right answers behind accuracies, integers, where all are whole; else None."""
    if number is None:
        return None
    right = full * number
    whole = np.rint(right)
    if np.abs(right - whole).max() > _WHOLE:
        return None
    return whole.astype(np.int64 if len(full) * number < 1 << 31 else object)  # products fit


def _check(accuracy, clean_accuracy, names, number):
    """Accuracies as [S, 1 + n, 1 + n] with the clean column first."""
    n = len(names)
    if n < 1 or len(set(names)) != n:
        raise ValueError(f"expected at least one name and each once, found {names}")
    if number is not None and number < 1:
        raise ValueError(f"expected at least 1 test image, found {number}")
    full = np.asarray(accuracy, float)
    if clean_accuracy is not None:
        clean = np.asarray(clean_accuracy, float)
        if clean.shape != full.shape[:-1]:
            raise ValueError(f"expected a clean accuracy per model, shape {full.shape[:-1]}, found {clean.shape}")
        full = np.concatenate([clean[..., None], full], axis=-1)
    full = full[None] if full.ndim == 2 else full
    if full.ndim != 3 or full.shape[1:] != (n + 1, n + 1) or not len(full):
        raise ValueError(
            f"expected accuracies of standard and {n} models on clean images and {n} corruptions, "
            f"shape [{n + 1}, {n + 1}] with the clean column, found {full.shape}"
        )
    if not np.all((full >= 0) & (full <= 1)):
        raise ValueError(f"expected accuracies in [0, 1], found {full.min()}..{full.max()}")
    return full


def _near_chance(clean, number, num_classes):
    """The warning about a standard model near chance, in a list; an empty one about others."""
    if num_classes is None:
        return []
    chance = 1 / num_classes
    least = chance + max(_SIGMAS * _noise(clean, number), _CHANCE_MARGIN * (1 - chance))
    if clean >= least:
        return []
    return [
        f"standard: clean accuracy {clean:.4f} is near chance (expected at least {least:.4f} with {num_classes} classes): "
        "robustness and overlap mean nothing; train longer, or on more images"
    ]


def _noise(accuracy, number):
    """Standard error of accuracies over the test images; 0 where their number is not known."""
    return np.zeros_like(accuracy) if number is None else np.sqrt(_binomial(accuracy, number))


def _binomial(accuracy, number):
    """Variance of accuracies on so many images, with one more that is right and one that is wrong."""
    inside = (accuracy * number + 1) / (number + 2)
    return inside * (1 - inside) / (number + 2)


def _of_clean(clean, names, number):
    """Warnings about models without a right answer on clean images, or far below the standard one."""
    noise = _noise(clean, number)
    far = np.maximum(_CLEAN_DROP, _SIGMAS * np.hypot(noise, noise[0]))
    none = [
        f"{name}: clean accuracy 0, so no overlap of it is defined"
        for name, accuracy in zip(("standard", *names), clean, strict=True)
        if accuracy == 0
    ]
    return none + [
        f"{name}: clean accuracy {clean[1 + i]:.4f} is far below the standard model's {clean[0]:.4f}"
        for i, name in enumerate(names)
        if clean[0] - clean[1 + i] > far[1 + i]
    ]


# First-order variances of gain and overlap: binomial noise over the test images, and the jackknife over seeds.


def above_zero(clean: np.ndarray) -> np.ndarray:
    """Replaces accuracies of 0 by NaN, because scores divide by them."""
    return np.where(clean > 0, clean, np.nan)


def binomial_gain_variance(full: np.ndarray, number: int) -> np.ndarray:
    """Computes the variance of each gain, SE(G)^2 = SE(R_jj)^2 + SE(R_0j)^2, [n], of accuracies [1 + n, 1 + n], clean
    first, on so many test images.
    """
    noise, clean = _binomial(full, number), above_zero(full[:, :1])
    variance = (noise[:, 1:] + (full[:, 1:] / clean) ** 2 * noise[:, :1]) / clean**2
    return variance[0] + np.diag(variance[1:])


def binomial_overlap_variance(
    full: np.ndarray, robustness: np.ndarray, gain: np.ndarray, transfer: np.ndarray, number: int
) -> np.ndarray:
    """Computes the delta-method variance of the unclipped O: sum over the nine accuracies in it of (dO/dA)^2 Var A.
    Symmetric [n, n]; the diagonal means nothing. `robustness`, `gain` and `transfer` are of `compute` on `full`.
    """
    noise = _binomial(full, number)
    clean, standard_clean = above_zero(full[1:, 0]), above_zero(full[0, 0])
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
    shared = (clean_i + clean_j.T) ** 2 * noise[1:, :1]
    variance += shared + shared.T + (clean_0 + clean_0.T) ** 2 * noise[0, 0]
    return variance / 4


def leave_one_out(accuracy: np.ndarray) -> np.ndarray:
    """Means of accuracies [S >= 2, ...] over all seeds but one, for each seed left out: [S, ...]."""
    seeds = len(accuracy)
    return (seeds * accuracy.mean(axis=0) - accuracy) / (seeds - 1)


def jackknife_variance(left_out: np.ndarray) -> np.ndarray:
    """Jackknife variance (S - 1) / S sum_s (x_s - mean)^2 of a score x_s [S, ...] computed with each seed left out."""
    seeds = len(left_out)
    return (seeds - 1) / seeds * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0)


class Balance(NamedTuple):
    """Spread of one value per corruption (mCE, mean overlap): smaller is better balanced.

    Its mean, its standard deviations of the population (as published) and with n - 1, and largest minus smallest value.
    """

    mean: float
    std: float
    sample_std: float
    range: float


def balance(values: ArrayLike) -> Balance:
    """Measures the spread of one value per corruption [n >= 2], such as the mCE of models trained with each."""
    values = np.asarray(values, float)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise ValueError(f"expected two or more finite values, found {values.tolist()}")
    return Balance(float(values.mean()), float(values.std()), float(values.std(ddof=1)), float(np.ptp(values)))


def mean_overlap(matrix: ArrayLike) -> np.ndarray:
    """Averages the overlap of each corruption with the others, [n]: the diagonal is left out, NaN ignored."""
    return _mean_off_diagonal(matrix, axis=1)


def mean_transfer(transfer: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Averages directed transfer T [trained, tested] over the others: (outgoing, incoming), each [n].

    Outgoing: how much training on a corruption helps the others (it predicts the mCE of models
    trained with it); incoming: how much it is helped by the others. The symmetric overlap hides the difference.
    """
    return _mean_off_diagonal(transfer, axis=1), _mean_off_diagonal(transfer, axis=0)


def _mean_off_diagonal(matrix, axis):
    matrix = np.array(matrix, float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"expected a square matrix, found shape {matrix.shape}")
    np.fill_diagonal(matrix, np.nan)
    return np.ma.masked_invalid(matrix).mean(axis=axis).filled(np.nan)


def split_by_overlap(overlap: ArrayLike, names: Sequence[str], size: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Cuts corruptions in two: the `size` of largest mean overlap, and the rest; both in the order of `names`.

    Raises ValueError for a size outside 1..n - 1, or a corruption without a defined overlap.
    """
    names, means = tuple(names), mean_overlap(overlap)
    if len(means) != len(names) or np.isnan(means).any() or not 1 <= size < len(names):
        raise ValueError(
            f"expected an overlap of {len(names)} valid corruptions and a size in 1..{len(names) - 1}, found "
            f"mean overlaps {means.tolist()} and size {size}"
        )
    largest = set(np.argsort(-means, kind="stable")[:size].tolist())
    return tuple(tuple(name for i, name in enumerate(names) if (i in largest) == part) for part in (True, False))
