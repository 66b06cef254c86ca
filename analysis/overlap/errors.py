"""The standard errors of an overlap study: those in overlap_long.csv, in overlap.png and in the
report.

Two variances add: that of the test images, and, with several seeds, the jackknife over seeds (as in
`analysis.overlap.score`). Where the correctness of every answer is known, the test images
themselves are resampled, which sees that all models were shown the same images. Without it each
accuracy is drawn anew from its binomial distribution, independently; then errors of differences
between models come out too large.
"""

from typing import NamedTuple

import numpy as np

from analysis.overlap.bootstrap import resample_accuracies
from analysis.overlap.score import compute
from analysis.overlap.variance import jackknife_variance, leave_one_out

RESAMPLES = 1000
_CENTRAL = (15.866, 84.134)  # percentiles one standard deviation from the middle of a normal distribution


class Errors(NamedTuple):
    """Standard errors; arrays as in `analysis.overlap.Overlap`.

    Attributes:
      clean: of clean accuracies, [1 + n].
      standard, trained: of R[0,j] and R[j,j], the robustness of the standard model and of the one
        trained with j, [n].
      gain: of G[j], [n].
      overlap: of the unclipped overlap, the standard deviation over resamples, [n, n].
      transfer: of T, [n, n].
      mean_overlap, outgoing, incoming: of means over the other corruptions, [n].
      unclipped_samples: the unclipped overlap in each resample, [B, n, n]; NaN where G <= 0 in that
        resample.
      resampled: whether the test images were resampled; if not, accuracies were drawn
        independently.
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
    resampled: bool


def standard_errors(
    accuracy: np.ndarray, number: int, bits: np.ndarray | None = None, resamples: int = RESAMPLES, seed: int = 0
) -> Errors:
    """Computes the standard errors of a study.

    All but those of `overlap` are half the width of the central 68 % of the resamples: the standard
    deviation where they are normal, and not carried away by the few resamples in which a weak gain
    all but vanishes.

    Args:
      accuracy: [S, 1 + n, 1 + n], clean first (`analysis.accuracies.accuracies`).
      number: test images behind each accuracy.
      bits: correctness [S, 1 + n, 1 + n, number], whose images are resampled, or None.
      resamples: number of resamples B, >= 2.
      seed: seed of the NumPy generator.
    """
    if bits is None:
        mean = accuracy.mean(axis=0)
        drawn = np.random.default_rng(seed).binomial(number, mean, (resamples, *mean.shape)) / number
    else:
        drawn = resample_accuracies(bits, resamples, seed)
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample without a correct clean answer
        samples = _derived(drawn)
        errors = {name: _half_width(values) for name, values in samples.items()}
        errors["overlap"] = _deviation(samples["overlap"])
        if len(accuracy) > 1:
            for name, values in _derived(leave_one_out(accuracy)).items():
                errors[name] = np.hypot(errors[name], np.sqrt(jackknife_variance(values)))
    return Errors(**errors, unclipped_samples=samples["overlap"], resampled=bits is not None)


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
    """Mean without NaN; NaN where nothing else is there."""
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
