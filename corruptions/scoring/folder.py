"""Counts of correct answers, mean errors, and the folder of one classifier: answers, so that a stopped evaluation
continues, and the tables from them.

answers.npz    by condition (`imagenet_c/fog 3`) which images were answered correctly, bool [N], and as
               `imagenet_c/fog 3 confidence` how surely, `confidence.STORED` [N]
counts.csv     a row for each condition
errors.csv     a row for each corruption and benchmark: mean error and its standard error
"""

import hashlib
import io
import json
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from corruptions.scoring.conditions import CLEAN, Condition
from corruptions.scoring.confidence import Confidence, decode
from corruptions.write import files


class Count(NamedTuple):
    """Correct answers of a classifier under a condition.

    Attributes:
      corruption: qualified name, or `clean`.
      severity: level, fraction of the range (float), or `random` (drawn for each image); 0 for `clean`.
      correct: images classified correctly, 0..total.
      total: images shown, at least 1.
    """

    corruption: str
    severity: int | float | str
    correct: int
    total: int

    @property
    def error(self) -> float:
        """Fraction of images that are classified wrongly, in [0, 1]."""
        return 1 - self.correct / self.total


def mean_error(counts: Iterable[Count]) -> float:
    """Computes the mean error of counts of `evaluate`: over the severities of each corruption, then over
    the corruptions; in [0, 1]. Clean images do not count; ValueError where there are no others.
    """
    errors = [(count.corruption, count.error) for count in counts if count.corruption != CLEAN]
    if not errors:
        raise ValueError("expected counts under at least one corruption, found none")
    return mean(errors)


def mean(values: Iterable[tuple[str, Any]]) -> Any:
    """Averages numbers or arrays (corruption, value) over each corruption, then over these."""
    by_corruption: dict[str, list[Any]] = {}
    for name, value in values:
        by_corruption.setdefault(name, []).append(value)
    means = [sum(of_one) / len(of_one) for of_one in by_corruption.values()]
    return sum(means) / len(means)


_ANSWERS = "answers.npz"
_CONFIDENCE = " confidence"  # suffix of a condition's name
_SETTINGS = "settings"
_SEAL = "sha256"


class Folder:
    """The answers of one classifier to one test set, in a folder `path` that the caller has locked.

    `settings`, JSON-ready, and `options`, {corruption: its options}, determine the images. Raises ValueError where the
    folder holds answers to other images, or a file that is damaged or was edited. Options are compared with those of the
    same corruption.
    """

    def __init__(
        self, path: str | os.PathLike, settings: Mapping[str, Any], options: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._path = pathlib.Path(path) / _ANSWERS
        asked, of_one = json.loads(json.dumps([settings, options]))  # tuples become the lists they are stored as
        stored, self._known = _read(self._path) if self._path.exists() else (asked, {})
        stored.setdefault("outputs", "logits")  # earlier versions did not store it
        before = stored.pop("options", {})
        answered = {condition.split()[0] for condition in self._known}
        differ = [name for name in asked if stored.get(name) != asked[name]]
        differ += [f"options of {name}" for name in of_one if name in answered and before.get(name, {}) != of_one[name]]
        if differ:
            raise ValueError(
                f"{self._path} holds answers to other images: {', '.join(differ)} differ; use another folder or the "
                "same arguments"
            )
        self._settings = asked | {"options": before | of_one}

    def read(self, condition: Condition) -> np.ndarray | None:
        """Returns which images were answered correctly, bool [N], or None if the condition was not evaluated."""
        return self._known.get(str(condition))

    def write(self, condition: Condition, correct: np.ndarray, confidence: np.ndarray) -> None:
        """Writes the answers to a condition and their confidence."""
        self._known |= {str(condition): correct, f"{condition}{_CONFIDENCE}": confidence}
        content = io.BytesIO()
        sealed = self._settings | {_SEAL: _digest(self._known, self._settings)}
        arrays: dict[str, Any] = {**self._known, _SETTINGS: np.array(json.dumps(sealed, sort_keys=True))}
        np.savez(content, **arrays)
        files.replace(self._path, content.getvalue())

    def write_tables(
        self, answers: Mapping[Condition, np.ndarray], benchmarks: Mapping[str, Iterable[Condition]]
    ) -> None:
        """Writes counts.csv and errors.csv of answers {condition: bool [N]}; errors in [0, 1].

        `benchmarks` are their conditions, all among these; each has a row after the corruptions.
        """
        counted = [(c.corruption, c.label, correct.sum(), correct.size) for c, correct in answers.items()]
        self._write_rows("counts.csv", ("corruption", "severity", "correct", "total"), counted)
        means = {name: [c for c in answers if c.corruption == name] for name in (c.corruption for c in answers)}
        rows = []
        for name, conditions in (means | dict(benchmarks)).items():
            # All conditions show the same images, so the mean error of each image varies.
            wrong = mean((c.corruption, 1.0 - answers[c]) for c in conditions)
            error = wrong.std(ddof=1) / wrong.size**0.5 if wrong.size > 1 else np.nan
            rows.append((name, wrong.mean(), error))
        self._write_rows("errors.csv", ("name", "error", "error_se"), rows)

    def _write_rows(self, name, header, rows):
        text = "".join(",".join(map(str, row)) + "\n" for row in (header, *rows))
        files.replace(self._path.with_name(name), text.encode())


def read_wrong(path: str | os.PathLike) -> dict[tuple[str, str], np.ndarray]:
    """Reads which images were answered wrongly in a folder of `evaluate`: {(corruption, severity): float64 [N] of 0 and 1}.

    Raises:
      FileNotFoundError: it holds no answers.
      ValueError: its file is damaged, or holds answers to one corruption and severity on two sets of images.
    """
    path, arrays = _stored(path)
    return {cell: 1.0 - arrays[condition] for cell, condition in _conditions(path, arrays).items()}


def read_confidence(path: str | os.PathLike) -> dict[tuple[str, str], Confidence]:
    """Reads the confidence of the answers in a folder of `evaluate`: {(corruption, severity): `Confidence`}.

    Raises FileNotFoundError and ValueError as `read_wrong` does, and ValueError where a condition was evaluated before
    confidence was kept.
    """
    path, arrays = _stored(path)
    found = {}
    for cell, condition in _conditions(path, arrays).items():
        if condition + _CONFIDENCE not in arrays:
            raise ValueError(
                f"{path}: expected answers with their confidence, found none for {condition}, which was evaluated before "
                "confidence was kept; remove the file to evaluate again"
            )
        found[cell] = decode(arrays[condition + _CONFIDENCE], arrays[condition])
    return found


def _conditions(path, arrays):
    """{(corruption, severity): name of the condition}; severities drawn from other levels are other images."""
    found = {}
    for condition in (name for name in arrays if not name.endswith(_CONFIDENCE)):
        cell = tuple(condition.split()[:2])
        if (other := found.setdefault(cell, condition)) != condition:
            raise ValueError(f"{path}: expected a condition once, found {other!r} and {condition!r}; use two folders")
    return found


def _stored(path):
    path = pathlib.Path(path) / _ANSWERS
    if not path.exists():
        raise FileNotFoundError(f"expected a folder of corruptions.evaluate, found no {path}")
    return path, _read(path)[1]


def _read(path):
    try:
        with np.load(path) as archive:
            arrays = dict(archive)
        settings = dict(json.loads(str(arrays.pop(_SETTINGS))))
        if settings.pop(_SEAL, None) != _digest(arrays, settings):
            raise ValueError("it is not as `evaluate` wrote it")
        return settings, arrays
    except Exception as error:  # the damaged byte decides among a dozen types
        raise ValueError(f"{path} cannot be read ({error}); remove it to evaluate again") from error


def _digest(arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> str:
    """Computes the sha256 of settings and of names, types, shapes and bytes of arrays."""
    content = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        content.update(json.dumps([name, array.dtype.str, array.shape]).encode() + array.tobytes())
    return content.hexdigest()
