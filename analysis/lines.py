"""The tables of a study: CSV with a header line, read strictly and written atomically.

Lines that start with `#` and empty lines are skipped. Names hold no comma, quote, `#` or white
space, so no quoting is needed. Every refusal names the file, the line, what was expected and what
was found.

The first line of a table that a command wrote gives the digest of those below: a table that was
edited is refused. One without a digest is taken as it is.
"""

import hashlib
import pathlib
import re
from collections.abc import Iterable, Iterator, Sequence

from runtime.files import write_atomically
from runtime.log import log

_NOT_IN_NAMES = r"\s,\"'#"
NAME = re.compile(rf"[^{_NOT_IN_NAMES}]+")
_SEAL = re.compile(r"#.* \| sha256 of the lines below ([0-9a-f]{64})\s*")


class EditedTableError(ValueError):
    """A table does not have the digest that its first line gives."""


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
    seal = _SEAL.fullmatch(first)
    if not seal:
        return None
    lines = (line.removesuffix("\r") for line in rest.split("\n"))
    return _digest([line for line in lines if line and not line.startswith("#")]) == seal[1]


def as_name(text: str) -> str:
    """Spells text as a name that tables can hold: each run of what they cannot becomes `_`."""
    return re.sub(rf"[{_NOT_IN_NAMES}]+", "_", text)


def _digest(lines):
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _warn_if_edited(path):
    if path.is_file() and sealed(path.read_bytes().decode("utf-8", "replace")) is False:
        log.warning("%s was edited. It is derived from other files, and written again.", path)


def format_field(value: object) -> str:
    """Writes one field: shortest exact form of a float, `nan` for an undefined one."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, str) and not NAME.fullmatch(value):
        raise ValueError(f"expected text without commas, quotes, # or white space, found {value!r}")
    return repr(value) if isinstance(value, float) else str(value)
