"""Tables of a workdir held against the answers they are derived from: the answers are the truth."""

import os
import pathlib
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from analysis import answers, tables
from analysis.answers import Key
from analysis.lines import EditedTableError
from analysis.tables import Count
from runtime import bindings
from runtime.log import log

_STEM = re.compile(r"(?P<corruption>.+?)-(?P<severity>random(?=(-\d+)*$)|\d+(\.\d+)?(e-\d+)?$)(-\d+)*")


class Kept(NamedTuple):
    """The correct answers of a model that a file in `answers` holds.

    Attributes:
      path: of the file.
      correct: how many.
      packed: bytes they take, ceil(N / 8).
      number: N, or 0 where the file does not tell.
      digest: of the model that gave them, or "".
    """

    path: pathlib.Path
    correct: int
    packed: int
    number: int
    digest: str

    def fits(self, count: Count) -> bool:
        """Whether a row says the same."""
        total = self.number or count.total
        return (self.correct, total) == (count.correct, count.total) and -(-total // 8) == self.packed


def condition_of(stem: str) -> tuple[str, int | float | str] | None:
    """Tells (corruption, severity) of a file of answers by its name; None for another name."""
    match = _STEM.fullmatch(stem)
    if not match:
        return None
    severity = match["severity"]
    if severity != tables.RANDOM:
        severity = int(severity) if severity.isdecimal() else float(severity)
    return match["corruption"].replace(".", "/", 1), severity


def files_of(folder: pathlib.Path) -> list[tuple[pathlib.Path, tuple[str, int | float | str]]]:
    """Lists the files of answers in a folder with the (corruption, severity) of each, the newest
    first.
    """
    newest_first = sorted(folder.glob("*.npz"), key=lambda path: -path.stat().st_mtime_ns)
    named = ((path, condition_of(path.stem)) for path in newest_first)
    return [(path, condition) for path, condition in named if condition is not None]


def kept(folder: pathlib.Path) -> dict[tuple, list[Kept]]:
    """Counts the answers in the files of a folder, by (model, seed, corruption, severity), the
    newest file first.

    Random severities drawn from different levels are all called `random`: there may be several.

    Raises:
      DamagedFileError: a file holds no answers.
    """
    by_cell = {}
    for path, condition in files_of(folder):
        packed, made_from = answers.read_packed(path)
        for key, bits in packed.items():
            correct = int(np.bitwise_count(bits).sum())
            entry = Kept(path, correct, len(bits), made_from.number, made_from.models.get(key, ""))
            by_cell.setdefault((*key, *condition), []).append(entry)
    return by_cell


def read_counts(path: str | os.PathLike) -> list[Count]:
    """Reads a counts.csv and holds it against the answers beside it, where there are some.

    Raises:
      FileNotFoundError: no such file.
      DamagedFileError: answers that cannot be read.
      ValueError: a broken or edited table, one that the answers contradict, or answers of models
        that have been trained again since.
    """
    path = pathlib.Path(path)
    counts = tables.read_counts(path)
    answered = kept(path.parent / "answers")
    for count in counts:
        entries = answered.get(count.key, [])
        if entries and not any(entry.fits(count) for entry in entries):
            raise ValueError(
                f"{path}: expected {_said(entries[0].correct, count)}, as {entries[0].path} says, found {count.correct} of "
                f"{count.total}; run eval.py or overlap.py again, which writes the table from the answers"
            )
        if entries and all(_stale(entry, bindings.model_digest(path.parent, *count.key[:2])) for entry in entries):
            raise ValueError(
                f"{path}: expected {_said(entries[0].correct, count)} of the model that is there, found those of an "
                "earlier one, which was trained again since; run eval.py or overlap.py again"
            )
    return counts


def recount(folder: pathlib.Path, current: Iterable[Count], models: Mapping[Key, str]) -> list[Count]:
    """Makes the rows of counts.csv from the answers that a folder keeps, and warns of a table there
    that differs.

    Rows stand in the order of the table as it was, new ones after them. Where there is none, or it
    was edited, all answers are counted, of models that have answers to clean images, which R is
    relative to.

    Args:
      folder: with `answers` and perhaps counts.csv.
      current: what was evaluated just now.
      models: {(model, seed): digest} of the models as they are; answers of other ones are left out.

    Raises:
      DamagedFileError: answers that cannot be read.
      ValueError: counts.csv was edited and holds rows whose answers are gone.
    """
    path = folder / "counts.csv"
    before, edited = _read_table(path)
    rows = {count.key: count for count in current}
    fresh, stale = {}, set()
    everything = edited or not before  # else what the table left out, such as answers to mixtures, stays out
    for key, entries in kept(folder / "answers").items():
        if not everything and key not in before:
            continue
        of_model = [entry for entry in entries if not _stale(entry, models.get(key[:2], ""))]
        if key not in rows and of_model:
            fresh[key] = next((entry for entry in of_model if key in before and entry.fits(before[key])), of_model[0])
        elif key not in rows:
            stale.add(key)
    number = next((count.total for count in rows.values()), 0)
    rows |= {key: Count(*key, entry.correct, _total(entry, before.get(key), number)) for key, entry in fresh.items()}
    gone = [key for key in before if key not in rows and key not in stale]
    if gone and edited:
        raise ValueError(
            f"{path} was edited, and the answers behind {len(gone)} of its rows are gone (the first: {_name(gone[0])}): "
            "what is true cannot be told. Restore it, or move it away and evaluate again"
        )
    _warn_of_differences(path, before, rows)
    if stale:
        log.warning(
            "%d conditions were answered by models that have been trained again since (the first: %s): they are left "
            "out of %s until they are evaluated again.",
            len(stale),
            _name(min(stale, key=str)),
            path,
        )
    if gone:
        log.warning(
            "The answers behind %d rows of %s are gone (the first: %s): they stay as they are, unchecked.",
            len(gone),
            path,
            _name(gone[0]),
        )
    rows |= {key: before[key] for key in gone}
    clean = {key[:2] for key in rows if key[2] == tables.CLEAN}
    return [rows[key] for key in dict.fromkeys((*before, *rows)) if key in rows and key[:2] in clean]


def write_counts(path: pathlib.Path, counts: Iterable[Count | tuple], comment: str) -> list[Count]:
    """Writes counts.csv and reads it back, after a warning of what the table there says
    otherwise.
    """
    counts = [Count(*count) for count in counts]
    _warn_of_differences(path, _read_table(path)[0], {count.key: count for count in counts})
    tables.write_counts(path, counts, comment)
    return tables.read_counts(path)


def _total(entry, row, number):
    """N of the answers in a file: as it says, in an old one as the row of the table, where that can
    be.
    """
    if entry.number or row is None:
        return entry.number or number
    return row.total if -(-row.total // 8) == entry.packed else number


def _read_table(path):
    """({key: row}, whether it was edited) of counts.csv; no rows of one that cannot be read."""
    if not path.exists():
        return {}, False
    try:
        return {count.key: count for count in tables.read_counts(path)}, False
    except EditedTableError:
        return {count.key: count for count in tables.read_counts(path, edited=True)}, True
    except ValueError as error:
        log.warning("%s; it is written again from the answers.", error)
        return {}, False


def _warn_of_differences(path, before, rows):
    """Says where a table differs from the rows that it is written again with."""
    wrong = [key for key in before if key in rows and before[key] != rows[key]]
    if wrong:
        was, now = before[wrong[0]], rows[wrong[0]]
        log.warning(
            "%s said otherwise than the answers in %d rows (%s: %d of %d, the answers say %d of %d): it is written again "
            "from the answers.",
            path,
            len(wrong),
            _name(wrong[0]),
            was.correct,
            was.total,
            now.correct,
            now.total,
        )


def _stale(entry, digest):
    """Whether answers are of another model than the one with this digest; what is not known counts
    as the same.
    """
    return bool(entry.digest and digest and entry.digest != digest)


def _name(key):
    model, seed, corruption, severity = key
    return f"{model}, seed {seed}, {corruption} at {severity}"


def _said(correct, count):
    return f"{correct} correct answers of {_name(count.key)}"
