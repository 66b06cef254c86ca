"""Result files of a distance study.

msd.csv            scheme,corruption,severity,msd,msd_spread,mmd,mmd_spread
correlations.csv   corruption,schemes,msd,msd_lower,msd_upper,mmd,mmd_lower,mmd_upper
toy.csv            fraction,corruption,msd,mmd
subsets.csv        kind,size,msd
features.npz       `corruption|severity` -> centre [D]; `clean|0` is that of the images as they are
"""

import pathlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from analysis.lines import read_lines, write_rows
from analysis.tables import RANDOM
from runtime import bindings

HEADER = ("scheme", "corruption", "severity", "msd", "msd_spread", "mmd", "mmd_spread")
CORRELATIONS_HEADER = ("corruption", "schemes", "msd", "msd_lower", "msd_upper", "mmd", "mmd_lower", "mmd_upper")


class Distance(NamedTuple):
    """One line of msd.csv: distances of a scheme to a corruption at a severity (level, fraction or
    `random`), and their standard deviations over halves (NaN when there are none)."""

    scheme: str
    corruption: str
    severity: int | float | str
    msd: float
    msd_spread: float
    mmd: float
    mmd_spread: float


class Correlation(NamedTuple):
    """Spearman's rho across schemes between a corruption's distance and error, with 95 % intervals
    over schemes.
    """

    corruption: str
    schemes: int
    msd: float
    msd_lower: float
    msd_upper: float
    mmd: float
    mmd_lower: float
    mmd_upper: float


class MixtureDistance(NamedTuple):
    """One line of toy.csv: distances of a mixture, with `fraction` of its first corruption, to one
    of its two.
    """

    fraction: float
    corruption: str
    msd: float
    mmd: float


class SubsetDistance(NamedTuple):
    """One line of subsets.csv: mean MSD of a subset (closest, farthest or random) of `size`
    transforms.
    """

    kind: str
    size: int
    msd: float


def write_toy(path: str | pathlib.Path, rows: Iterable[MixtureDistance], comment: str | None = None) -> None:
    """Writes toy.csv atomically."""
    write_rows(path, MixtureDistance._fields, rows, comment)


def write_subsets(path: str | pathlib.Path, rows: Iterable[SubsetDistance], comment: str | None = None) -> None:
    """Writes subsets.csv atomically."""
    write_rows(path, SubsetDistance._fields, rows, comment)


def write_msd(path: str | pathlib.Path, rows: Iterable[Distance], comment: str | None = None) -> None:
    """Writes msd.csv atomically; `rows`: iterable of `Distance`."""
    write_rows(path, HEADER, rows, comment)


def read_msd(path: str | pathlib.Path) -> list[Distance]:
    """Reads msd.csv into a list of `Distance`.

    Raises:
      ValueError: a line of another kind, or a (scheme, corruption, severity) given twice.
    """
    rows, seen = [], set()
    for number, (scheme, corruption, severity, *values) in read_lines(path, HEADER):
        where = f"{path}, line {number}"
        try:
            row = Distance(scheme, corruption, _severity(severity), *map(float, values))
        except ValueError as error:
            raise ValueError(f"{where}: expected numbers, found {error}") from None
        if not (row.msd >= 0 and row.mmd >= 0):
            raise ValueError(f"{where}: expected distances of at least 0, found {row.msd} and {row.mmd}")
        if row[:3] in seen:
            raise ValueError(f"{where}: expected every measurement once, found {','.join(map(str, row[:3]))} again")
        seen.add(row[:3])
        rows.append(row)
    return rows


def write_centres(
    path: str | pathlib.Path,
    centres: Mapping[tuple[str, int | str], np.ndarray],
    made_from: Mapping[str, str] | None = None,
) -> None:
    """Writes features.npz atomically.

    Args:
      path: of the file.
      centres: {(corruption, severity): [D]}.
      made_from: digests of the network, the images and the settings.
    """
    arrays = {f"{name}|{severity}": value for (name, severity), value in centres.items()}
    bindings.write_arrays(path, arrays, made_from or {})


def read_centres(path: str | pathlib.Path) -> dict[tuple[str, int | str], np.ndarray]:
    """Reads features.npz: {(corruption, severity): [D]}.

    Raises:
      FileNotFoundError: no such file.
      ValueError: no archive of such features.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"expected features of corruptions at {path}, found no file")
    centres = {}
    for key, value in bindings.read_arrays(path)[0].items():
        name, bar, severity = key.rpartition("|")
        if not bar or value.ndim != 1 or value.dtype.kind != "f" or not _is_severity(severity):
            raise ValueError(
                f"{path}: expected vectors called corruption|severity, found {key!r} {value.dtype}{list(value.shape)}"
            )
        centres[name, _severity(severity)] = value
    return centres


def write_correlations(path: str | pathlib.Path, rows: Iterable[Correlation], comment: str | None = None) -> None:
    """Writes correlations.csv atomically; `rows`: iterable of `Correlation`."""
    write_rows(path, CORRELATIONS_HEADER, rows, comment)


def read_correlations(path: str | pathlib.Path) -> list[Correlation]:
    """Reads correlations.csv into a list of `Correlation`; ValueError for a line of another
    kind.
    """
    rows = []
    for number, (corruption, schemes, *values) in read_lines(path, CORRELATIONS_HEADER):
        try:
            rows.append(Correlation(corruption, int(schemes), *map(float, values)))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: expected numbers, found {error}") from None
    return rows


def _is_severity(text):
    try:
        return _severity(text) == RANDOM or 0 <= _severity(text) < float("inf")
    except ValueError:
        return False


def _severity(text):
    if text == RANDOM:
        return text
    return int(text) if text.isdigit() else float(text)
