"""Files of a severity scan: what a benchmark of dissimilar corruptions is selected from. One run is
two files.

    NAME.csv   role,corruption,level,error         error rate of network M in percent, on the whole test set
    NAME.npz   `role|corruption|level` -> [D]      mean penultimate feature of network Phi

`role` is `candidate` (levels 1..10) or `reference` (levels 1..5). M and Phi are trained with
different seeds; each run has its own two and its own images. Both files hold the same (role,
corruption, level).

What the published rankings were made from is not published. In the released code the features of
two CIFAR candidates (concentric_sine_waves, chromatic_aberration) come from misread parameters, so
a ranking may differ for that alone.
"""

import dataclasses
import pathlib

import numpy as np

from analysis.lines import read_lines, write_rows
from runtime import files

HEADER = ("role", "corruption", "level", "error")
LEVELS = {"candidate": 10, "reference": 5}
_NAMED = 8  # missing rows that an error lists


@dataclasses.dataclass(frozen=True)
class Scan:
    """Errors and features of n candidates at 10 levels and of m references at 5.

    Attributes:
      candidates, references: names, each once.
      candidate_errors, reference_errors: percent in [0, 100], float64 [n, 10] and [m, 5].
      candidate_features, reference_features: float32 [n, 10, D] and [m, 5, D].
    """

    candidates: tuple[str, ...]
    candidate_errors: np.ndarray
    candidate_features: np.ndarray
    references: tuple[str, ...]
    reference_errors: np.ndarray
    reference_features: np.ndarray

    def __post_init__(self):
        widths = set()
        for role, names, errors, features in self.parts():
            shape = (len(names), LEVELS[role])
            if not names or len(set(names)) != len(names):
                raise ValueError(f"expected at least one {role}, each once, found {list(names)}")
            if errors.shape != shape or features.ndim != 3 or features.shape[:2] != shape:
                raise ValueError(
                    f"expected errors {shape} and features ({shape[0]}, {shape[1]}, D) of the {role}s, "
                    f"found shapes {errors.shape} and {features.shape}"
                )
            # Written so that NaN is refused too.
            if not np.all((errors >= 0) & (errors <= 100)):
                raise ValueError(f"expected errors of the {role}s in percent, 0..100, found others")
            if not np.isfinite(features).all():
                raise ValueError(f"expected finite features of the {role}s, found NaN or infinity")
            widths.add(features.shape[2])
        if len(widths) > 1:
            raise ValueError(f"expected features of one width, found {sorted(widths)}")

    def parts(self):
        """(role, names, errors, features) of the candidates and of the references."""
        return (
            ("candidate", self.candidates, self.candidate_errors, self.candidate_features),
            ("reference", self.references, self.reference_errors, self.reference_features),
        )


def features_path(path: str | pathlib.Path) -> pathlib.Path:
    """Tells where the features of the scan with the table `path` are."""
    return pathlib.Path(path).with_suffix(".npz")


def write_scan(path: str | pathlib.Path, scan: Scan, comment: str | None = None) -> None:
    """Writes a scan, each file atomically, the table last.

    Args:
      path: the table, `*.csv`.
      scan: a `Scan`.
      comment: optional text for the table's first line.
    """
    path = _table_path(path)
    rows, features = [], {}
    for role, names, errors, values in scan.parts():
        for i, name in enumerate(names):
            for k in range(LEVELS[role]):
                rows.append((role, name, k + 1, float(errors[i, k])))
                features[_key(role, name, k + 1)] = np.asarray(values[i, k], np.float32)
    files.write_arrays(features_path(path), features)
    write_rows(path, HEADER, rows, comment)


def read_scan(path: str | pathlib.Path) -> Scan:
    """Reads a scan; names come in the order of the table.

    Raises:
      FileNotFoundError: no table, or no features beside it.
      ValueError: another header, a row of the wrong kind or given twice; rows or features that are
        missing or have no counterpart (they are named); features of different widths.
    """
    path = _table_path(path)
    errors = _read_errors(path)
    features = _read_features(features_path(path))
    names = {role: tuple(dict.fromkeys(name for r, name, _ in errors if r == role)) for role in LEVELS}
    expected = [(role, name, k) for role in LEVELS for name in names[role] for k in range(1, LEVELS[role] + 1)]
    _refuse_missing(path, "a row for every level", [row for row in expected if row not in errors])
    beside = features_path(path)
    _refuse_missing(beside, "features for every row", [row for row in expected if _key(*row) not in features])
    foreign = sorted(set(features) - {_key(*row) for row in expected})
    if foreign:
        raise ValueError(f"{beside}: expected features of the rows of {path.name} only, found {foreign[:_NAMED]}")
    width = features[_key(*expected[0])].shape if expected else ()
    for row in expected:
        if features[_key(*row)].shape != width or len(width) != 1:
            raise ValueError(
                f"{beside}: expected one vector of the same width for every row, found shape "
                f"{features[_key(*row)].shape} for {_show(row)} and {width} for {_show(expected[0])}"
            )

    def table(values, role):
        levels = range(1, LEVELS[role] + 1)
        return np.array([[values(role, name, k) for k in levels] for name in names[role]])

    parts = []
    for role in LEVELS:
        parts += [names[role], table(lambda *row: errors[row], role), table(lambda *row: features[_key(*row)], role)]
    try:
        return Scan(*parts)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _read_errors(path):
    """{(role, corruption, level): error in percent} in the order of the table."""
    errors = {}
    for number, (role, name, level, error) in read_lines(path, HEADER):
        where = f"{path}, line {number}"
        if role not in LEVELS:
            raise ValueError(f"{where}: expected the role {' or '.join(LEVELS)}, found {role!r}")
        if level not in {str(k) for k in range(1, LEVELS[role] + 1)}:
            raise ValueError(f"{where}: expected a level 1..{LEVELS[role]} of a {role}, found {level!r}")
        row = (role, name, int(level))
        if row in errors:
            raise ValueError(f"{where}: expected every (role, corruption, level) once, found {_show(row)} again")
        try:
            errors[row] = float(error)
        except ValueError:
            raise ValueError(f"{where}: expected an error in percent, found {error!r}") from None
        if not 0 <= errors[row] <= 100:
            raise ValueError(f"{where}: expected an error in percent, 0..100, found {error}")
    return errors


def _read_features(path):
    if not path.is_file():
        raise FileNotFoundError(f"expected the features of the scan at {path}, found no file")
    features = files.read_arrays(path)
    if wrong := [name for name, array in features.items() if array.dtype.kind not in "fiu"]:
        raise files.DamagedFileError(f"{path}: expected features that are numbers, found others for {wrong[:_NAMED]}")
    return features


def _refuse_missing(path, expected, missing):
    if missing:
        shown = ", ".join(map(_show, missing[:_NAMED])) + (" ..." if len(missing) > _NAMED else "")
        raise ValueError(f"{path}: expected {expected}, found {len(missing)} missing: {shown}")


def _key(role, name, level):
    return f"{role}|{name}|{level}"


def _show(row):
    return "{} {} level {}".format(*row)


def _table_path(path):
    path = pathlib.Path(path)
    if path.suffix != ".csv":
        raise ValueError(f"expected the table of a scan, *.csv, found {path}")
    return path
