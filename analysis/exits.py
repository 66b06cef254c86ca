"""Networks with several exits: where images stop, how right they are then, and what that saves.

Budgeted classification (G. Huang et al., "Multi-Scale Dense Networks", 2018, section 4): an image
stops at the first exit whose confidence, the largest probability, reaches that exit's threshold.
Thresholds are such that of other images a wanted share stops at each exit; the share at exit k is
proportional to q^k, so that a small q answers early and a large one late.
"""

from typing import NamedTuple

import numpy as np


class Stopped(NamedTuple):
    """What comes of thresholds on a set of images.

    Attributes:
      correct: images whose answer, where they stop, is right.
      total: images.
      multiply_adds: mean over the images.
    """

    correct: int
    total: int
    multiply_adds: float


def shares(q: float, exits: int) -> np.ndarray:
    """Gives the share of the images that shall stop at each exit, q^k over their sum: float64 [E].

    Raises:
      ValueError: q is not positive.
    """
    if not q > 0:
        raise ValueError(f"expected q above 0, found {q}")
    weights = np.float64(q) ** np.arange(1, exits + 1)
    return weights / weights.sum()


def thresholds(confidence: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Finds the confidence at which an image stops at each exit: float64 [E], the last -inf.

    Args:
      confidence: [N, E], of images to choose by; labels are not needed.
      wanted: share of them that shall stop at each exit, [E]. At an exit the most confident of
        those that are left stop, so many as its share says, rounded down; of equal ones all.
    """
    left, found = np.ones(len(confidence), bool), np.full(len(wanted), -np.inf)
    for k in range(len(wanted) - 1):
        candidates = np.sort(confidence[left, k])[::-1]
        number = min(int(len(confidence) * wanted[k]), len(candidates))
        found[k] = candidates[number - 1] if number else np.inf
        left &= confidence[:, k] < found[k]
    return found


def stop(correct: np.ndarray, confidence: np.ndarray, least: np.ndarray, costs: np.ndarray) -> Stopped:
    """Stops each image at its first exit of at least the threshold's confidence.

    Args:
      correct: bool [N, E], of each image at each exit.
      confidence: [N, E].
      least: thresholds [E].
      costs: multiply-adds up to each exit, [E].
    """
    at = (confidence >= least).argmax(1)
    return Stopped(int(correct[np.arange(len(at)), at].sum()), len(at), float(np.asarray(costs)[at].mean()))
