"""Distances between corruptions in the feature space of a network: of their centres, of the
directions in which they move clean images, and the minimal sample distance.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.spatial.distance import cdist

from analysis.tables import CLEAN


def centre_distances(centres: Mapping[tuple[str, int | str], np.ndarray], names: Sequence[str]) -> np.ndarray:
    """Measures the L2 distances between mean features of corruptions: float64 [n, n].

    Args:
      centres: {(corruption, severity): [D]} (`analysis.distances.files.read_centres`); severities
        are averaged first.
      names: n corruptions.

    Raises:
      ValueError: a name without features.
    """
    means = _means(centres, names)
    return cdist(means, means)


def direction_distances(centres: Mapping[tuple[str, int | str], np.ndarray], names: Sequence[str]) -> np.ndarray:
    """Measures how differently corruptions move the clean features, 1 - cos(f_i - f_clean, f_j -
    f_clean): float64 [n, n].

    In 0..2 with a zero diagonal, 1 for directions at right angles; how far a corruption moves them
    does not count.

    Args:
      centres: as in `centre_distances`, and the clean images' under `(CLEAN, 0)`.
      names: n corruptions.

    Raises:
      ValueError: a name without features, no clean ones, or a corruption whose centre is the clean
        one.
    """
    if (CLEAN, 0) not in centres:
        raise ValueError(
            "expected features of clean images, found none; the command of tools.msd given again adds them"
        )
    moved = _means(centres, names) - np.asarray(centres[CLEAN, 0], np.float64)
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    if still := [name for name, length in zip(names, lengths) if length == 0]:
        raise ValueError(f"expected features that differ from the clean ones, found those of {still} to be the same")
    cosines = (moved / lengths) @ (moved / lengths).T
    distance = np.maximum(1 - (cosines + cosines.T) / 2, 0.0)
    np.fill_diagonal(distance, 0.0)
    return distance


def _means(centres, names):
    """Features of each corruption, averaged over its severities: float64 [n, D]."""
    by_name = {}
    for (name, _), value in centres.items():
        by_name.setdefault(name, []).append(value)
    missing = [name for name in names if name not in by_name]
    if missing:
        raise ValueError(f"expected features of every corruption, found none of {missing}")
    return np.array([np.mean(by_name[name], axis=0, dtype=np.float64) for name in names])


def msd_distances(means: Mapping[tuple[str, str], Sequence[float]], names: Sequence[str]) -> np.ndarray:
    """Makes minimal sample distances symmetric, (MSD(i, j) + MSD(j, i)) / 2 off the diagonal and 0
    on it: float64 [n, n].

    Args:
      means: {(scheme, corruption): (msd, mmd)} (`analysis.distances.by_scheme.mean_distances`) with
        corruptions as schemes.
      names: n corruptions.

    Raises:
      ValueError: a pair without distance.
    """
    missing = [pair for pair in itertools.permutations(names, 2) if pair not in means]
    if missing:
        raise ValueError(f"expected distances of every pair, found {len(missing)} missing, such as {missing[0]}")
    directed = np.array([[0.0 if i == j else means[i, j][0] for j in names] for i in names])
    return (directed + directed.T) / 2
