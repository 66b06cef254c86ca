"""The folder of per-image results: those of one classifier, so that a stopped evaluation continues, and the tables from them.

answers/       a file for each condition (`imagenet_c.fog-3.npz`), see `results`; workdirs of eval.py and overlap.py have it too
counts.csv     a row for each condition
errors.csv     a row for each corruption and benchmark: mean error and its standard error

Two earlier forms are read, and no longer written: `answers.npz` of version 0.2, all conditions in one file, and `conditions/` of
revisions after it.
"""

import dataclasses
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from corruptions import files
from corruptions.core.origin import UNKNOWN, Origin
from corruptions.scoring.conditions import CLEAN, RANDOM, Condition
from corruptions.scoring.confidence import Confidence, decode
from corruptions.scoring.counts import Count, mean
from corruptions.scoring.intervals import of_mean
from corruptions.scoring.results import FOLDER, ONE, PLAIN, Answered, Key, Record, name_of, read_file, to_bytes

_FILES = "[!.]*.npz"  # a Mac leaves ._NAME beside NAME
_CONDITIONS = "conditions"  # of revisions after 0.2
_ANSWERS = "answers.npz"  # of version 0.2
_CONFIDENCE = " confidence"  # suffix of a condition's name there
_REMEDY = "remove it to evaluate again"
_OF_CLASSIFIER = ("network", "dtype", "outputs")
"""The fields of `Origin` that each classifier has of its own."""
_OF_ALL = ("data", *_OF_CLASSIFIER, "score", "evaluator", "seed", "generator", "partitionable")
"""The fields of `Origin` that all conditions of a folder share."""


class Result(NamedTuple):
    """Per-image results under a condition.

    Attributes:
      correct: bool [N], which images were classified correctly.
      confidence: `confidence.STORED` [N], or None where a version before 0.2 stored none.
      origin: what made them.
    """

    correct: np.ndarray
    confidence: np.ndarray | None
    origin: Origin


class Folder:
    """The per-image results of one classifier on one test set, in a folder `path` that the caller has locked.

    Raises ValueError where the folder holds a file that is damaged or was edited, or results of two test sets, or of two
    classifiers under one name.

    Args:
      path: the folder, made when it is written to.
      key: the classifier in a folder of several, (name, 0).
      about: names of the test images for readers, see `Record`; None gives those of `evaluate`.
      revision: of the code that evaluates, for readers.
      write: writes bytes to a path, atomically; None is `files.replace`.

    Attributes:
      origins: {condition: what made its images, and the results of this classifier, if it has any}.
      results: {condition: `Result` of this classifier}.
      keys: the classifiers that it holds results of.
      number: the number of images, 0 where nothing is stored.
      network: the name of the classifier, else {"answers": digest of those to the first condition}; unknown where there
        are none, or of version 0.2.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        key: Key = ONE,
        about: Mapping[str, Any] | None = None,
        revision: str = "",
        write: Callable[[pathlib.Path, bytes], object] | None = None,
    ) -> None:
        self.path, self._write = pathlib.Path(path), write or files.replace
        self._key, self._about, self._revision = key, about, revision
        self.origins: dict[Condition, Origin] = {}
        self.results: dict[Condition, Result] = {}
        self.keys: set[Key] = set()
        self.number = 0
        self._serials: dict[Condition, int] = {}
        first: pathlib.Path | None = None
        found = ((file, record, set(by_model), by_model.get(key)) for file, record, by_model in read_files(self.path))
        for file, record, keys, own in sorted(found, key=lambda one: one[1].serial):  # as they were written
            self.keys |= keys
            try:
                condition, origin = record.condition, origin_of(record, key)
            except ValueError as error:
                raise ValueError(f"{file}: {error}") from None
            before = self.origins.setdefault(condition, origin)
            if before is not origin:
                raise ValueError(
                    f"{file}: expected {condition} once, found it twice; remove the one that you do not mean"
                )
            first, self.number = first or file, self.number or record.number
            self._serials[condition] = record.serial
            for name in _OF_ALL:
                known = (getattr(one, name) for one in self.origins.values())
                old, new = next((value for value in known if value != UNKNOWN), UNKNOWN), getattr(origin, name)
                if old != new and new != UNKNOWN:
                    raise ValueError(f"{file}: expected the {name} of {first.name}, found another; {_REMEDY}")
            if own is not None:
                correct, confidence = own
                self.results[condition] = Result(correct, confidence.get(PLAIN), origin)
        known = (result.origin.network for result in self.results.values())
        self.network = next((network for network in known if network != UNKNOWN), UNKNOWN)

    def read(self, condition: Condition) -> Result | None:
        """Returns the results under a condition, or None if it was not evaluated."""
        return self.results.get(condition)

    def write(self, condition: Condition, correct: np.ndarray, confidence: np.ndarray, origin: Origin) -> None:
        """Writes the results under a condition: one file, once. A classifier without a name is known by its first answers."""
        if origin.network == UNKNOWN:
            if self.network == UNKNOWN:
                old = [(result.correct, result.confidence) for result in self.results.values()]
                self.network = {"answers": _digest(*(old or [(correct, confidence)])[0])}
            origin = dataclasses.replace(origin, network=self.network)
        self.network = origin.network
        path = self.path / FOLDER / f"{condition.stem}.npz"
        by_model = {self._key: Answered(correct, {PLAIN: confidence})}
        record = record_of(condition, correct.size, origin, self._key, self._next)
        revisions = {self._key: self._revision} if self._revision else {}
        if path.exists():  # of other classifiers
            others, before = read_file(path)
            by_model, revisions = others | by_model, {**before.revisions, **revisions}
            record = before._replace(serial=self._next, classifiers={**before.classifiers, **record.classifiers})
        about = record.about if self._about is None else self._about
        path.parent.mkdir(parents=True, exist_ok=True)
        self._write(path, to_bytes(by_model, record._replace(about=about, revisions=revisions)))
        self.origins[condition], self._serials[condition] = origin, record.serial
        self.results[condition] = Result(correct, confidence, origin)

    @property
    def _next(self) -> int:
        return 1 + max(self._serials.values(), default=-1)

    def prefer(self, conditions: Iterable[Condition]) -> None:
        """Makes results at random severities those that tables take, of several that are drawn from other levels."""
        for condition in (one for one in conditions if one.severity == RANDOM):
            others = [
                n for one, n in self._serials.items() if one.corruption == condition.corruption and one != condition
            ]
            path = self.path / FOLDER / f"{condition.stem}.npz"
            if others and self._serials[condition] < max(others) and path.exists():
                by_model, record = read_file(path)
                self._serials[condition] = self._next
                self._write(path, to_bytes(by_model, record._replace(serial=self._serials[condition])))

    def write_tables(
        self, answers: Mapping[Condition, np.ndarray], benchmarks: Mapping[str, Iterable[Condition]]
    ) -> None:
        """Writes counts.csv and errors.csv of answers {condition: bool [N]}; errors in [0, 1].

        `benchmarks` are their conditions, all among these; each has a row after the corruptions.
        """
        self._write_rows("counts.csv", Count._fields, [Count.from_correct(*of_one) for of_one in answers.items()])
        means = {name: [c for c in answers if c.corruption == name] for name in (c.corruption for c in answers)}
        rows = []
        for name, conditions in (means | dict(benchmarks)).items():
            # All conditions show the same images, so the mean error of each image varies.
            wrong = mean((c.corruption, 1.0 - answers[c]) for c in conditions)
            rows.append((name, wrong.mean(), of_mean(wrong)))
        self._write_rows("errors.csv", ("name", "error", "error_se"), rows)

    def _write_rows(self, name, header, rows):
        text = "".join(",".join(map(str, row)) + "\n" for row in (header, *rows))
        files.replace(self.path / name, text.encode())


def record_of(condition: Condition, number: int, origin: Origin, key: Key, serial: int = 0) -> Record:
    """Makes the record of the results of a classifier from what made them; `recorded` may hold `classes` and `image_shape`."""
    own = {name: value for name in _OF_CLASSIFIER if (value := getattr(origin, name)) != UNKNOWN}
    of_images = {name: value for name, value in origin.to_json().items() if name not in _OF_CLASSIFIER}
    shown: dict[str, Any] = {"images": origin.data}
    if condition.corruption != CLEAN:
        prng = f"{origin.generator}, partitionable: {origin.partitionable}"
        shown |= {"seed": origin.seed, "prng": prng, "options": {} if origin.options == UNKNOWN else origin.options}
    digest = origin.data["images"] if isinstance(origin.data, Mapping) else ""
    recorded = {"classes": 0, "image_shape": [], "device": "device not recorded", "versions": {}, **origin.recorded}
    about = {"dataset": f"images {digest[:12]}", "preprocessing": "as given to corruptions.evaluate"}
    about |= {name: recorded[name] for name in ("classes", "image_shape")}
    about["source"] = (
        f"{recorded['device']}, jax-corruptions {recorded['versions'].get('jax-corruptions', 'not recorded')}"
    )
    head = condition.corruption, condition.label, condition.levels, number
    return Record(*head, shown, about, serial=serial, origin=of_images, classifiers={key: own})


def origin_of(record: Record, key: Key) -> Origin:
    """Reads what made the images of a record, and the results of a classifier there if it has any."""
    fields: dict[str, Any] = dict(record.origin)
    if "data" not in fields:  # not written by `record_of`
        generator, _, partitionable = str(record.shown.get("prng", "")).partition(", partitionable: ")
        found = {"data": record.shown.get("images"), "seed": record.shown.get("seed"), "generator": generator}
        found |= {"options": record.shown.get("options"), "partitionable": partitionable and partitionable == "True"}
        fields = {name: value for name, value in found.items() if value not in (None, "")} | fields
    fields |= record.classifiers.get(key, {})
    return Origin.from_json({"corruption": record.corruption, **fields})


def is_folder(path: str | os.PathLike) -> bool:
    """Whether a folder holds per-image results, in any form."""
    return bool(earlier_files(path)) or any((pathlib.Path(path) / FOLDER).glob(_FILES))


def read_files(path: str | os.PathLike) -> Iterator[tuple[pathlib.Path, Record, dict[Key, Answered]]]:
    """Yields the files of a folder of per-image results in any form: (file, record, {(model, seed): `Answered`}).

    Raises ValueError, which names it, for a file that is damaged or was edited.
    """
    for file in earlier_files(path):
        yield from ((file, *found) for found in read_earlier(file))
    for file in sorted((pathlib.Path(path) / FOLDER).glob(_FILES)):
        by_model, record = read_file(file)
        yield file, record, by_model


def read_wrong(path: str | os.PathLike) -> dict[tuple[str, str], np.ndarray]:
    """Reads which images were answered wrongly in a folder of `evaluate`: {(corruption, severity): float64 [N] of 0 and 1}.

    Raises:
      FileNotFoundError: it holds no answers.
      ValueError: a file is damaged, or holds answers to one corruption and severity on two sets of images.
    """
    return {cell: 1.0 - result.correct for cell, (_, result) in _cells(path).items()}


def read_confidence(path: str | os.PathLike) -> dict[tuple[str, str], Confidence]:
    """Reads the confidence of the answers in a folder of `evaluate`: {(corruption, severity): `Confidence`}.

    Raises FileNotFoundError and ValueError as `read_wrong` does, and ValueError where a condition was evaluated before
    confidence was kept.
    """
    found = {}
    for cell, (condition, result) in _cells(path).items():
        if result.confidence is None:
            raise ValueError(
                f"{path}: expected answers with their confidence, found none for {condition}, which was evaluated before "
                f"confidence was kept; {_REMEDY}"
            )
        found[cell] = decode(result.confidence, result.correct)
    return found


def _cells(path):
    """{(corruption, severity) as text: (condition, result)}; severities drawn from other levels are other images."""
    if not is_folder(path):
        raise FileNotFoundError(
            f"expected a folder of corruptions.evaluate, found no {FOLDER}/*.npz in {os.fspath(path)}"
        )
    folder = Folder(path)
    if ONE not in folder.keys:  # of `eval.evaluate`, which names its classifiers
        if len(folder.keys) > 1:
            names = ", ".join(sorted(name_of(key) for key in folder.keys))
            raise ValueError(f"{path}: expected results of one classifier, or of {name_of(ONE)}, found {names}")
        folder = Folder(path, *folder.keys)
    found = {}
    for condition, result in folder.results.items():
        cell = condition.corruption, condition.severity
        if (other := found.setdefault(cell, (condition, result))[0]) != condition:
            raise ValueError(f"{path}: expected a condition once, found '{other}' and '{condition}'; use two folders")
    return found


# Earlier forms.


def earlier_files(path: str | os.PathLike) -> list[pathlib.Path]:
    """Lists the files of per-image results in a folder that have an earlier form."""
    path = pathlib.Path(path)
    return [*path.glob(_ANSWERS), *sorted((path / _CONDITIONS).glob(_FILES))]


def read_earlier(file: pathlib.Path) -> Iterator[tuple[Record, dict[Key, Answered]]]:
    """Yields what a file of `earlier_files` holds: (record, {(model, seed): `Answered`})."""
    try:
        yield from (_read_0_2 if file.name == _ANSWERS else _read_after_0_2)(file)
    except Exception as error:  # the damaged byte decides among a dozen types
        raise ValueError(f"{file} cannot be read ({error}); {_REMEDY}") from error


def _opened(path: pathlib.Path, name: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Reads the arrays of a file and its settings, which lie under a name."""
    with np.load(path) as archive:
        arrays = dict(archive)
    settings = dict(json.loads(str(arrays.pop(name))))
    content = files.Digest(
        json.dumps({key: value for key, value in settings.items() if key != "sha256"}, sort_keys=True)
    )
    _add(content, arrays)
    if settings.get("sha256") != str(content):
        raise ValueError("it is not as `evaluate` wrote it")
    return arrays, settings


def _add(content: files.Digest, arrays: Mapping[str, np.ndarray]) -> None:
    for name in sorted(arrays):
        array = np.atleast_1d(arrays[name])
        content.add(json.dumps([name, array.dtype.str, array.shape]), array)


def _digest(correct: np.ndarray, confidence: np.ndarray | None) -> str:
    """The sha256 of answers, by which a classifier without a name is known."""
    content = files.Digest("{}")
    _add(content, {"correct": correct} | ({} if confidence is None else {"confidence": confidence}))
    return str(content)


def _read_after_0_2(file: pathlib.Path) -> Iterator[tuple[Record, dict[Key, Answered]]]:
    arrays, settings = _opened(file, "origin")
    condition = _condition(settings["condition"])
    if file.stem != condition.stem:
        raise ValueError(f"it holds the answers under {condition}")
    correct, origin = arrays["correct"], Origin.from_json(settings["origin"])
    record = record_of(condition, correct.size, origin, ONE, settings["serial"])
    yield record, {ONE: Answered(correct, {PLAIN: arrays["confidence"]})}


def _read_0_2(file: pathlib.Path) -> Iterator[tuple[Record, dict[Key, Answered]]]:
    arrays, settings = _opened(file, "settings")
    generator, _, partitionable = settings["prng"].partition(", partitionable: ")
    origin = Origin(
        data={name: settings[name] for name in ("images", "labels", "index")},
        dtype=settings["dtype"],
        outputs=settings.get("outputs", "logits"),  # the first versions did not store it
        seed=settings["seed"],
        generator=generator,
        partitionable=partitionable == "True",
    )
    for name in (name for name in arrays if not name.endswith(_CONFIDENCE)):
        condition = _condition(name)
        options = settings.get("options", {}).get(condition.corruption, {})
        own = dataclasses.replace(origin, corruption=condition.corruption, options=options)
        kept = {PLAIN: arrays[name + _CONFIDENCE]} if name + _CONFIDENCE in arrays else {}
        yield record_of(condition, arrays[name].size, own, ONE), {ONE: Answered(arrays[name], kept)}


def _condition(text: str) -> Condition:
    name, severity, *levels = text.split()
    return Condition(name, severity, tuple(map(int, levels)) or None)
