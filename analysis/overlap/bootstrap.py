"""Resampling of test images: accuracies of every model as they would be on other draws of the same
test set.
"""

import numpy as np
from numpy.typing import ArrayLike

_CHUNK_BYTES = 256 << 20


def resample_accuracies(bits: ArrayLike, resamples: int, seed: int = 0) -> np.ndarray:
    """Resamples test images with replacement and recomputes every accuracy.

    All models and corruptions are shown the same resampled images, whose difficulty correlates
    their answers; errors computed from these accuracies see that. Counts of correct answers under
    all resamples are one matrix product of the bits with the images' multinomial multiplicities.
    With several seeds of training the accuracies are averaged over them; noise between trainings is
    not in the result.

    Args:
      bits: correctness of each answer, bool or 0/1, [1 + n, 1 + n, N] or [S, 1 + n, 1 + n, N]:
        models (standard first) x conditions (clean first) x test images in one order for all.
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
