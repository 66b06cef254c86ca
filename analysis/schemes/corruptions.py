"""scheme_corruptions.csv: error of each scheme on each corruption, mean of its severities, over
seeds.

scheme,corruption,severities,seeds,error,error_std: percent; `severities` is how many there are, and
the standard deviation over seeds (n - 1) is `nan` of one. This is the supplement's Table 3 (Mintun,
Kirillov, Xie 2021).
"""

import math
import pathlib
from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np

from analysis.lines import write_rows
from analysis.tables import CLEAN, Count


class Error(NamedTuple):
    """A line of scheme_corruptions.csv."""

    scheme: str
    corruption: str
    severities: int
    seeds: int
    error: float
    error_std: float


def rows(counts: Iterable[Count], schemes: Collection[str]) -> list[Error]:
    """Averages errors over severities, then over seeds.

    Args:
      counts: rows of counts.csv.
      schemes: names of models that count.
    """
    by_corruption: dict[tuple[str, str], dict[int, list[float]]] = {}
    for count in counts:
        if count.model in schemes and count.corruption != CLEAN:
            by_seed = by_corruption.setdefault((count.model, count.corruption), {})
            by_seed.setdefault(count.seed, []).append(100 * count.error)
    table = []
    for (scheme, corruption), by_seed in by_corruption.items():
        means = [float(np.mean(errors)) for errors in by_seed.values()]
        std = float(np.std(means, ddof=1)) if len(means) > 1 else math.nan
        severities = max(map(len, by_seed.values()))
        table.append(Error(scheme, corruption, severities, len(means), float(np.mean(means)), std))
    return table


def write(path: pathlib.Path, table: Iterable[Error], comment: str) -> None:
    """Writes scheme_corruptions.csv atomically."""
    write_rows(path, Error._fields, table, comment)
