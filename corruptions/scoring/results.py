"""The file of per-image results under a condition, of one or more models: `evaluate`, eval.py and overlap.py write it, and
every command reads it.

    FOLDER/answers/noc.border-random.npz          a corruption at a severity, `/` written as `.`
    FOLDER/answers/cbar.lines-random-1-4-7.npz    severities drawn from some of its levels

By `model|seed` it holds one bit per image (1: correct), packed as `numpy.packbits` does: uint8 [ceil(N / 8)]; by
`model|seed|plain` 14 bytes per image, the confidence of the answer (`confidence.STORED` [N]), and by `model|seed|scaled` the
same after temperature scaling; by `made_from` a `Record` as JSON, with the sha256 of all of it.

A model `NAME+ensemble=0.1.2` averages the probabilities of the models NAME with seeds 0, 1 and 2; its own seed is 0.
"""

import io
import os
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from corruptions.scoring.conditions import Condition, file_stem
from corruptions.scoring.confidence import EARLIER, STORED
from corruptions.scoring.sealed import sealed, unsealed

FOLDER = "answers"
Key = tuple[str, int]
"""(model, seed)."""
ONE: Key = ("standard", 0)
"""The model of a folder that holds results of one classifier."""
PLAIN, SCALED = SETS = ("plain", "scaled")
"""The confidence of a model as it is, and after temperature scaling."""
BY_MODEL = ("models", "temperatures", "revisions", "classifiers")
"""The fields of a `Record` with a value for each model."""
REMEDY = "remove it to evaluate this condition again"


class Record(NamedTuple):
    """The origin of the results in a file."""

    corruption: str  # qualified name, or `clean`
    severity: int | float | str  # a level, a fraction or `random`; 0 for `clean`
    levels: tuple[int, ...] | None  # levels that random severities are drawn from, where a benchmark selects some
    number: int  # N, test images
    # Digests of the test images; of corrupted ones also the seed and the options of the corruption. The pixels depend on these.
    shown: Mapping[str, Any]
    # Names for readers: `dataset`, `classes`, `image_shape`, `preprocessing`, `described` (see
    # `analysis.errors.reference`), `stored`, `imports`, `source`.
    about: Mapping[str, Any] = {}
    models: Mapping[Key, str] = {}  # {(model, seed): digest of its state}
    temperatures: Mapping[Key, float] = {}  # {(model, seed): temperature of the set `scaled`}
    # Files of one corruption at random severities differ in `levels`; the file with the highest serial was asked for last. 0 in
    # files from before there were serial numbers.
    serial: int = 0
    # What made the images, and a probe of them, as `corruptions.core.origin.Origin` writes them; {} where they were
    # not corrupted here, and in files from before.
    origin: Mapping[str, Any] = {}
    revisions: Mapping[Key, str] = {}  # {(model, seed): revision that evaluated it}
    # {(model, seed): fields of `Origin` that a function from images to logits has: `network`, `dtype`, `outputs`}
    classifiers: Mapping[Key, Mapping[str, Any]] = {}

    @property
    def condition(self) -> Condition:
        """The condition of the images."""
        return Condition(self.corruption, str(self.severity), self.levels)

    @property
    def stem(self) -> str:
        """Names the file of this condition, without `.npz`."""
        return file_stem(self.corruption, self.severity, self.levels)


class Answered(NamedTuple):
    """The answers of a model to N images."""

    correct: np.ndarray  # bool [N], which are right
    # {set: `STORED` [N]}, see `SETS`; empty of answers from before confidence was kept.
    confidence: Mapping[str, np.ndarray] = {}


def to_bytes(by_model: Mapping[Key, np.ndarray | Answered], record: Record) -> bytes:
    """Makes the content of a file of the answers {(model, seed): `Answered`, or bool [N] alone}."""
    arrays = {}
    for key, of_model in by_model.items():
        correct, confidence = of_model if isinstance(of_model, Answered) else Answered(of_model)
        arrays[name_of(key)] = np.packbits(correct)
        arrays |= {f"{name_of(key)}|{name}": stored for name, stored in confidence.items()}
    by_name: Any = {
        field: {name_of(key): value for key, value in getattr(record, field).items() if key in by_model}
        for field in BY_MODEL
    }
    content = io.BytesIO()
    given: Any = sealed(arrays, record._replace(**by_name)._asdict())
    np.savez(content, **given)
    return content.getvalue()


def read_file(path: str | os.PathLike, *, content: bytes | None = None) -> tuple[dict[Key, Answered], Record]:
    """Reads one file: ({(model, seed): `Answered`}, its record).

    `content` are the bytes of the file if they were read already; `path` then only names the file. Raises
    FileNotFoundError where there is no such file, and ValueError where it holds something else, or the results
    under another condition.
    """
    content = pathlib.Path(path).read_bytes() if content is None else content
    try:
        with np.load(io.BytesIO(content)) as archive:
            arrays = dict(archive)
    except Exception as error:  # the damaged byte decides among a dozen types
        raise ValueError(
            f"{path}: expected per-image results, found a file that cannot be read ({error}); {REMEDY}"
        ) from error
    try:
        record = _record(unsealed(arrays))
        if record.stem != pathlib.Path(path).stem:
            raise ValueError(f"expected answers under {pathlib.Path(path).stem}, found {record.stem}")
        return _answers(arrays, record.number), record
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: {error}; {REMEDY}") from error


_SHAPE: dict[str, tuple[type, ...]] = {
    "corruption": (str,),
    "severity": (str, int, float),
    "levels": (list, type(None)),
    "number": (int,),
    "serial": (int,),
}
_WORDS = {str: "text", int: "a whole number", list: "a list", dict: "an object"}


def _record(made_from: Mapping[str, Any]) -> Record:
    """Makes the record of what a file says that it was made from."""
    for name in Record._fields:
        if name not in made_from and name not in Record._field_defaults:
            raise ValueError(f"expected {name}, found nothing of that name")
        kinds = _SHAPE.get(name, (dict,))
        if name in made_from and not isinstance(made_from[name], kinds):
            raise ValueError(f"expected {_WORDS[kinds[0]]} as {name}, found {made_from[name]!r:.60}")
    if unknown := sorted(set(made_from) - set(Record._fields)):
        raise ValueError(f"expected a record of this version, found {unknown[0]!r} in it: read it with a newer version")
    levels = made_from["levels"] and tuple(made_from["levels"])
    by_key = {field: {key_of(n): v for n, v in made_from.get(field, {}).items()} for field in BY_MODEL}
    return Record(**{**made_from, "levels": levels, **by_key})


def _answers(arrays: Mapping[str, np.ndarray], number: int) -> dict[Key, Answered]:
    correct: dict[Key, np.ndarray] = {}
    confidence: dict[Key, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        model, _, last = name.rpartition("|")
        kinds, size = ((STORED, EARLIER), number) if last in SETS else ((np.uint8,), -(-number // 8))
        if array.dtype not in kinds or array.shape != (size,):
            raise ValueError(
                f"expected packed answers to {number} images, found {array.dtype}{list(array.shape)} for {name}"
            )
        if last in SETS:
            confidence.setdefault(key_of(model), {})[last] = array
        else:
            correct[key_of(name)] = np.unpackbits(array, count=number).astype(bool)
    return {key: Answered(bits, confidence.get(key, {})) for key, bits in correct.items()}


def name_of(key: Key) -> str:
    """Names a model in files: `model|seed`."""
    return f"{key[0]}|{key[1]}"


def key_of(name: str) -> Key:
    """Reads what `name_of` wrote."""
    model, bar, seed = name.rpartition("|")
    if not bar or not seed.isdecimal():
        raise ValueError(f"expected arrays called model|seed, found {name!r}")
    return model, int(seed)
