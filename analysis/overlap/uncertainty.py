"""The standard errors of an overlap study, in overlap_long.csv, overlap.png and the report.

Two variances add: noise of the test images, which are resampled, and, with several seeds, the jackknife over seeds (as
in `analysis.overlap.score`). All models answer the same images, and hard images are hard for all of them. Resampling the
images accounts for this: errors of differences between models are smaller than under independent answers.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from analysis.overlap.score import compute, jackknife_variance, leave_one_out

RESAMPLES = 1000
_CENTRAL = (15.866, 84.134)  # percentiles one standard deviation from the middle of a normal distribution
_CHUNK_BYTES = 256 << 20


class Errors(NamedTuple):
    """Standard errors; arrays as in `analysis.overlap.Overlap`.

    Attributes:
      clean: of clean accuracies, [1 + n].
      standard, trained: of R[0,j] and R[j,j], the robustness of the standard model and of the one trained with j, [n].
      gain: of G[j], [n].
      overlap: of the unclipped overlap, the standard deviation over resamples, [n, n].
      transfer: of T, [n, n].
      mean_overlap, outgoing, incoming: of means over the other corruptions, [n].
      unclipped_samples: the unclipped overlap in each resample, [B, n, n]; NaN where G <= 0 in that resample.
    """

    clean: np.ndarray
    standard: np.ndarray
    trained: np.ndarray
    gain: np.ndarray
    overlap: np.ndarray
    transfer: np.ndarray
    mean_overlap: np.ndarray
    outgoing: np.ndarray
    incoming: np.ndarray
    unclipped_samples: np.ndarray


def standard_errors(bits: np.ndarray, resamples: int = RESAMPLES, seed: int = 0) -> Errors:
    """Computes the standard errors of a study.

    All errors but `overlap` are half the width of the central 68 % of the resamples. This is the standard deviation of
    normal resamples, and the few resamples in which a weak gain all but vanishes do not change it.

    Args:
      bits: correctness [S, 1 + n, 1 + n, N] of N test images, standard model and clean images first.
      resamples: number of resamples B, >= 2.
      seed: seed of the NumPy generator.
    """
    accuracy, drawn = bits.mean(axis=-1), resample_accuracies(bits, resamples, seed)
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample without a correct clean answer
        samples = _derived(drawn)
        errors = {name: _half_width(values) for name, values in samples.items()}
        errors["overlap"] = _deviation(samples["overlap"])
        if len(accuracy) > 1:
            for name, values in _derived(leave_one_out(accuracy)).items():
                errors[name] = np.hypot(errors[name], np.sqrt(jackknife_variance(values)))
    return Errors(**errors, unclipped_samples=samples["overlap"])


def _derived(full):
    """Everything that has an error, from accuracies [B, 1 + n, 1 + n]."""
    robustness, gain, transfer, unclipped = compute(full)
    n = gain.shape[-1]
    diagonal = np.eye(n, dtype=bool)
    others = np.where(diagonal, np.nan, transfer)
    return {
        "clean": full[..., 0],
        "standard": robustness[..., 0, :],
        "trained": robustness[..., 1 + np.arange(n), np.arange(n)],
        "gain": gain,
        "overlap": unclipped,
        "transfer": transfer,
        "mean_overlap": _mean(np.where(diagonal, np.nan, np.maximum(unclipped, 0)), -1),
        "outgoing": _mean(others, -1),
        "incoming": _mean(others, -2),
    }


def _mean(values, axis):
    """Mean without NaN; NaN where all values are NaN."""
    present = ~np.isnan(values)
    return np.where(present, values, 0).sum(axis=axis) / present.sum(axis=axis)


def _half_width(samples):
    """Half the width of the central 68 % over the first axis; NaN where every sample is."""
    undefined = np.isnan(samples).all(axis=0)
    low, high = np.nanpercentile(np.where(undefined, 0, samples), _CENTRAL, axis=0)
    return np.where(undefined, np.nan, (high - low) / 2)


def _deviation(samples):
    """Standard deviation over the first axis; NaN where every sample is."""
    undefined = np.isnan(samples).all(axis=0)
    return np.where(undefined, np.nan, np.nanstd(np.where(undefined, 0, samples), axis=0))


def resample_accuracies(bits: ArrayLike, resamples: int, seed: int = 0) -> np.ndarray:
    """Resamples test images with replacement and recomputes every accuracy.

    All models and corruptions are shown the same resampled images. Counts of correct answers under all resamples are
    one matrix product of the bits with the images' multinomial multiplicities. With several seeds of training the
    accuracies are averaged over them; noise between trainings is not in the result.

    Args:
      bits: correctness of each answer, bool or 0/1, [1 + n, 1 + n, N] or [S, 1 + n, 1 + n, N]: models (standard first)
        x conditions (clean first) x test images in one order for all.
      resamples: number of resamples B, >= 2.
      seed: seed of the NumPy generator; equal seeds give equal results.

    Returns:
      Accuracies, float64 [B, 1 + n, 1 + n].

    Raises:
      ValueError: another shape or values besides 0 and 1, or fewer than two resamples.
    """
    bits = np.asarray(bits)
    if bits.ndim not in (3, 4) or bits.shape[-3] != bits.shape[-2] or bits.shape[-2] < 2:
        raise ValueError(
            f"expected correctness [1 + n, 1 + n, images] or [seeds, 1 + n, 1 + n, images], found shape {bits.shape}"
        )
    if not bits.size or (bits.dtype != bool and not np.isin(bits, (0, 1)).all()):
        raise ValueError(f"expected correctness of 0 and 1, found dtype {bits.dtype} with others")
    if resamples < 2:
        raise ValueError(f"expected at least 2 resamples, found {resamples}")
    *_, models, conditions, number = bits.shape
    bits = bits.reshape(-1, models * conditions, number)
    rng = np.random.default_rng(seed)
    multiplicities = np.stack(
        [np.bincount(rng.integers(0, number, number), minlength=number) for _ in range(resamples)]
    ).astype(np.float32)
    # float32 holds integers up to 2^24 exactly, so these products are exact counts.
    correct = np.zeros((models * conditions, resamples))
    rows = max(1, _CHUNK_BYTES // (4 * number))
    for training in bits:
        for start in range(0, len(training), rows):
            correct[start : start + rows] += training[start : start + rows].astype(np.float32) @ multiplicities.T
    return correct.T.reshape(resamples, models, conditions) / (number * len(bits))
