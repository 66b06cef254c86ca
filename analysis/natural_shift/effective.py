"""Effective robustness: accuracy under a shift beyond what clean accuracy predicts.

    beta(x) = sigma(slope logit(x) + intercept)        fitted to the standard models alone
    ER(m)   = accuracy(m) - beta(clean(m))             in points

where logit(p) = log(p / (100 - p)) of percent. Source: Taori, Dave, Shankar, Carlini, Recht,
Schmidt, "Measuring Robustness to Natural Distribution Shifts in Image Classification" (NeurIPS
2020) and its code. Accuracies of exactly 0 or 100 have no logit and are left out of the fit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from analysis.natural_shift import resampling


class Line(NamedTuple):
    """A line between logits of clean accuracy and of accuracy under a shift.

    Attributes:
      slope, intercept, r2: of the fit; NaN with fewer than two models.
      models: how many it was fitted to.
      dropped: how many were left out because their accuracy is 0 or 100.
      part: "" of all models; `below` or `above` the pivot.
    """

    slope: float
    intercept: float
    r2: float
    models: int
    dropped: int
    part: str


class Effective(NamedTuple):
    """Effective robustness of N models, in points.

    Attributes:
      robustness: [R, N], a row for each row of weights; NaN where an accuracy is unknown.
      lines: those of all models.
    """

    robustness: np.ndarray
    lines: tuple[Line, ...]


def logit(percent: ArrayLike, floor: float = 0.0) -> np.ndarray:
    """Computes log(p / (100 - p)); NaN at 0 and 100.

    Args:
      percent: accuracies.
      floor: what accuracies are raised to, and lowered to 100 minus it, first; 0 leaves them.
    """
    percent = np.asarray(percent, float)
    percent = np.where(np.isnan(percent), np.nan, np.clip(percent, floor, 100 - floor))
    inside = (percent > 0) & (percent < 100)
    safe = np.where(inside, percent, 50)
    return np.where(inside, np.log(safe / (100 - safe)), np.nan)


def effective_robustness(
    accuracy: np.ndarray, clean: np.ndarray, fitted: np.ndarray, weights: np.ndarray, pivot: float | None = None
) -> Effective:
    """Fits the line of the standard models and subtracts it.

    Args:
      accuracy: under the shift, percent [N].
      clean: of clean images of the same classes, percent [N].
      fitted: bool [N], the models that the line is fitted to.
      weights: [R, N], of `resampling.draw`.
      pivot: a clean accuracy at which one line ends and another begins; None fits one.
    """
    parts = {"": np.ones(len(clean), bool)}
    if pivot is not None:
        parts = {"below": clean < pivot, "above": clean > pivot}
    x, y = logit(clean), logit(accuracy)
    robustness, lines = np.full(weights.shape, np.nan), []
    for part, inside in parts.items():
        of_fit = weights * (fitted & inside)
        slope, intercept = resampling.line(x, y, of_fit)
        expected = 100 / (1 + np.exp(-(slope[:, None] * x + intercept[:, None])))
        robustness = np.where(inside, accuracy - expected, robustness)
        asked = fitted & inside & ~np.isnan(accuracy) & ~np.isnan(clean)
        used = asked & ~np.isnan(x) & ~np.isnan(y)
        r2 = float(resampling.pearson(x, y, of_fit[:1])[0] ** 2)
        counted = int(used.sum()), int(asked.sum() - used.sum())
        lines.append(Line(float(slope[0]), float(intercept[0]), r2, *counted, part))
    return Effective(robustness, tuple(lines))


def pivot_of(accuracy: np.ndarray, clean: np.ndarray, fitted: np.ndarray) -> float | None:
    """Finds the clean accuracy of the model that a shift was filtered with: of accuracy exactly 0.

    ImageNet-A keeps what a ResNet-50 gets wrong, so models below and above it follow two lines.
    None without such a model among those fitted.
    """
    zero = fitted & (accuracy == 0) & ~np.isnan(clean)
    return float(clean[zero].max()) if zero.any() else None
