"""The result files of a study: CSV with a header line, read strictly and written atomically.

    counts.csv        model,seed,corruption,severity,correct,total       what is measured
    scores.csv        the same and accuracy, error, R, with standard errors   derived, for people
    overlap.csv       corruption,<name>,<name>,...                       square, symmetric
    overlap_long.csv  i,j,O,se,T_ij,T_ji,flags                           one line per pair i before j

Lines that start with `#` and empty lines are skipped. Names hold no comma, quote, `#` or white
space, so no quoting is needed. Every refusal names the file, the line, what was expected and what
was found.

The first line of a table that a command wrote gives the digest of those below: a table that was
edited is refused. One without a digest is taken as it is.
"""

import hashlib
import math
import pathlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from runtime.files import write_atomically
from runtime.log import log

COUNTS_HEADER = ("model", "seed", "corruption", "severity", "correct", "total")
SCORES_HEADER = (*COUNTS_HEADER, "accuracy", "accuracy_se", "error", "error_se", "R", "R_se")
CLEAN = "clean"
NATURAL = "natural/"  # before the name of a natural shift, which is a condition too
OF_CLASSES = "clean/"  # before the same name: clean images of the same classes
STANDARD = "standard"
RANDOM = "random"
_SEAL = re.compile(r"#.* \| sha256 of the lines below ([0-9a-f]{64})\s*")
_NAME = re.compile(r"[^\s,\"'#]+")
_INTEGER = re.compile(r"0|[1-9][0-9]*")
_FRACTION = re.compile(r"[0-9]+\.[0-9]+(e-[0-9]+)?|[1-9][0-9]*e-[0-9]+")


class EditedTableError(ValueError):
    """A table does not have the digest that its first line gives."""


class Count(NamedTuple):
    """Correct answers of one model on one test set.

    Attributes:
      model: name of the corruption it was trained with, or `standard`.
      seed: seed of the training run, >= 0.
      corruption: qualified name of the test corruption, or `clean`.
      severity: integer level, fraction of the range (float), or `random` (drawn per image);
        0 for `clean`.
      correct: images classified correctly, 0..total.
      total: images shown, >= 1.
    """

    model: str
    seed: int
    corruption: str
    severity: int | float | str
    correct: int
    total: int

    @property
    def key(self):
        """What identifies the measurement."""
        return self[:4]


def check_count(count: Count) -> Count:
    """Checks a count and normalises its severity (None is `random`, or 0 for clean).

    Raises:
      ValueError: a name that a table cannot hold, a severity that does not fit, or counts outside
        0 <= correct <= total, total >= 1.
    """
    model, seed, corruption, severity, correct, total = count
    for what, name in (("model", model), ("corruption", corruption)):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"expected a {what} name without commas, quotes, # or white space, found {name!r}")
    seed, correct, total = int(seed), int(correct), int(total)
    if seed < 0:
        raise ValueError(f"expected a seed >= 0, found {seed}")
    if total < 1 or not 0 <= correct <= total:
        raise ValueError(f"expected 0 <= correct <= total and total >= 1, found correct {correct}, total {total}")
    if severity is None:
        severity = 0 if corruption == CLEAN else RANDOM
    if isinstance(severity, str):
        valid = severity == RANDOM
    else:
        severity = severity.item() if hasattr(severity, "item") else severity
        valid = isinstance(severity, int | float) and math.isfinite(severity) and severity >= 0
    if not valid:
        raise ValueError(f"expected a severity that is a level, a fraction or 'random', found {severity!r}")
    if corruption == CLEAN and severity != 0:
        raise ValueError(f"expected severity 0 for clean images, found {severity!r}")
    if corruption == CLEAN:
        severity = 0
    return Count(model, seed, corruption, severity, correct, total)


def read_counts(path: str | pathlib.Path, *, edited: bool = False) -> list[Count]:
    """Reads counts.csv into a list of `Count`, in the order of the file.

    Args:
      path: of the file.
      edited: read one that was edited, too.

    Raises:
      EditedTableError: it was edited.
      ValueError: a line that is cut off, has the wrong number of fields or a field of the wrong
        kind, correct > total, or a (model, seed, corruption, severity) that was given before.
    """
    rows, seen = [], {}
    for number, fields in read_lines(path, COUNTS_HEADER, edited=edited):
        where = f"{path}, line {number}"
        model, seed, corruption, severity, correct, total = fields
        try:
            numbers = _integer("seed", seed), _integer("correct", correct), _integer("total", total)
            count = check_count(Count(model, numbers[0], corruption, _severity(severity), *numbers[1:]))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        if count.key in seen:
            raise ValueError(
                f"{where}: expected every (model, seed, corruption, severity) once, found "
                f"{','.join(fields[:4])} again (first on line {seen[count.key]})"
            )
        seen[count.key] = number
        rows.append(count)
    return rows


def write_counts(path: str | pathlib.Path, counts: Iterable[Count | tuple], comment: str | None = None) -> None:
    """Writes counts.csv atomically, in the order given.

    Args:
      path: file to write.
      counts: iterable of `Count` or of tuples in its order.
      comment: optional text for a first line that starts with `#` (line breaks become spaces).
    """
    counts = [check_count(Count(*count)) for count in counts]
    keys = set()
    for count in counts:
        if count.key in keys:
            raise ValueError(f"{path}: expected every measurement once, found {count.key} twice")
        keys.add(count.key)
    write_rows(path, COUNTS_HEADER, counts, comment)


def read_lines(
    path: str | pathlib.Path, header: Sequence[str] | None = None, *, edited: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, fields) of a table after its header; all fields are non-empty strings.

    Args:
      path: file to read.
      header: expected column names; None yields the header line too and takes its width.
      edited: read a table that was edited, too.

    Raises:
      FileNotFoundError: no such file.
      EditedTableError: it was edited.
      ValueError: another header, a line of another width or with an empty field, a last line
        without its line end (a file that is still being written, or was cut off).
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"expected a table at {path}, found no file")
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8 text, found {error.reason}") from None
    lines = text.split("\n")
    if lines[-1]:
        raise ValueError(
            f"{path}, line {len(lines)}: expected a line end, found the file cut off after {lines[-1][-40:]!r}"
        )
    width = None
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\r")
        if not line or line.startswith("#"):
            continue
        fields = line.split(",")
        if width is None:
            width = len(fields)
            if header is not None:
                if tuple(fields) != tuple(header):
                    raise ValueError(f"{path}, line {number}: expected the header {','.join(header)}, found {line}")
                continue
        if len(fields) != width or not all(fields):
            raise ValueError(
                f"{path}, line {number}: expected {width} non-empty fields, found {len(fields)} in {line!r}"
            )
        yield number, fields
    if width is None:
        raise ValueError(f"{path}: expected a header line, found an empty table")
    if not edited and sealed(text) is False:
        raise EditedTableError(
            f"{path}: expected lines with the digest that its first line gives, found others: it was edited. Give the "
            "command that wrote it again; for a table of your own remove the first line"
        )


def write_rows(
    path: str | pathlib.Path, header: Sequence[str], rows: Iterable[Iterable], comment: str | None = None
) -> None:
    """Writes a table atomically; floats are written so that they are read back exactly.

    Args:
      path: file to write.
      header: names of the columns.
      rows: their values.
      comment: where it comes from, for a first line that starts with `#` and ends in the digest of
        the others; without it there is no such line.
    """
    _warn_if_edited(pathlib.Path(path))
    lines = [",".join(header)]
    lines.extend(",".join(format_field(field) for field in row) for row in rows)
    if comment is not None:
        lines.insert(0, f"# {' '.join(str(comment).split())} | sha256 of the lines below {_digest(lines)}")
    write_atomically(path, "\n".join(lines) + "\n")


def sealed(text: str) -> bool | None:
    """Says whether a table has the digest that its first line gives; None where it gives none.

    Line ends, empty lines and comments do not count.
    """
    first, _, rest = text.partition("\n")
    found = _SEAL.fullmatch(first)
    if not found:
        return None
    lines = (line.removesuffix("\r") for line in rest.split("\n"))
    return _digest([line for line in lines if line and not line.startswith("#")]) == found[1]


def _digest(lines):
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _warn_if_edited(path):
    if path.is_file() and sealed(path.read_bytes().decode("utf-8", "replace")) is False:
        log.warning("%s was edited. It is derived from other files, and written again.", path)


def format_field(value: object) -> str:
    """Writes one field: shortest exact form of a float, `nan` for an undefined one."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, str) and not _NAME.fullmatch(value):
        raise ValueError(f"expected text without commas, quotes, # or white space, found {value!r}")
    return repr(value) if isinstance(value, float) else str(value)


def _integer(what, text):
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"expected an integer {what}, found {text!r}")
    return int(text)


def _severity(text):
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) else text
