"""The answers of a study: which test images each model answers correctly, one file per condition.

    WORKDIR/answers/noc.border-random.npz              a corruption at a severity, `/` written as `.`
    WORKDIR/answers/cbar.lines-random-1-4-7.npz        severities drawn from some of its levels

A file holds, by `model|seed`, one bit per test image (1: correct), packed as `numpy.packbits` does:
uint8 [ceil(N / 8)]. Beside them it tells what they were made from, a `MadeFrom`.
"""

import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from analysis.tables import CLEAN, RANDOM, STANDARD, Count, check_count
from runtime import bindings, files

Key = tuple[str, int]
"""(model, seed)."""
_REMEDY = "remove it to evaluate this condition again"
_CONDITION = "condition"


class MadeFrom(NamedTuple):
    """What the answers in a file were made from.

    Attributes:
      shown: digest of what the pixels depend on: the test images, seed and options of the draws; ""
        where it is not known.
      number: N, test images; 0 where it is not known.
      models: {(model, seed): digest of its parameters}, of those that are known.
    """

    shown: str = ""
    number: int = 0
    models: Mapping[Key, str] = {}


def file_stem(corruption: str, severity: str | int | float, levels: Iterable[int] | None = None) -> str:
    """Names the file of a condition, without `.npz`.

    Args:
      corruption: qualified name, or `clean`.
      severity: a level, a fraction or `random`.
      levels: those that random severities are drawn from, where a benchmark selects some.
    """
    return "-".join(map(str, (corruption.replace("/", "."), severity, *(levels or ()))))


def write(path: str | os.PathLike, answers: Mapping[Key, np.ndarray], made_from: MadeFrom | None = None) -> None:
    """Writes {(model, seed): bool [N]}, the answers under a condition, and what they were made
    from: under another name than this the file is refused.
    """
    made_from = made_from or MadeFrom()
    packed = {_name(key): np.packbits(bits) for key, bits in answers.items()}
    models = {_name(key): made_from.models[key] for key in answers if key in made_from.models}
    record = made_from._replace(models=models)._asdict() | {_CONDITION: pathlib.Path(path).stem}
    bindings.write_arrays(path, packed, record)


def read(path: str | os.PathLike, number: int, *, content: bytes | None = None) -> dict[Key, np.ndarray]:
    """Reads the answers under a condition: {(model, seed): bool [N]}.

    Args:
      path: of the file.
      number: N, test images.
      content: of the file, when it was read already; `path` then only names it.

    Raises:
      FileNotFoundError: no such file.
      DamagedFileError: something else, or answers to another number of images.
    """
    return unpack(path, read_packed(path, content=content)[0], number)


def read_packed(path: str | os.PathLike, *, content: bytes | None = None) -> tuple[dict[Key, np.ndarray], MadeFrom]:
    """Reads ({(model, seed): uint8 [ceil(N / 8)]}, what they were made from), whatever N is.

    Args:
      path, content: as of `read`.

    Raises:
      FileNotFoundError: no such file.
      DamagedFileError: something else.
    """
    arrays, record = bindings.read_arrays(path, _REMEDY, content=content)
    stem = pathlib.Path(path).stem
    if record.get(_CONDITION, stem) != stem:  # an earlier revision wrote none
        raise files.DamagedFileError(f"{path}: expected answers under {stem}, found {record[_CONDITION]}; {_REMEDY}")
    packed = {_key(path, name): bits for name, bits in arrays.items()}
    for key, bits in packed.items():
        if bits.ndim != 1 or bits.dtype != np.uint8:
            found = f"{bits.dtype}{list(bits.shape)} for {_name(key)}"
            raise files.DamagedFileError(f"{path}: expected packed answers, found {found}; {_REMEDY}")
    return packed, _made_from(path, record)


def unpack(path: str | os.PathLike, packed: Mapping[Key, np.ndarray], number: int) -> dict[Key, np.ndarray]:
    """Unpacks what `read_packed` gave: {(model, seed): bool [N]}.

    Raises:
      DamagedFileError: answers to another number of images.
    """
    for key, bits in packed.items():
        if len(bits) != -(-number // 8):
            found = f"{bits.dtype}{list(bits.shape)} for {_name(key)}"
            raise files.DamagedFileError(
                f"{path}: expected packed answers to {number} images, found {found}; {_REMEDY}"
            )
    return {key: np.unpackbits(bits, count=number).astype(bool) for key, bits in packed.items()}


def _name(key: Key) -> str:
    return f"{key[0]}|{key[1]}"


def _key(path: str | os.PathLike, name: str) -> Key:
    model, bar, seed = name.rpartition("|")
    if not bar or not seed.isdecimal():
        raise files.DamagedFileError(f"{path}: expected arrays called model|seed, found {name!r}; {_REMEDY}")
    return model, int(seed)


def _made_from(path: str | os.PathLike, record: Mapping[str, Any]) -> MadeFrom:
    found = MadeFrom(**{field: record[field] for field in MadeFrom._fields if field in record})
    models = found.models
    if (
        not isinstance(found.shown, str)
        or type(found.number) is not int
        or not isinstance(models, dict)
        or not all(isinstance(digest, str) for digest in models.values())
    ):
        raise files.DamagedFileError(f"{path}: expected digests as made_from, found {record}; {_REMEDY}")
    return found._replace(models={_key(path, name): digest for name, digest in models.items()})


def count_correct(answers: Mapping[tuple[str, str | int | float], Mapping[Key, np.ndarray]]) -> list[Count]:
    """Counts the correct answers {(corruption, severity): {(model, seed): bool [N]}}: rows of
    counts.csv.
    """
    return [
        check_count((*key, *condition, int(bits.sum()), int(bits.size)))
        for condition, by_model in answers.items()
        for key, bits in by_model.items()
    ]


def read_study(
    folder: str | os.PathLike, counts: Iterable[Count], names: Sequence[str], seeds: Sequence[int]
) -> np.ndarray | None:
    """Reads the answers behind an overlap matrix: models and corruptions of `names`.

    Args:
      folder: `answers` of the workdir.
      counts: what counts.csv holds, which the answers must add up to.
      names: of the corruptions.
      seeds: of the training runs.

    Returns:
      bool [seeds, 1 + n, 1 + n, N]: seed, model (standard first), condition (clean first), image.
      None where some were not kept.

    Raises:
      DamagedFileError: a file that cannot be read.
      ValueError: answers that do not add up to the counts.
    """
    counted = {count.key: count for count in counts}
    conditions = [(CLEAN, 0), *((name, RANDOM) for name in names)]
    keys = [(model, seed) for seed in seeds for model in (STANDARD, *names)]
    columns = []
    for condition in conditions:
        column = _read_condition(pathlib.Path(folder), condition, {key: counted[(*key, *condition)] for key in keys})
        if column is None:
            return None
        columns.append(np.reshape(column, (len(seeds), 1 + len(names), -1)))
    return np.stack(columns, axis=2)


def _read_condition(folder: pathlib.Path, condition: tuple[str, str | int], counts: Mapping[Key, Count]) -> list | None:
    """The answers from the file of a condition that adds up to `counts`; None without one.

    Tables call severities from some of a corruption's levels `random` too: of several files, the
    counts tell which.
    """
    stem = re.compile(re.escape(file_stem(*condition)) + r"(-\d+)*")
    number = next(iter(counts.values())).total
    refusal = None
    for path in sorted(path for path in folder.glob("*.npz") if stem.fullmatch(path.stem)):
        answers = read(path, number)
        if not counts.keys() <= answers.keys():
            continue
        wrong = [key for key, count in counts.items() if answers[key].sum() != count.correct]
        if not wrong:
            return [answers[key] for key in counts]
        model, seed = wrong[0]
        refusal = refusal or (
            f"{path}: expected {counts[wrong[0]].correct} correct answers of {model}, seed {seed}, as counts.csv says, "
            f"found {answers[wrong[0]].sum()}; run overlap.py again"
        )
    if refusal:
        raise ValueError(refusal)
    return None
