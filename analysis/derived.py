"""Counts of a workdir for readers of counts.csv, until they read answers themselves."""

import os
import pathlib

from analysis import answers, tables
from analysis.tables import Count


def read_counts(path: str | os.PathLike) -> list[Count]:
    """Reads the counts of a workdir from its answers; a counts.csv without answers as it is.

    Raises:
      FileNotFoundError, DamagedFileError, ValueError: neither can be read.
    """
    path = pathlib.Path(path)
    if any((path.parent / answers.FOLDER).glob("*.npz")):
        return answers.read(path.parent).counts
    return tables.read_counts(path)
