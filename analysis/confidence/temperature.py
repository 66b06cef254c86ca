"""Temperature scaling, p = softmax(z / T) with one T for a network, and the mean of several networks.

C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On Calibration of Modern Neural Networks" (2017). The fit minimises the
likelihood's negative logarithm over b = 1 / T, in which it is convex, so that it has one optimum or none.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LOWEST, HIGHEST = 1e-3, 1e3
"""Range of 1 / T."""
_TOLERANCE = 1e-12
_STEPS = 200  # bisection alone needs about 70


class Temperature(NamedTuple):
    """A fitted temperature.

    Attributes:
      value: T.
      at_bound: whether there is no finite optimum, and T is an end of its range: every image is right with a margin, or
        the logits say nothing about the labels.
      before: mean of -ln p of the labels at T = 1.
      after: the same at T.
    """

    value: float
    at_bound: bool
    before: float
    after: float


def fit(logits: np.ndarray, labels: np.ndarray) -> Temperature:
    """Minimises mean[ln sum exp(b z) - b z_y] over b = 1 / T in [1e-3, 1e3].

    Newton's method from b = 1, with bisection where a step leaves the bracket; g(b) = mean(E_p[z] - z_y) is the
    derivative, mean Var_p(z) its own.

    Args:
      logits: real [N, C], finite; ln max(p, tiny) where only probabilities are known.
      labels: int [N], of clean images that were neither trained nor tested on.

    Raises:
      ValueError: no images, logits that are not finite, or labels outside 0 .. C - 1.
    """
    logits, labels = np.asarray(logits, np.float64), np.asarray(labels)
    check(logits, labels)
    if not np.isfinite(logits).all():
        raise ValueError("expected finite logits, found NaN or infinity")
    shifted = logits - logits.max(1, keepdims=True)
    of_label = shifted[np.arange(len(labels)), labels]

    def loss(b):
        return float(np.mean(np.log(np.exp(b * shifted).sum(1)) - b * of_label))

    def slopes(b):
        weights = np.exp(b * shifted)
        weights /= weights.sum(1, keepdims=True)
        mean = (weights * shifted).sum(1)
        return float(np.mean(mean - of_label)), float(np.mean((weights * shifted**2).sum(1) - mean**2))

    low, high, b = LOWEST, HIGHEST, 1.0
    if (start := slopes(low)[0]) >= 0 or slopes(high)[0] <= 0:
        b = low if start >= 0 else high
        return Temperature(1 / b, True, loss(1.0), loss(b))
    for _ in range(_STEPS):
        slope, curvature = slopes(b)
        if abs(slope) < _TOLERANCE or high - low <= np.spacing(high):
            break
        low, high = (b, high) if slope < 0 else (low, b)
        step = b - slope / curvature if curvature > 0 else np.inf
        b = step if low < step < high else (low + high) / 2
    return Temperature(1 / b, False, loss(1.0), loss(b))


def check(scores: np.ndarray, labels: np.ndarray) -> None:
    """Checks scores real [N, C] with labels int [N].

    Raises:
      ValueError: there are no images, or labels outside 0 .. C - 1; names them.
    """
    number, classes = scores.shape
    if number < 1 or labels.shape != (number,):
        raise ValueError(f"expected labels of at least one image, found {list(labels.shape)} for {number} images")
    if labels.min() < 0 or labels.max() >= classes:
        raise ValueError(f"expected labels in 0..{classes - 1}, found {labels.min()}..{labels.max()}")


def disagreement(predicted: Sequence[np.ndarray]) -> float:
    """Share of (image, pair of networks) with different predictions, from the predictions int [N] of M networks; NaN of
    one network.
    """
    stacked = np.stack(predicted)
    members = len(stacked)
    if members < 2:
        return float("nan")
    equal = (stacked[:, None] == stacked[None]).mean(-1)
    return float(1 - (equal.sum() - members) / (members * (members - 1)))
