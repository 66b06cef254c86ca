"""Resampling of test images: standard errors and intervals of the overlap, nothing assumed.

Unlike the delta method of `analysis.overlap` this sees that all models and corruptions share the
same images, whose difficulty correlates their answers.
"""

from typing import NamedTuple

import numpy as np

from analysis.overlap.score import VARIANTS, compute

_CHUNK_BYTES = 256 << 20


class Bootstrap(NamedTuple):
    """Overlap under resampling of the test images.

    Attributes:
      samples: O, clipped at 0, float64 [B, n, n]; NaN rows and columns where G <= 0 in a resample.
      unclipped: the same before the maximum with 0.
      se: standard deviation of `unclipped` over resamples, [n, n].
      lower, upper: percentile interval of O, [n, n].
      invalid: fraction of resamples in which a corruption's gain is not positive, [n].
      level: the interval's coverage.
    """

    samples: np.ndarray
    unclipped: np.ndarray
    se: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    invalid: np.ndarray
    level: float


def bootstrap(bits, *, resamples=1000, seed=0, level=0.95, variant="robustness"):
    """Resamples test images with replacement and recomputes every overlap.

    Counts of correct answers under all resamples are one matrix product of the bits with the images'
    multinomial multiplicities. With several seeds the same resampled images are shown to all, and
    accuracies are averaged over seeds; noise between trainings is not in the result.

    Args:
      bits: correctness of each answer, bool or 0/1, [1 + n, 1 + n, N] or [S, 1 + n, 1 + n, N]:
        models (standard first) x conditions (clean first) x test images in one order for all.
      resamples: number of resamples B.
      seed: seed of the NumPy generator; equal seeds give equal results.
      level: coverage of the interval, in (0, 1).
      variant: as in `analysis.overlap.overlap_matrix`.

    Raises:
      ValueError: another shape or values besides 0 and 1, or B, level or variant out of range.
    """
    bits = np.asarray(bits)
    if bits.ndim not in (3, 4) or bits.shape[-3] != bits.shape[-2] or bits.shape[-2] < 2:
        raise ValueError(
            f"expected correctness [1 + n, 1 + n, images] or [seeds, 1 + n, 1 + n, images], found shape {bits.shape}"
        )
    if not bits.size or (bits.dtype != bool and not np.isin(bits, (0, 1)).all()):
        raise ValueError(f"expected correctness of 0 and 1, found dtype {bits.dtype} with others")
    if resamples < 2 or not 0 < level < 1 or variant not in VARIANTS:
        raise ValueError(
            f"expected at least 2 resamples, a level in (0, 1) and a variant of {VARIANTS}, found "
            f"{resamples}, {level} and {variant!r}"
        )
    full = accuracies_under_resampling(bits, resamples, seed)
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample without a correct clean answer
        _, gain, _, unclipped = compute(full, variant)
    samples = np.maximum(unclipped, 0)
    invalid = 1 - (gain > 0).mean(axis=0)
    tail = 50 * (1 - level)
    undefined = np.isnan(samples).all(axis=0)
    filled = np.where(undefined, 0.0, samples)
    lower, upper = np.nanpercentile(filled, [tail, 100 - tail], axis=0)
    se = np.nanstd(np.where(undefined, 0.0, unclipped), axis=0)
    for array in (se, lower, upper):
        array[undefined] = np.nan
    return Bootstrap(samples, unclipped, se, lower, upper, invalid, level)


def accuracies_under_resampling(bits, resamples, seed):
    """Accuracies [B, M, C] of bits [..., M, C, N] under resampling, averaged over leading seeds."""
    *_, models, conditions, number = bits.shape
    bits = bits.reshape(-1, models * conditions, number)
    rng = np.random.default_rng(seed)
    weights = np.stack(
        [np.bincount(rng.integers(0, number, number), minlength=number) for _ in range(resamples)]
    ).astype(np.float32)
    # float32 holds integers up to 2^24 exactly, so these products are exact counts.
    sums = np.zeros((models * conditions, resamples))
    rows = max(1, _CHUNK_BYTES // (4 * number))
    for one in bits:
        for start in range(0, len(one), rows):
            sums[start : start + rows] += one[start : start + rows].astype(np.float32) @ weights.T
    return sums.T.reshape(resamples, models, conditions) / (number * len(bits))
