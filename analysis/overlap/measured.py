"""Measured overlaps for selections and comparisons: computed from a workdir, or read from a user's files.

overlap.csv        corruption,<name>,<name>,...: the matrix, O clipped at 0, diagonal 1, `nan` where it is undefined
overlap_long.csv   i,j,O,se,T_ij,T_ji,flags,se_holds: a row for each pair, with standard error, directed transfers, and
                   the noise that the error holds (files from outside may lack the last column)
"""

import itertools
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis import frames
from analysis.overlap.score import Overlap

_PAIRS = ("i", "j", "O", "se", "T_ij", "T_ji", "flags", "se_holds")
_SYMMETRY = 1e-9


class MeasuredOverlap(NamedTuple):
    """The overlaps of n corruptions."""

    names: tuple[str, ...]  # of the corruptions
    overlap: np.ndarray  # O, [n, n]
    # Overlap before it is clipped at 0, [n, n], diagonal 1; None where it is not known.
    unclipped: np.ndarray | None = None
    se: np.ndarray | None = None  # standard errors of `unclipped`, [n, n]; None where they are not known
    files: tuple[pathlib.Path, ...] = ()  # files that were read; () where it was computed from answers
    weak: tuple[str, ...] = ()  # corruptions whose overlaps rest on a weak gain, as far as it is known

    def ordered(self, names: Sequence[str]) -> "MeasuredOverlap":
        """Takes the corruptions `names`, in their order."""
        order = [self.names.index(name) for name in names]
        matrices = (None if m is None else m[np.ix_(order, order)] for m in (self.overlap, self.unclipped, self.se))
        return MeasuredOverlap(tuple(names), *matrices, self.files, tuple(n for n in names if n in self.weak))


def matrix_frame(names: Sequence[str], matrix: np.ndarray) -> pd.DataFrame:
    """Makes the frame of overlap.csv from a matrix [n, n]."""
    return pd.DataFrame(np.asarray(matrix, float), columns=list(names)).assign(corruption=list(names))[
        ["corruption", *names]
    ]


def pairs_frame(overlap: Overlap, se: np.ndarray, held: str) -> pd.DataFrame:
    """Makes the frame of overlap_long.csv: a row for each pair, i before j.

    Flags such as `weak:i` are joined by `;`, `-` stands for none. `se` are of the unclipped overlap, [n, n];
    `held` names the noise in them.
    """
    rows, values = [], (overlap.overlap, se, overlap.transfer, overlap.transfer.T)
    for i, j in itertools.combinations(range(len(overlap.names)), 2):
        flags = [f"{f}:{s}" for f, s in ((overlap.flags[i], "i"), (overlap.flags[j], "j")) if f]
        rows.append((overlap.names[i], overlap.names[j], *(v[i, j] for v in values), ";".join(flags) or "-", held))
    return frames.of_rows(rows, _PAIRS)


def read_overlap(path: str | pathlib.Path) -> MeasuredOverlap:
    """Reads a matrix like overlap.csv and, where it lies beside it, overlap_long.csv.

    Raises FileNotFoundError, or ValueError for a field that is no number, a matrix that is not square or symmetric with
    a diagonal of 1 (or NaN, an invalid corruption), an overlap below 0, rows named otherwise than columns, repeated
    names, or an overlap_long.csv of another matrix.
    """
    path = pathlib.Path(path)
    (first, *names), rows = _read(path)
    if first != "corruption" or not names:
        raise ValueError(f"{path}: expected the header corruption,<name>,<name>,..., found {','.join((first, *names))}")
    if len(rows) != len(names):
        raise ValueError(f"{path}: expected a square matrix, found {len(rows)} rows and {len(names)} columns")
    if wrong := [pair for pair in zip(names, (row[0] for row in rows)) if pair[0] != pair[1]]:
        name, found = wrong[0]
        raise ValueError(f"{path}: expected the row of {name!r} (rows in the order of the columns), found {found!r}")
    matrix = np.array([[_number(path, text) for text in row[1:]] for row in rows])
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path}: expected every name once, found {repeated} repeated")
    unequal = ~np.isclose(matrix, matrix.T, rtol=0, atol=_SYMMETRY, equal_nan=True)
    for i, j in np.argwhere(unequal):
        raise ValueError(
            f"{path}: expected a symmetric matrix, found {matrix[i, j]} for ({names[i]}, {names[j]}) "
            f"and {matrix[j, i]} for ({names[j]}, {names[i]})"
        )
    for k in np.flatnonzero(np.abs(np.nan_to_num(np.diag(matrix), nan=1) - 1) > _SYMMETRY):
        raise ValueError(f"{path}: expected 1 (or nan) on the diagonal, found {matrix[k, k]} for {names[k]}")
    for i, j in np.argwhere(matrix < 0):
        raise ValueError(
            f"{path}: expected overlaps from 0 up, clipped as published, found {matrix[i, j]} for ({names[i]}, {names[j]})"
        )
    beside = path.with_name("overlap_long.csv")
    if not beside.is_file():
        return MeasuredOverlap(tuple(names), matrix, files=(path,))
    unclipped, se, weak = _read_pairs(beside, names, matrix)
    return MeasuredOverlap(tuple(names), matrix, unclipped, se, (path, beside), tuple(n for n in names if n in weak))


def _read_pairs(path, names, overlap):
    """(unclipped overlap, its standard errors, weak corruptions) of overlap_long.csv, which must be of the matrix beside it."""
    header, rows = _read(path)
    if tuple(header) not in (_PAIRS, _PAIRS[:-1]):
        raise ValueError(f"{path}: expected the header {','.join(_PAIRS)}, found {','.join(header)}")
    index = {name: k for k, name in enumerate(names)}
    unclipped, se = np.eye(len(names)), np.full((len(names), len(names)), np.nan)
    missing = set(itertools.combinations(range(len(names)), 2))
    weak = set()
    for i, j, *texts, flags in (row[:7] for row in rows):
        weak |= {name for name, place in ((i, "i"), (j, "j")) if f"weak:{place}" in flags.split(";")}
        value, error, *transfer = (_number(path, text) for text in texts)
        if i not in index or j not in index:
            continue
        at = tuple(sorted((index[i], index[j])))
        if at not in missing:
            raise ValueError(f"{path}: expected every pair of two names once, found {i},{j} again")
        missing.remove(at)
        if not np.isclose(value, overlap[at], rtol=0, atol=_SYMMETRY, equal_nan=True):
            raise ValueError(
                f"{path}: expected the overlaps of the matrix beside it, found {value} instead of {overlap[at]} for ({i}, {j})"
            )
        se[at] = se[at[::-1]] = error
        unclipped[at] = unclipped[at[::-1]] = sum(transfer) / 2
    if missing:
        pair = tuple(names[k] for k in min(missing))
        raise ValueError(f"{path}: expected a line for every pair, found {len(missing)} missing, such as {pair}")
    return unclipped, se, weak


def _read(path):
    """(header, rows) of a table as text; lines that start with `#` do not count."""
    if not path.is_file():
        raise FileNotFoundError(f"expected a table at {path}, found no file")
    try:
        table = pd.read_csv(path, header=None, dtype=str, keep_default_na=False, comment="#", skipinitialspace=True)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected a table of comma-separated values, found {error}".rstrip()) from None
    header, *rows = table.to_numpy().tolist()
    return header, rows


def _number(path, text):
    try:
        value = float(text)
    except ValueError:
        value = np.inf
    if np.isinf(value):
        raise ValueError(f"{path}: expected a finite number or nan, found {text!r}")
    return value
