"""Percentile intervals of resampled statistics."""

import numpy as np
from numpy.typing import ArrayLike


def percentile_interval(samples: ArrayLike, level: float = 0.95, known: float = 0.0) -> tuple[float, float]:
    """Computes the ends of the central part of a statistic's samples: (lower, upper).

    Args:
      samples: of resamples; NaN where one does not define the statistic.
      level: part of the samples between the ends, in (0, 1).
      known: (NaN, NaN) where a smaller part of the samples is defined, or none.
    """
    samples = np.asarray(samples, float)
    defined = samples[~np.isnan(samples)]
    if not len(defined) or len(defined) < known * len(samples):
        return float("nan"), float("nan")
    lower, upper = np.percentile(defined, [50 * (1 - level), 50 * (1 + level)])
    return float(lower), float(upper)
