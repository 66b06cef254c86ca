"""Which of many augmentation transforms are closest to a set of corruptions: the order behind the
subset experiment.

E. Mintun, A. Kirillov, S. Xie, "On Interaction Between Augmentations and Corruptions in Natural
Corruption Robustness" (2021), supplement A, with the order of their released code: rank r of every
corruption before rank r + 1 of any.
"""

import numpy as np
from numpy.typing import ArrayLike

KINDS = ("closest", "farthest", "random")


def closest_first(distances: ArrayLike) -> np.ndarray:
    """Orders transforms by closeness to any of the references.

    For r = 1, 2, ...: take the r-th nearest transform of each reference, order these by their
    distance to it, and append those not yet listed. Equal distances keep the order of the
    transforms, then that of the references.

    Args:
      distances: [N, m], of transform n to reference c.

    Returns:
      A permutation of 0 .. N-1, int64 [N].
    """
    distances = np.asarray(distances)
    if distances.ndim != 2 or not distances.size or not np.isfinite(distances).all():
        raise ValueError(f"expected finite distances [transforms, references], found shape {distances.shape}")
    nearest = np.argsort(distances, axis=0, kind="stable")  # row r - 1: the r-th nearest of each reference
    within = np.argsort(np.take_along_axis(distances, nearest, axis=0), axis=1, kind="stable")
    listed = np.take_along_axis(nearest, within, axis=1).ravel()
    _, first = np.unique(listed, return_index=True)  # where each transform is listed first
    return np.argsort(first, kind="stable")


def choose(order: np.ndarray, size: int, kind: str, rng: np.random.Generator | None) -> np.ndarray:
    """Chooses `size` transforms out of an order, int64 [size].

    Args:
      order: of `closest_first`.
      size: 1 .. N.
      kind: `closest` (the first), `farthest` (the last) or `random` (uniform without replacement).
      rng: np.random.Generator, of `random`.
    """
    if not 1 <= size <= len(order):
        raise ValueError(f"expected a size in 1..{len(order)}, found {size}")
    if kind not in KINDS:
        raise ValueError(f"expected a kind among {', '.join(KINDS)}, found {kind!r}")
    if kind == "random":
        return rng.choice(len(order), size, replace=False)
    return order[:size] if kind == "closest" else order[-size:]
