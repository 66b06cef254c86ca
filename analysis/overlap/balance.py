"""Is a benchmark balanced? Robustness to each of its corruptions should count about equally.

Where it is not, a family of overlapping corruptions dominates the mean. Source: Laugros, Caplier, Ospici, "Increasing
the Coverage and Balance of Robustness Benchmarks by Using Non-Overlapping Corruptions", Table 2 and Fig. 3.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Balance(NamedTuple):
    """Spread of one value per corruption (mCE, mean overlap): smaller is better balanced.

    Attributes:
      mean: mean.
      std: population standard deviation (as published).
      sample_std: with n - 1.
      range: largest minus smallest.
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


def _square(matrix):
    matrix = np.asarray(matrix, float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"expected a square matrix, found shape {matrix.shape}")
    return matrix


def _mean_off_diagonal(matrix, axis):
    matrix = _square(matrix).copy()
    np.fill_diagonal(matrix, np.nan)
    count = (~np.isnan(matrix)).sum(axis=axis)
    with np.errstate(invalid="ignore"):
        return np.where(count > 0, np.nansum(matrix, axis=axis) / np.maximum(count, 1), np.nan)


def split_by_overlap(overlap: ArrayLike, names: Sequence[str], size: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Cuts corruptions in two: the `size` of largest mean overlap, and the rest; both in the order of `names`.

    Raises:
      ValueError: a size outside 1..n - 1, or a corruption without a defined overlap.
    """
    names, means = tuple(names), mean_overlap(overlap)
    if len(means) != len(names) or np.isnan(means).any() or not 1 <= size < len(names):
        raise ValueError(
            f"expected an overlap of {len(names)} valid corruptions and a size in 1..{len(names) - 1}, found "
            f"mean overlaps {means.tolist()} and size {size}"
        )
    largest = set(np.argsort(-means, kind="stable")[:size].tolist())
    return (
        tuple(name for i, name in enumerate(names) if i in largest),
        tuple(name for i, name in enumerate(names) if i not in largest),
    )
