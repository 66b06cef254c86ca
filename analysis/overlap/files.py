"""overlap.csv and overlap_long.csv: the overlap matrix for people and programs, and its details."""

import pathlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from analysis.lines import read_lines, sealed, write_rows
from analysis.overlap.score import Overlap

LONG_HEADER = ("i", "j", "O", "se", "T_ij", "T_ji", "flags")
_SYMMETRY = 1e-9
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


class Pair(NamedTuple):
    """One line of overlap_long.csv: overlap of i and j, its standard error, both directed transfers
    (trained with the first, tested on the second) and flags such as `weak:i` joined by `;`, or
    `-`."""

    i: str
    j: str
    O: float  # noqa: E741 (the column's name)
    se: float
    T_ij: float
    T_ji: float
    flags: str


class MeasuredOverlap(NamedTuple):
    """The overlaps of a study as its files hold them.

    Attributes:
      names: corruptions, n of them.
      overlap: O, [n, n], of overlap.csv.
      unclipped: overlap before it is clipped at 0, [n, n], diagonal 1; None without
        overlap_long.csv.
      se: standard errors of `unclipped`, [n, n], NaN on the diagonal; None without
        overlap_long.csv.
      files: those that were read.
    """

    names: tuple[str, ...]
    overlap: np.ndarray
    unclipped: np.ndarray | None
    se: np.ndarray | None
    files: tuple[pathlib.Path, ...]

    def ordered(self, names: Sequence[str]) -> "MeasuredOverlap":
        """Puts the corruptions in the order of `names`, which must be the same."""
        order = [self.names.index(name) for name in names]
        matrices = (None if m is None else m[np.ix_(order, order)] for m in (self.overlap, self.unclipped, self.se))
        return MeasuredOverlap(tuple(names), *matrices, self.files)


def read_measured(path: str | pathlib.Path) -> MeasuredOverlap:
    """Reads overlap.csv at `path` and, where it lies beside it, overlap_long.csv.

    Raises:
      FileNotFoundError: no overlap.csv, or in a workdir of overlap.py no overlap_long.csv.
      ValueError: a broken table, or an overlap_long.csv of another study.
    """
    path = pathlib.Path(path)
    names, overlap = read_overlap(path)
    beside = path.with_name("overlap_long.csv")
    if not beside.is_file():
        if path.with_name("counts.csv").is_file():
            raise FileNotFoundError(
                f"expected {beside} beside the matrix of a study, found none; run overlap.py again, which writes it"
            )
        return MeasuredOverlap(names, overlap, None, None, (path,))
    pairs = read_overlap_long(beside)
    if sealed(beside.read_text(encoding="utf-8")) and sealed(path.read_text(encoding="utf-8")) is None:
        raise ValueError(
            f"{path}: expected a first line with a digest of the lines below, as {beside.name} has, found none: it was "
            "edited; run overlap.py again, which writes it"
        )
    try:
        unclipped = unclipped_matrix(pairs, names)
        recorded = pair_matrix(pairs, names, lambda pair: pair.O)
        se = pair_matrix(pairs, names, lambda pair: pair.se)
    except ValueError as error:
        raise ValueError(f"{beside}: {error}") from None
    differs = ~np.isclose(recorded, overlap, rtol=0, atol=_SYMMETRY, equal_nan=True)
    np.fill_diagonal(differs, False)
    if differs.any():
        i, j = np.argwhere(differs)[0]
        raise ValueError(
            f"{beside}: expected the overlaps of the matrix beside it, found {recorded[i, j]} instead of "
            f"{overlap[i, j]} for ({names[i]}, {names[j]})"
        )
    return MeasuredOverlap(names, overlap, unclipped, se, (path, beside))


def write_overlap(
    path: str | pathlib.Path, names: Iterable[str], matrix: np.ndarray, comment: str | None = None
) -> None:
    """Writes a square overlap matrix [n, n] with its names as header and first column,
    atomically.
    """
    names, matrix = tuple(names), np.asarray(matrix, float)
    _check_matrix("matrix", names, matrix)
    rows = ((name, *row) for name, row in zip(names, matrix, strict=True))
    write_rows(path, ("corruption", *names), rows, comment)


def read_overlap(path: str | pathlib.Path) -> tuple[tuple[str, ...], np.ndarray]:
    """Reads overlap.csv: (names, float64 matrix [n, n]); undefined entries are NaN.

    Raises:
      FileNotFoundError: no such file.
      ValueError: a line that is cut off, a field that is no number, a matrix that is not square,
        rows named otherwise than columns, repeated names, or a matrix that is not symmetric with a
        diagonal of 1 (or NaN, an invalid corruption).
    """
    lines = list(read_lines(path))
    number, header = lines[0]
    names = tuple(header[1:])
    if header[0] != "corruption" or not names:
        raise ValueError(
            f"{path}, line {number}: expected the header corruption,<name>,<name>,..., found {','.join(header)}"
        )
    rows, values = lines[1:], []
    if len(rows) != len(names):
        raise ValueError(f"{path}: expected a square matrix, found {len(rows)} rows and {len(names)} columns")
    for (number, fields), name in zip(rows, names, strict=True):
        where = f"{path}, line {number}"
        if fields[0] != name:
            raise ValueError(
                f"{where}: expected the row of {name!r} (rows in the order of the columns), found {fields[0]!r}"
            )
        values.append([_number(where, text) for text in fields[1:]])
    matrix = np.array(values)
    _check_matrix(path, names, matrix)
    return names, matrix


def write_overlap_long(path: str | pathlib.Path, overlap: Overlap, comment: str | None = None) -> None:
    """Writes one line per pair of an `analysis.overlap.Overlap`, i before j, atomically."""
    rows = []
    for i, first in enumerate(overlap.names):
        for j in range(i + 1, len(overlap.names)):
            flags = [f"{f}:{s}" for f, s in ((overlap.flags[i], "i"), (overlap.flags[j], "j")) if f]
            values = (overlap.overlap, overlap.se, overlap.transfer, overlap.transfer.T)
            rows.append(Pair(first, overlap.names[j], *(v[i, j] for v in values), ";".join(flags) or "-"))
    write_rows(path, LONG_HEADER, rows, comment)


def read_overlap_long(path: str | pathlib.Path) -> list[Pair]:
    """Reads overlap_long.csv into a list of `Pair`; refuses repeated pairs and fields of another
    kind.
    """
    pairs, seen = [], set()
    for number, (i, j, *values, flags) in read_lines(path, LONG_HEADER):
        where = f"{path}, line {number}"
        if i == j or frozenset((i, j)) in seen:
            raise ValueError(f"{where}: expected every pair of two names once, found {i},{j}")
        seen.add(frozenset((i, j)))
        pairs.append(Pair(i, j, *(_number(where, text) for text in values), flags))
    return pairs


def pair_matrix(pairs: Iterable[Pair], names: Sequence[str], value: Callable[[Pair], float]) -> np.ndarray:
    """Arranges `value(pair)` as a symmetric matrix [n, n] over names; NaN on the diagonal.

    Raises:
      ValueError: a pair of `names` is missing.
    """
    index = {name: k for k, name in enumerate(names)}
    matrix = np.full((len(index), len(index)), np.nan)
    missing = {frozenset((a, b)) for a in index for b in index if a != b}
    for pair in pairs:
        if pair.i in index and pair.j in index:
            i, j = index[pair.i], index[pair.j]
            matrix[i, j] = matrix[j, i] = value(pair)
            missing.discard(frozenset((pair.i, pair.j)))
    if missing:
        example = sorted(sorted(pair) for pair in missing)[0]
        raise ValueError(f"expected a line for every pair, found {len(missing)} missing, such as {example}")
    return matrix


def unclipped_matrix(pairs: Iterable[Pair], names: Sequence[str]) -> np.ndarray:
    """Computes the unclipped overlap [n, n] from the directed transfers: (T_ij + T_ji) / 2,
    diagonal 1.
    """
    matrix = pair_matrix(pairs, names, lambda pair: (pair.T_ij + pair.T_ji) / 2)
    np.fill_diagonal(matrix, 1.0)
    return matrix


def _check_matrix(where, names, matrix):
    if len(set(names)) != len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"{where}: expected every name once, found {repeated} repeated")
    if matrix.shape != (len(names), len(names)):
        raise ValueError(f"{where}: expected a square matrix of {len(names)} names, found shape {matrix.shape}")
    unequal = ~((np.abs(matrix - matrix.T) <= _SYMMETRY) | (np.isnan(matrix) & np.isnan(matrix.T)))
    if unequal.any():
        i, j = np.argwhere(unequal)[0]
        raise ValueError(
            f"{where}: expected a symmetric matrix, found {matrix[i, j]} for ({names[i]}, {names[j]}) "
            f"and {matrix[j, i]} for ({names[j]}, {names[i]})"
        )
    diagonal = np.diag(matrix)
    wrong = ~(np.isnan(diagonal) | (np.abs(diagonal - 1) <= _SYMMETRY))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(f"{where}: expected 1 (or nan) on the diagonal, found {diagonal[k]} for {names[k]}")


def _number(where, text):
    if text == "nan":
        return float("nan")
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{where}: expected a finite number or nan, found {text!r}")
    return float(text)
