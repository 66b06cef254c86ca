"""State that a command reads back: arrays and a record of what they were made from, in one file.

    write(path, arrays, made_from)        an .npz file
    read(path, remedy)                    Artifact(arrays, made_from)
    write_record(path, record)            a .json file of the record alone: final.json, ranges.json
    read_record(path, remedy)             the record

Every file holds the digest of its content. A file that is damaged, was edited or has no digest is
refused with `remedy`, the sentence that tells how to mend it. Writing is atomic. Needs no JAX.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from runtime import files
from runtime.files import DamagedFileError

SEAL = "sha256"
"""Key of the digest in a record."""
_RECORD = "made_from"


class Artifact(NamedTuple):
    """Arrays and what they were made from.

    Attributes:
      arrays: {name: array}.
      made_from: JSON-ready record: digests of the model and the images, options, seed.
    """

    arrays: dict[str, np.ndarray]
    made_from: dict[str, Any]


def digest(value: Any) -> str:
    """Computes the sha256 of a JSON-ready value; layout and order of keys do not change it."""
    return hashlib.sha256(_canonical(value)).hexdigest()


def write(path: str | os.PathLike, arrays: Mapping[str, np.ndarray], made_from: Mapping[str, Any]) -> None:
    """Writes arrays and the JSON-ready record of what they were made from to an .npz file."""
    record = json.loads(_canonical(made_from))
    sealed = {"record": record, SEAL: _digest(arrays, record)}
    files.write_arrays(path, {**arrays, _RECORD: np.array(json.dumps(sealed, sort_keys=True))})


def read(path: str | os.PathLike, remedy: str = files.REMEDY, *, content: bytes | None = None) -> Artifact:
    """Reads an .npz file that `write` wrote.

    Args:
      path: file to read.
      remedy: how to mend the file, for errors.
      content: bytes of the file if they were read already; `path` then only names the file.

    Raises:
      FileNotFoundError: there is no such file.
      DamagedFileError: the file is damaged, was edited, or was written by something else.
    """
    arrays = files.read_arrays(path, remedy, content=content)
    try:
        sealed = json.loads(str(arrays.pop(_RECORD)))
        record, expected = sealed["record"], sealed[SEAL]
        if not isinstance(record, dict):
            raise TypeError(f"{type(record).__name__} instead of an object")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DamagedFileError(
            f"{path}: expected arrays with a record of what they were made from, found none ({error}); {remedy}"
        ) from None
    if expected != _digest(arrays, record):
        raise DamagedFileError(
            f"{path}: expected content with the digest that it holds, found other content: the file was edited; {remedy}"
        )
    return Artifact(arrays, record)


def write_record(path: str | os.PathLike, record: Mapping[str, Any]) -> None:
    """Writes a JSON-ready record with its digest, keys sorted."""
    content = {key: value for key, value in json.loads(_canonical(record)).items() if key != SEAL}
    files.write_json(path, content | {SEAL: digest(content)}, sort_keys=True)


def read_record(
    path: str | os.PathLike, remedy: str = files.REMEDY, *, shape: Any = None, by_hand: bool = False
) -> dict[str, Any]:
    """Reads a record that `write_record` wrote, without its digest.

    Args:
      path: file to read.
      remedy: how to mend the file, for errors.
      shape: expected shape of the content, see `runtime.json_shapes`; None takes any.
      by_hand: accept a file without a digest, which a user wrote.

    Raises:
      FileNotFoundError: there is no such file.
      DamagedFileError: the file is damaged, was edited, or was written by something else.
    """
    record = files.read_json(path, remedy=remedy, shape=shape)
    expected = record.pop(SEAL, None)
    if expected is None and by_hand:
        return record
    if expected != digest(record):
        found = "none" if expected is None else "other content: the file was edited"
        raise DamagedFileError(
            f"{path}: expected content with the digest `{SEAL}` that it holds, found {found}; {remedy}"
        )
    return record


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _digest(arrays: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """Digest of names, types, shapes and bytes of arrays and of the record."""
    content = hashlib.sha256(_canonical(record))
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        content.update(_canonical([name, array.dtype.str, np.shape(arrays[name])]))
        content.update(array.reshape(-1).view(np.uint8))
    return content.hexdigest()
