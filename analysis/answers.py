"""The answers of a workdir, or of a folder of `corruptions.evaluate`: which test images every model answers correctly, a file
per condition (`corruptions.scoring.results`).

Counts, scores, errors, overlaps and selections follow from answers.
"""

import contextlib
import functools
import os
import pathlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from analysis.frames import CLEAN, RANDOM, STANDARD, Counted, Key, check_count
from analysis.trained import is_stale, trained_digest
from corruptions.scoring import results
from corruptions.scoring.conditions import file_stem
from corruptions.scoring.confidence import Confidence, decode
from corruptions.scoring.counts import Count
from corruptions.scoring.folder import earlier_files, is_folder, read_earlier, read_files
from corruptions.scoring.results import FOLDER, PLAIN, SCALED, SETS, Answered, Record, name_of
from runtime import artifacts, files
from runtime.command import refuse_imports
from runtime.files import DamagedFileError
from runtime.log import log

__all__ = [
    "ACCEPTED", "FOLDER", "PLAIN", "SCALED", "SETS", "Answered", "Answers", "Cell", "Key", "Record", "accepted", "file_stem",
    "name_of", "next_serial", "read", "read_answered", "read_file", "write",
]  # fmt: skip

ACCEPTED = "accepted.json"
Cell = tuple[str, int, str, int | float | str]
"""(model, seed, corruption, severity)."""


def write(folder: str | os.PathLike, answers: Mapping[Key, np.ndarray | Answered], record: Record) -> None:
    """Writes the answers {(model, seed): `Answered`, or bool [N] alone} under a condition to a folder of answers."""
    files.write_atomically(pathlib.Path(folder) / f"{record.stem}.npz", results.to_bytes(answers, record))


def read_file(path: str | os.PathLike) -> tuple[dict[Key, np.ndarray], Record]:
    """Reads one file of answers as `read_answered`, but only correctness: ({(model, seed): bool [N]}, their record)."""
    by_model, record = read_answered(path)
    return {key: answered.correct for key, answered in by_model.items()}, record


def read_answered(path: str | os.PathLike, *, content: bytes | None = None) -> tuple[dict[Key, Answered], Record]:
    """Reads one file of answers, see `corruptions.scoring.results.read_file`; DamagedFileError where it is damaged."""
    with _named_as_damaged():
        return results.read_file(path, content=content)


@contextlib.contextmanager
def _named_as_damaged():
    try:
        yield
    except ValueError as error:
        raise DamagedFileError(str(error)) from error


class Answers:
    """The answers of models under conditions, of files {record: {(model, seed): bool [N]}} as pairs in any order.

    Rows `random` may come from different sets of levels. The set with the highest serial number, which was asked for last,
    wins. Of files without serial numbers a selected set wins over all levels, and of several selected sets the first by
    its levels. Confidence is read from `folder` when it is asked for.

    Attributes:
      counts: correct answers of every cell: clean images first, then by corruption and severity, models in the order
        of their evaluation. A model without answers to clean images has none.

    Raises:
      ValueError: two files of one corruption have one serial number, as in folders that were put together.
    """

    def __init__(self, files: Iterable[tuple[Record, Mapping[Key, np.ndarray]]], folder: str | os.PathLike = ""):
        self._files, self._folder = list(files), pathlib.Path(folder)
        self._cells: dict[Cell, tuple[np.ndarray, Record]] = {}
        clean = {key for record, by_model in self._files if record.corruption == CLEAN for key in by_model}
        twins: dict[Cell, Record | None] = {}
        for record, by_model in sorted(self._files, key=lambda file: (_order(file[0]), _rank(file[0]))):
            for key in filter(clean.__contains__, by_model):
                cell = (*key, record.corruption, record.severity)
                before = self._cells[cell][1] if cell in self._cells else None
                twins[cell] = before if before and before.serial == record.serial > 0 else None
                self._cells[cell] = by_model[key], record
        if cell := next(filter(twins.get, twins), None):
            raise ValueError(
                f"{self._folder}: expected one file of {cell[2]} with the serial number {twins[cell].serial}, found "
                f"{twins[cell].stem}.npz and {self.record(cell).stem}.npz, as of two folders; remove one, or run eval.py on "
                "one, which then counts"
            )
        self.counts: list[Counted] = [
            check_count(cell[:2], Count(*cell[2:], int(bits.sum()), bits.size))
            for cell, (bits, _) in self._cells.items()
        ]

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._cells

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells)

    def correct(self, cell: Cell) -> np.ndarray:
        """Returns which images the model of a cell answers correctly, bool [N]."""
        return self._cells[cell][0]

    def confidence(
        self, corruption: str, severity: int | float | str, models: Iterable[Key] | None = None
    ) -> dict[tuple[str, int, str], Confidence]:
        """Reads the confidence of the models, or of some of them, under a condition: {(model, seed, set): `Confidence`}.

        Raises ValueError, which names the file, where a model answered before confidence was kept.
        """
        cells = [cell for cell in self._cells if cell[2:] == (corruption, severity)]
        if models is not None:
            cells = [cell for cell in cells if cell[:2] in set(models)]
        found: dict[tuple[str, int, str], Confidence] = {}
        read = functools.cache(self._answered)
        for cell in cells:
            key, path = cell[:2], self._folder / f"{self.record(cell).stem}.npz"
            correct, confidence = read(path)[key]
            if not confidence:
                raise ValueError(
                    f"{path}: expected answers with their confidence, found none of {key[0]}, seed {key[1]}, which was "
                    "evaluated before confidence was kept; remove the file and run the command that made it again"
                )
            found |= {(*key, name): decode(stored, correct) for name, stored in confidence.items()}
        return found

    def _answered(self, path):
        return read_answered(path)[0] if path.exists() else self._earlier[path.stem]

    @functools.cached_property
    def _earlier(self):
        """The answers in files of earlier forms: {stem: {(model, seed): `Answered`}}."""
        of_files = (found for file in earlier_files(self._folder.parent) for found in read_earlier(file))
        return {record.stem: by_model for record, by_model in of_files}

    def at_all_levels(self) -> "Answers":
        """Takes the answers whose random severities are drawn from all levels, as those of an overlap study are."""
        return Answers([file for file in self._files if file[0].levels is None], self._folder)

    def record(self, cell: Cell) -> Record:
        """Returns the record of the answers of a cell."""
        return self._cells[cell][1]

    def shown(self, cell: Cell) -> str:
        """Returns the digest of the images that the model of a cell was shown."""
        return artifacts.digest(self.record(cell).shown)

    @property
    def conditions(self) -> dict[str, Any]:
        """Describes the conditions of the errors, as `analysis.errors.reference` reads them."""
        described, whole = {}, {"dataset": "", "classes": 0, "image_shape": [], "preprocessing": ""}
        for cell in self._cells:
            about, corruption = self.record(cell).about, cell[2]
            if corruption == CLEAN:
                whole |= {key: about[key] for key in whole if key in about}
            elif "described" in about:
                described[corruption] = about["described"]
            elif self.record(cell).classifiers:
                described[corruption] = self._described(self.record(cell))
        return whole | {"corruptions": described}

    def _described(self, record):
        """Describes a corruption of a folder of `corruptions.evaluate`."""
        from analysis.errors.reference import of_corruption

        if not (shape := record.about.get("image_shape")):
            raise ValueError(
                f"expected images of one size with their size recorded in {self._folder.parent}, found {record.condition} of "
                "several sizes, or of an earlier version; corruptions.ce_table(counts, path=...) makes the table of such a folder"
            )
        options, version = record.shown.get("options", {}), record.origin.get("version")
        return of_corruption(record.corruption, shape, options, record.levels, version)

    def credit(self, revision: str) -> str:
        """Says which revisions computed the answers, for the origin of a table that `revision` writes; "" if it did."""
        found = {record.revisions.get(cell[:2], "") for cell, (_, record) in self._cells.items()} - {revision}
        named = sorted(map(artifacts.short, filter(None, found)))
        unnamed = ["an earlier version, not recorded"] if "" in found else []
        return f", with answers of {', '.join(named + unnamed)}" if found else ""

    @property
    def source(self) -> str:
        """Device and version of a folder of `corruptions.evaluate`; "" of a workdir, which has them in evaluation.json."""
        return next((str(record.about["source"]) for record, _ in self._files if "source" in record.about), "")

    @property
    def stored(self) -> bool:
        """Tells whether the images are a corrupted dataset on disk."""
        return any(self.record(cell).about.get("stored", False) for cell in self._cells)

    @property
    def imports(self) -> tuple[str, ...]:
        """Lists the user's modules that the evaluation imported."""
        listed = (name for record, _ in self._files for name in record.about.get("imports", ()))
        return tuple(dict.fromkeys(listed))

    def records(self, conditions: Iterable[tuple[str, int | str]]) -> list[Record]:
        """Returns the records of (corruption, severity), of random severities those from all levels."""
        known = {(r.corruption, r.severity): r for r, _ in self._files if r.levels is None}
        return [known[condition] for condition in conditions]

    def study(self, names: Sequence[str], chosen: Collection[int] = ()) -> tuple[np.ndarray, tuple[int, ...]]:
        """Arranges the answers of an overlap study of the corruptions `names`, at severities drawn from all levels, of the
        `chosen` seeds, or of all.

        Returns (bool [seeds, 1 + n, 1 + n, N], seeds): seed, model (`standard` first, then one by each name), condition
        (clean first), image; seeds for which every model has all answers. Raises ValueError where there are none; it
        names the first missing answers of each seed.
        """
        wanted = [(CLEAN, 0), *((name, RANDOM) for name in names)]
        files = {(r.corruption, r.severity): by_model for r, by_model in self._files if r.levels is None}
        seeds = {seed for model, seed in files.get(wanted[0], {}) if model == STANDARD}
        seeds = sorted(seeds.intersection(chosen) if chosen else seeds)
        missing = {
            seed: [
                (model, condition[0])
                for model in (STANDARD, *names)
                for condition in wanted
                if (model, seed) not in files.get(condition, {})
            ]
            for seed in seeds
        }
        complete = tuple(seed for seed in seeds if not missing[seed])
        if not complete:
            found = "; ".join(
                f"seed {seed} lacks {len(absent)}, first model {absent[0][0]} on {absent[0][1]}"
                for seed, absent in missing.items()
            )
            raise ValueError(
                f"expected answers of standard and {len(names)} models to clean images and {len(names)} corruptions "
                f"at random severities, found {found or 'none of the standard model'}; run overlap.py to its end"
            )
        models = (STANDARD, *names)
        bits = [[[files[c][model, seed] for c in wanted] for model in models] for seed in complete]
        return np.array(bits), complete


def _order(record: Record) -> tuple:
    """Sorts clean images first, then corruptions by name, severities by size, `random` last."""
    random = record.severity == RANDOM
    return record.corruption != CLEAN, record.corruption, random, 0 if random else record.severity


def _rank(record: Record) -> tuple:
    """Sorts the files of one condition in tables: the last counts, see `Answers`."""
    return record.serial, record.levels is not None, [-level for level in record.levels or ()]


def accepted(folder: str | os.PathLike) -> dict[str, str]:
    """Reads which code a probe found equal to that of the answers in a folder: {digest of their stem and origin: code}."""
    path = pathlib.Path(folder) / ACCEPTED
    return files.read_json(path, remedy="remove it", shape={str: str}) if path.exists() else {}


def next_serial(folder: str | os.PathLike, record: Record) -> int:
    """Returns the serial number with which a file counts before those in a folder at other levels; 0 without others."""
    if record.severity != RANDOM:
        return 0
    stem = file_stem(record.corruption, RANDOM)
    paths = (path for path in pathlib.Path(folder).glob(f"{stem}*.npz") if path.stem != record.stem)
    others = (other for _, other in map(read_file, paths) if other.corruption == record.corruption)
    return max((1 + other.serial for other in others), default=0)


def read(workdir: str | os.PathLike) -> Answers:
    """Reads the answers of a workdir, or of a folder of `corruptions.evaluate`, which is a workdir of one model.

    Answers of a model that was trained again since are left out with one warning.

    Raises:
      FileNotFoundError: nothing was evaluated there.
      DamagedFileError: a file is damaged or was edited; tells what to run.
      SettingsError: the evaluation imported a module of the user's that this process has not imported.
    """
    folder = pathlib.Path(workdir) / FOLDER
    if not is_folder(workdir):
        raise FileNotFoundError(f"expected an evaluated workdir, found no answers in {folder}; run eval.py there first")
    found, left_out = [], []
    now = functools.cache(functools.partial(trained_digest, workdir))
    for record, by_model in _files(workdir):
        place = pathlib.PurePath(str(record.shown.get("source", {}).get("source")))
        misnamed = record.corruption.startswith("imagenet_c/") and place.name == "imagenet2012_corrupted"
        stale = [key for key in by_model if misnamed or is_stale(record.models.get(key), now(*key))]
        left_out += [f"{model}, seed {seed}, {record.stem}" for model, seed in stale]
        found.append((record, {key: bits for key, bits in by_model.items() if key not in stale}))
    if left_out:
        log.warning(
            "%d answers in %s come from models that were trained again since, or have ImageNet-C's names for tfds' other "
            "benchmark (the first: %s): they are left out until they are evaluated again.",
            *(len(left_out), folder, left_out[0]),
        )
    drawn = [record for record, _ in found if record.severity == RANDOM]
    serials = {r.corruption: [other.serial for other in drawn if other.corruption == r.corruption] for r in drawn}
    if old := [name for name, numbers in serials.items() if len(numbers) > 1 and not any(numbers)]:
        log.warning(
            "%s holds answers of an earlier version to %s at several sets of random severities, and not which was asked for "
            "last: the levels that a benchmark selects count before all levels. eval.py on one of them makes it count.",
            *(folder, ", ".join(old)),
        )
    answers = Answers(found, folder)
    refuse_imports(answers.imports, folder)
    return answers


def _files(workdir):
    """Yields (record, {(model, seed): bool [N]}) of the files of answers, one after the other."""
    with _named_as_damaged():
        for _, record, by_model in read_files(workdir):
            yield record, {key: answered.correct for key, answered in by_model.items()}
