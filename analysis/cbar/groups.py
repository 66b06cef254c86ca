"""Groups of five severities out of ten scanned levels, with their error and their distance to a
reference benchmark.

The first half of the search for a dissimilar benchmark (the second is `analysis.cbar.selection`).
Source: E. Mintun, A. Kirillov, S. Xie, "On Interaction Between Augmentations and Corruptions in
Natural Corruption Robustness" (2021), supplement D.1 and the released code; where they differ
(seven groups in the text, six in the code) this is the code.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from analysis.cbar.scans import Scan

CENTRES = (3, 4, 5, 6, 7, 8)
LEFT_OUT = ("saturate", "spatter", "gaussian_blur", "speckle_noise")  # the extra corruptions of ImageNet-C


class GroupTable(NamedTuple):
    """Six groups of each of n candidates, one for each centre 3..8.

    Attributes:
      names: the candidates.
      levels: the five levels, 1..10, of each group, int [n, 6, 5], increasing; the third is the
        centre.
      error: mean error of a group in percent, [n, 6].
      distance: mean over a group's levels of the distance to the nearest reference (corruption,
        level), [n, 6].
      spread: mean relative spread of the references' errors over their severities.
      references: the references that were used.
    """

    names: tuple[str, ...]
    levels: np.ndarray
    error: np.ndarray
    distance: np.ndarray
    spread: float
    references: tuple[str, ...]


def severity_spread(errors: ArrayLike) -> float:
    """Averages (|e_1 / e_3 - 1| + |e_5 / e_3 - 1|) / 2 over references; errors [m, 5] at severities
    1..5.
    """
    errors = np.asarray(errors, float)
    if errors.ndim != 2 or errors.shape[1] != 5 or not len(errors) or not np.all(errors[:, 2] > 0):
        raise ValueError(f"expected errors [m, 5], above 0 at severity 3, found {errors.tolist()}")
    ratio = errors / errors[:, 2:3] - 1
    return float(np.mean((np.abs(ratio[:, 0]) + np.abs(ratio[:, 4])) / 2))


def severity_groups(errors: ArrayLike, spread: float) -> np.ndarray:
    """Finds the five levels around each centre whose relative errors come nearest to -s, -s/2, 0,
    s/2, s (s = spread).

    With rho(j) = e_j / e_i - 1 and centre i: the first level is the j <= i - 2 with rho(j) nearest
    to -s, the fifth the j >= i + 2 nearest to s; then the second, between the first and i, is
    nearest to -s/2, and the fourth, between i and the fifth, nearest to s/2. Of equally near levels
    the larger is taken.

    Args:
      errors: [10], of levels 1..10, above 0 at the centres.
      spread: s.

    Returns:
      levels int [6, 5], counted from 1.
    """
    errors = np.asarray(errors, float)
    if errors.shape != (10,) or not np.all(errors[CENTRES[0] - 1 : CENTRES[-1]] > 0):
        raise ValueError(f"expected 10 errors, above 0 at levels 3..8, found {errors.tolist()}")
    groups = []
    for centre in CENTRES:
        ratio = errors / errors[centre - 1] - 1
        first = _nearest(ratio, -spread, 1, centre - 2)
        second = _nearest(ratio, -spread / 2, first + 1, centre - 1)
        fifth = _nearest(ratio, spread, centre + 2, len(errors))
        fourth = _nearest(ratio, spread / 2, centre + 1, fifth - 1)
        groups.append((first, second, centre, fourth, fifth))
    return np.array(groups)


def _nearest(ratio, goal, first, last):
    """The level in first..last whose ratio is nearest to the goal; of equals the largest."""
    return last - int(np.argmin(np.abs(goal - ratio[first - 1 : last])[::-1]))


def group_table(scan: Scan) -> GroupTable:
    """Groups the levels of one scan; references in `LEFT_OUT` do not count.

    Raises:
      ValueError: no reference is left, or an error of 0 where one is divided by it (the candidate
        is named).
    """
    kept = [i for i, name in enumerate(scan.references) if name.rpartition("/")[2] not in LEFT_OUT]
    if not kept:
        raise ValueError(f"expected references besides {', '.join(LEFT_OUT)}, found none")
    spread = severity_spread(scan.reference_errors[kept])
    levels = []
    for name, errors in zip(scan.candidates, scan.candidate_errors, strict=True):
        try:
            levels.append(severity_groups(errors, spread))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    levels = np.array(levels)
    nearest = nearest_distance(scan.candidate_features, scan.reference_features[kept])
    rows = np.arange(len(levels))[:, None, None]
    return GroupTable(
        scan.candidates,
        levels,
        scan.candidate_errors[rows, levels - 1].mean(axis=-1),
        nearest[rows, levels - 1].mean(axis=-1),
        spread,
        tuple(scan.references[i] for i in kept),
    )


def nearest_distance(features: ArrayLike, references: ArrayLike) -> np.ndarray:
    """Measures the L2 distance of every feature [..., D] to the nearest of the references [..., D]:
    float64 [...].
    """
    features, references = np.asarray(features, np.float64), np.asarray(references, np.float64)
    width = features.shape[-1]
    distance = cdist(features.reshape(-1, width), references.reshape(-1, width))
    return distance.min(axis=1).reshape(features.shape[:-1])
