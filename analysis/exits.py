"""Networks with several exits: the exit at which each image stops, the accuracy there, and the operations saved.

Budgeted classification (G. Huang et al., "Multi-Scale Dense Networks", 2018, section 4): an image stops at the first exit
whose confidence, the largest probability, reaches the threshold of that exit. Thresholds are chosen on other images such
that a wanted share of them stops at each exit. The share at exit k is proportional to q^k: a small q answers early, a
large one late.
"""

from typing import NamedTuple

import numpy as np


class Stopped(NamedTuple):
    """The result of thresholds on a set of images."""

    correct: int  # number of images that are classified correctly at the exit where they stop
    total: int  # number of images
    multiply_adds: float  # mean over the images


def shares(q: float, exits: int) -> np.ndarray:
    """Computes the share of the images that stop at each exit, q^k over the sum of all: float64 [E]; q is positive."""
    if not q > 0:
        raise ValueError(f"expected q above 0, found {q}")
    weights = np.float64(q) ** np.arange(1, exits + 1)
    return weights / weights.sum()


def thresholds(confidence: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Finds the confidence at which an image stops at each exit: float64 [E], the last -inf.

    `confidence` is [N, E], of the images that thresholds are chosen on; labels are not needed. `wanted` is the share
    of the images that stops at each exit, [E]. Images that have not stopped before stop at an exit in the order of
    their confidence until the share, rounded down, is reached; images of equal confidence all stop.
    """
    left, found = np.ones(len(confidence), bool), np.full(len(wanted), -np.inf)
    for k in range(len(wanted) - 1):
        candidates = np.sort(confidence[left, k])[::-1]
        number = min(int(len(confidence) * wanted[k]), len(candidates))
        found[k] = candidates[number - 1] if number else np.inf
        left &= confidence[:, k] < found[k]
    return found


def stop(correct: np.ndarray, confidence: np.ndarray, least: np.ndarray, costs: np.ndarray) -> Stopped:
    """Stops each image at the first exit whose confidence reaches the threshold.

    `correct`, bool [N, E], says whether each exit classifies each image correctly; `confidence` is [N, E], `least` the
    thresholds [E], `costs` the multiply-adds of an image up to each exit, [E].
    """
    at = (confidence >= least).argmax(1)
    return Stopped(int(correct[np.arange(len(at)), at].sum()), len(at), float(np.asarray(costs)[at].mean()))
