"""Accuracy on each class, with an interval that holds for few images, too."""

import math
import pathlib
from collections.abc import Sequence

import numpy as np

from analysis.lines import as_name, write_rows

HEADER = ("class", "images", "accuracy", "low", "high")
_QUANTILE = 1.959963984540054  # of the standard normal distribution, for 95 %


def interval(correct: int, number: int) -> tuple[float, float]:
    """Computes Wilson's 95 % interval of a share: with p = correct / number and z = 1.96,
    (p + z^2 / 2n ± z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n).

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference" (1927).
    """
    share, extra = correct / number, _QUANTILE**2 / number
    middle = share + extra / 2
    half = math.sqrt(extra * (share * (1 - share) + extra / 4))
    return (middle - half) / (1 + extra), (middle + half) / (1 + extra)


def of_classes(
    correct: np.ndarray, labels: np.ndarray, names: Sequence[str]
) -> list[tuple[str, int, float, float, float]]:
    """Computes (name, images, accuracy, low, high) of each class that has images.

    Args:
      correct: bool [N], which images are answered correctly.
      labels: int [N].
      names: of the classes.
    """
    rows = []
    for label, name in enumerate(names):
        own = correct[labels == label]
        if own.size:
            rows.append((name, own.size, float(own.mean()), *interval(int(own.sum()), own.size)))
    return rows


def write_classes(
    path: pathlib.Path, correct: np.ndarray, labels: np.ndarray, names: Sequence[str], comment: str
) -> list[tuple]:
    """Writes the rows of `of_classes`, below the line `comment`, to the table `path`; returns them."""
    rows = of_classes(correct, labels, names)
    write_rows(path, HEADER, [(as_name(name), *values) for name, *values in rows], comment)
    return rows
