"""The result files of a study: CSV with a header line, read strictly and written atomically.

    counts.csv        model,seed,corruption,severity,correct,total       what is measured
    scores.csv        the same and accuracy, error, R, with standard errors   derived, for people
    overlap.csv       corruption,<name>,<name>,...                       square, symmetric
    overlap_long.csv  i,j,O,se,T_ij,T_ji,flags                           one line per pair i before j

Lines that start with `#` and empty lines are skipped. Names hold no comma, quote, `#` or white
space, so no quoting is needed. Every refusal names the file, the line, what was expected and what
was found.
"""

import math
import pathlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from runtime.files import write_atomically

COUNTS_HEADER = ("model", "seed", "corruption", "severity", "correct", "total")
SCORES_HEADER = (*COUNTS_HEADER, "accuracy", "accuracy_se", "error", "error_se", "R", "R_se")
CLEAN = "clean"
STANDARD = "standard"
RANDOM = "random"
_NAME = re.compile(r"[^\s,\"'#]+")
_INTEGER = re.compile(r"0|[1-9][0-9]*")
_FRACTION = re.compile(r"[0-9]+\.[0-9]+(e-[0-9]+)?|[1-9][0-9]*e-[0-9]+")


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


def read_counts(path: str | pathlib.Path) -> list[Count]:
    """Reads counts.csv into a list of `Count`, in the order of the file.

    Raises:
      ValueError: a line that is cut off, has the wrong number of fields or a field of the wrong
        kind, correct > total, or a (model, seed, corruption, severity) that was given before.
    """
    rows, seen = [], {}
    for number, fields in read_lines(path, COUNTS_HEADER):
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


def read_lines(path: str | pathlib.Path, header: Sequence[str] | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, fields) of a table after its header; all fields are non-empty strings.

    Args:
      path: file to read.
      header: expected column names; None yields the header line too and takes its width.

    Raises:
      FileNotFoundError: no such file.
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


def write_rows(
    path: str | pathlib.Path, header: Sequence[str], rows: Iterable[Iterable], comment: str | None = None
) -> None:
    """Writes a table atomically; floats are written so that they are read back exactly."""
    lines = [] if comment is None else ["# " + " ".join(str(comment).split())]
    lines.append(",".join(header))
    lines.extend(",".join(format_field(field) for field in row) for row in rows)
    write_atomically(path, "\n".join(lines) + "\n")


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
