"""The folder of one classifier: per-image results, so that a stopped evaluation continues, and the tables from them.

conditions/    a file for each condition (`imagenet_c.fog-3.npz`): `correct`, which images were classified correctly, bool [N];
               `confidence`, how surely, `confidence.STORED` [N]; `origin`, what made them, `origin.Origin` as JSON
answers.npz    the same of version 0.2, all conditions in one file; it is read, and no longer written
counts.csv     a row for each condition
errors.csv     a row for each corruption and benchmark: mean error and its standard error
"""

import dataclasses
import io
import json
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from corruptions import files
from corruptions.core.origin import UNKNOWN, Origin
from corruptions.scoring.conditions import Condition
from corruptions.scoring.confidence import Confidence, decode
from corruptions.scoring.counts import Count, mean
from corruptions.scoring.intervals import of_mean

_FOLDER = "conditions"
_FILES = "[!.]*.npz"  # a Mac leaves ._NAME beside NAME
_ANSWERS = "answers.npz"  # of version 0.2
_CONFIDENCE = " confidence"  # suffix of a condition's name there
_SETTINGS = "settings"
_ORIGIN = "origin"
_SEAL = "sha256"
_REMEDY = "remove it to evaluate again"
_OF_ALL = ("data", "network", "dtype", "outputs", "score", "evaluator", "seed", "generator", "partitionable")
"""The fields of `Origin` that all conditions of a folder share."""


class Result(NamedTuple):
    """Per-image results under a condition.

    Attributes:
      correct: bool [N], which images were classified correctly.
      confidence: `confidence.STORED` [N], or None where a version before 0.2 stored none.
      origin: what made them.
      seal: sha256 of the file's content.
    """

    correct: np.ndarray
    confidence: np.ndarray | None
    origin: Origin
    seal: str


class Folder:
    """The per-image results of one classifier on one test set, in a folder `path` that the caller has locked.

    Raises ValueError where the folder holds a file that is damaged or was edited, or results of two classifiers or test
    sets.

    Attributes:
      results: {condition: `Result`}.
      network: the name of the classifier, else {"answers": digest of those to the first condition}; unknown where there
        are none, or of version 0.2.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = pathlib.Path(path)
        self.results = _read(self.path)
        known = (result.origin.network for result in self.results.values())
        self.network = next((network for network in known if network != UNKNOWN), UNKNOWN)

    @property
    def number(self) -> int:
        """The number of images, 0 where nothing is stored."""
        return next((result.correct.size for result in self.results.values()), 0)

    def read(self, condition: Condition) -> Result | None:
        """Returns the results under a condition, or None if it was not evaluated."""
        return self.results.get(condition)

    def write(self, condition: Condition, correct: np.ndarray, confidence: np.ndarray, origin: Origin) -> None:
        """Writes the results under a condition: one file, once. A classifier without a name is known by its first answers."""
        if origin.network == UNKNOWN:
            if self.network == UNKNOWN:
                old = [(result.correct, result.confidence) for result in self.results.values()]
                first = dict(zip(("correct", "confidence"), (old or [(correct, confidence)])[0]))
                self.network = {"answers": _digest({n: a for n, a in first.items() if a is not None}, {})}
            origin = dataclasses.replace(origin, network=self.network)
        self.network = origin.network
        path = self.path / _FOLDER / f"{condition.stem}.npz"
        arrays = {"correct": correct, "confidence": confidence}
        settings = {"condition": str(condition), "serial": len(self.results), _ORIGIN: origin.to_json()}
        seal = _digest(arrays, settings)
        content = io.BytesIO()
        made: Any = arrays | {_ORIGIN: np.array(json.dumps(settings | {_SEAL: seal}, sort_keys=True))}
        np.savez(content, **made)
        path.parent.mkdir(exist_ok=True)
        files.replace(path, content.getvalue())
        self.results[condition] = Result(correct, confidence, origin, seal)

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


def is_folder(path: str | os.PathLike) -> bool:
    """Whether a folder holds per-image results of `evaluate`."""
    path = pathlib.Path(path)
    return (path / _ANSWERS).is_file() or any((path / _FOLDER).glob(_FILES))


def read_results(path: str | os.PathLike) -> dict[Condition, Result]:
    """Reads all per-image results in a folder of `evaluate`, in the order in which they were written.

    Raises FileNotFoundError and ValueError as `read_wrong` does.
    """
    return dict(_cells(path).values())


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
            f"expected a folder of corruptions.evaluate, found no {_FOLDER}/*.npz in {os.fspath(path)}"
        )
    found = {}
    for condition, result in _read(pathlib.Path(path)).items():
        cell = condition.corruption, condition.severity
        if (other := found.setdefault(cell, (condition, result))[0]) != condition:
            raise ValueError(f"{path}: expected a condition once, found '{other}' and '{condition}'; use two folders")
    return found


def _read(folder: pathlib.Path) -> dict[Condition, Result]:
    """Reads and checks all results of a folder, in the order in which they were written; none where it holds none."""
    found = _read_old(folder / _ANSWERS) if (folder / _ANSWERS).exists() else {}
    first = next(((folder / _ANSWERS, result.origin) for result in found.values()), None)
    listed = [(*_read_one(path), path) for path in sorted((folder / _FOLDER).glob(_FILES))]
    for _, condition, result, path in sorted(listed, key=lambda one: one[0]):
        if condition in found:
            raise ValueError(
                f"{path}: expected {condition} once, found it in {_ANSWERS} too; remove the one that you do not mean"
            )
        first = first or (path, result.origin)
        for name in _OF_ALL:
            old, new = getattr(first[1], name), getattr(result.origin, name)
            if old != new and UNKNOWN not in (old, new):
                raise ValueError(f"{path}: expected the {name} of {first[0].name}, found another; {_REMEDY}")
        found[condition] = result
    return found


def _opened(path: pathlib.Path, name: str) -> tuple[dict[str, np.ndarray], dict[str, Any], str]:
    """Reads the arrays of a file, its settings, which lie under a name, and its seal."""
    with np.load(path) as archive:
        arrays = dict(archive)
    settings = dict(json.loads(str(arrays.pop(name))))
    if (seal := settings.pop(_SEAL, None)) != _digest(arrays, settings):
        raise ValueError("it is not as `evaluate` wrote it")
    return arrays, settings, seal


def _read_one(path: pathlib.Path) -> tuple[int, Condition, Result]:
    try:
        arrays, settings, seal = _opened(path, _ORIGIN)
        condition = _condition(settings["condition"])
        if path.stem != condition.stem:
            raise ValueError(f"it holds the answers under {condition}")
        origin = Origin.from_json(settings[_ORIGIN])
        return settings["serial"], condition, Result(arrays["correct"], arrays["confidence"], origin, seal)
    except Exception as error:  # the damaged byte decides among a dozen types
        raise ValueError(f"{path} cannot be read ({error}); {_REMEDY}") from error


def _read_old(path: pathlib.Path) -> dict[Condition, Result]:
    try:
        arrays, settings, seal = _opened(path, _SETTINGS)
        generator, _, partitionable = settings["prng"].partition(", partitionable: ")
        origin = Origin(
            data={name: settings[name] for name in ("images", "labels", "index")},
            dtype=settings["dtype"],
            outputs=settings.get("outputs", "logits"),  # the first versions did not store it
            seed=settings["seed"],
            generator=generator,
            partitionable=partitionable == "True",
        )
    except Exception as error:  # the damaged byte decides among a dozen types
        raise ValueError(f"{path} cannot be read ({error}); {_REMEDY}") from error
    results = {}
    for name in (name for name in arrays if not name.endswith(_CONFIDENCE)):
        condition = _condition(name)
        options = settings.get("options", {}).get(condition.corruption, {})
        own = dataclasses.replace(origin, corruption=condition.corruption, options=options)
        results[condition] = Result(arrays[name], arrays.get(name + _CONFIDENCE), own, f"{seal} {name}")
    return results


def _condition(text: str) -> Condition:
    name, severity, *levels = text.split()
    return Condition(name, severity, tuple(map(int, levels)) or None)


def _digest(arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> str:
    """Computes the sha256 of settings and of names, types, shapes and bytes of arrays."""
    content = files.Digest(json.dumps(settings, sort_keys=True))
    for name in sorted(arrays):
        array = np.atleast_1d(arrays[name])
        content.add(json.dumps([name, array.dtype.str, array.shape]), array)
    return str(content)
