"""Files of commands: what `corruptions.files` writes, in workdirs and copies of buckets too, and readers that say which file is
damaged. Needs no JAX.
"""

import contextlib
import io
import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from corruptions import files
from runtime.settings import SettingsError, WorkdirError

_ADDRESS = re.compile(r"(?:^|=)([a-z][a-z0-9+.-]+:/\S*)")  # pathlib makes gs:/bucket of gs://bucket
REMEDY = "move it away and repeat the command that wrote it"
_held: dict[
    str, tuple[BinaryIO, os.stat_result]
] = {}  # folders that this process locked: the open lock, what they were
_JSON_TYPES = {dict: "object", list: "list"}


class DamagedFileError(ValueError):
    """A file is damaged or was edited; the message names the file, its content and the remedy."""


def local(path: str | os.PathLike, what: str = "path", use: str = "read") -> str:
    """Returns a path of this machine as text; an address (gs://bucket/folder) becomes its copy's (`corruptions.remote`).

    Args:
      path: path, address, or text that ends with one (NAME=ADDRESS).
      what: setting or flag of the path, for errors.
      use: `read` makes the copy like the bucket; `write` is for results; `hold` is for a workdir and asks the bucket nothing
        before `locked`.

    Raises:
      SettingsError: an address of another scheme than gs:// and s3://, or with parts such as `..`.
      OSError: the bucket cannot be read.
    """
    text = os.fspath(path)
    if not (found := _ADDRESS.search(text)):
        return text
    from corruptions import remote

    try:
        address = remote.parse(found[1])
    except ValueError as error:
        raise SettingsError(f"{what}: {error}") from None
    path_of = {"read": remote.staged, "write": remote.results, "hold": remote.place}[use]
    return text[: found.start(1)] + str(path_of(address))


def copy_of(path: str | os.PathLike) -> Any:
    """Returns the copy of what lies in a bucket (`corruptions.remote.Copy`) that holds a path; None for other paths."""
    remote = sys.modules.get("corruptions.remote")  # imported with the first address
    return remote.copy_of(path) if remote else None


def fetch(path: str | os.PathLike) -> None:
    """Makes the copy that holds a path like the bucket; does nothing for other paths."""
    if copy := copy_of(path):
        copy.fetch()


def put(path: str | os.PathLike, grows: bool = False) -> None:
    """Writes the object of a file in a copy; of one that `grows` before the next checkpoint, and at the end."""
    if copy := copy_of(path):
        copy.put(Path(path), grows)


def shown(text: str) -> str:
    """Writes addresses in place of paths of copies."""
    remote = sys.modules.get("corruptions.remote")
    return remote.shown(text) if remote else text


@contextlib.contextmanager
def writing(path: str | os.PathLike, grows: bool = False) -> Iterator[BinaryIO]:
    """Yields a binary file that becomes `path` when the block ends without an error (`corruptions.files.writing`).

    In the copy of a bucket its object is written, too, when this returns; of a file that `grows` later (`put`). A
    WorkdirError says that a folder which this process holds is gone (`refuse_moved`).
    """
    path = Path(local(path, use="write"))
    refuse_moved(path)
    with files.writing(path) as file:
        yield file
    put(path, grows)


def remove(path: str | os.PathLike) -> None:
    """Deletes a file, if it is there."""
    Path(path).unlink(missing_ok=True)
    if copy := copy_of(path):
        copy.remove(copy.name(Path(path)))


def write_atomically(path: str | os.PathLike, content: str | bytes, grows: bool = False) -> None:
    """Writes text (as UTF-8) or bytes so that `path` holds the old content or the new one; `grows`: see `writing`."""
    with writing(path, grows) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def write_json(path: str | os.PathLike, value: Any, *, sort_keys: bool = False, grows: bool = False) -> None:
    """Writes JSON; NaN and infinity, which JSON lacks (see `without_nan`), raise ValueError."""
    try:
        text = json.dumps(value, indent=2, sort_keys=sort_keys, allow_nan=False)
    except ValueError as error:
        raise ValueError(f"{path}: expected numbers that JSON has, found others: {error}") from None
    write_atomically(path, text + "\n", grows)


def write_array(path: str | os.PathLike, array: np.ndarray) -> None:
    """Writes an array to an .npy file."""
    with writing(path) as file:
        np.save(file, array)


def write_arrays(path: str | os.PathLike, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes {name: array} to an .npz file."""
    with writing(path) as file:
        np.savez(file, **arrays)


def read_json(path: str | os.PathLike, kind: type | None = dict, remedy: str = REMEDY, shape: Any = None) -> Any:
    """Returns the content of a JSON file.

    `kind` is the type of the whole content, `dict` or `list`, and `shape` its shape (`mismatch`); None takes any.
    `remedy` tells how to mend the file.

    Raises:
      FileNotFoundError: no such file.
      DamagedFileError: not valid JSON, of another type, or of another shape.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # the latter of lists nested by the thousand
        raise DamagedFileError(f"{path}: expected valid JSON, found an error ({error}); {remedy}") from None
    if kind is not None and not isinstance(content, kind):
        found = _JSON_TYPES.get(type(content), type(content).__name__)
        raise DamagedFileError(f"{path}: expected a JSON {_JSON_TYPES[kind]}, found {found}; {remedy}")
    if shape is not None and (wrong := mismatch(content, shape)):
        raise DamagedFileError(f"{path}: {wrong}; {remedy}")
    return content


def read_arrays(path: str | os.PathLike, remedy: str = REMEDY, *, content: bytes | None = None) -> dict[str, Any]:
    """Returns {name: array} of an .npz file, or of its `content` in bytes, which `path` then only names.

    Raises:
      FileNotFoundError: no such file.
      DamagedFileError: no such archive; `remedy` tells how to mend it.
    """
    with io.BytesIO(content) if content is not None else open(path, "rb") as file:
        try:
            with np.load(file) as archive:
                return {name: archive[name] for name in archive.files}
        except Exception as error:  # the wrong byte decides among a dozen types
            raise _damaged(path, "an .npz file of arrays", file, error, remedy) from error


def read_array(path: str | os.PathLike, remedy: str = REMEDY, *, mapped: bool = False) -> np.ndarray:
    """Returns the array of an .npy file; with `mapped` as a read-only memory map. Raises as `read_arrays`."""
    with open(path, "rb") as file:
        try:
            array = np.load(path, mmap_mode="r") if mapped else np.load(file)
            if not isinstance(array, np.ndarray):
                raise TypeError("an archive of several")
        except Exception as error:
            raise _damaged(path, "an .npy file of an array", file, error, remedy) from error
    return array


def without_nan(value: Any) -> Any:
    """Makes a value fit JSON: NaN and infinity become null, tuples and arrays lists, named tuples objects."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextlib.contextmanager
def locked(folder: str | os.PathLike) -> Iterator[None]:
    """Holds a folder while the block runs (`corruptions.files.locked`), and knows it again (`refuse_moved`).

    A workdir in a bucket is held there, too, and its copy is made like it.
    """
    with files.locked(folder) as file:
        name = os.path.abspath(folder)
        _held[name] = file, os.stat(name)
        try:
            copy = copy_of(folder)
            with copy.held() if copy and copy.root == Path(folder) else contextlib.nullcontext():
                yield
        finally:
            del _held[name]


def refuse_moved(path: str | os.PathLike) -> None:
    """Raises WorkdirError where a folder above `path` that this process holds (`locked`) was removed or renamed since."""
    above = os.path.abspath(path)
    while (above := os.path.dirname(above)) != "/":
        if above in _held and not _is_same(above, *_held[above]):
            raise WorkdirError(
                f"workdir {above} was removed or renamed while this command wrote it, and nothing more is written; where "
                "it was renamed give it its name again, and the same command continues"
            )


def _is_same(folder, lock, before):
    try:
        return os.path.samestat(os.stat(f"{folder}/.lock"), os.fstat(lock.fileno()))
    except FileNotFoundError:  # somebody may have removed the lock alone
        return os.path.isdir(folder) and os.path.samestat(os.stat(folder), before)


def _damaged(path, expected, file, error, remedy):
    size = file.seek(0, os.SEEK_END)
    return DamagedFileError(
        f"{path}: expected {expected}, found one that cannot be read ({size} bytes; {error}); {remedy}"
    )


# Shapes of JSON: the expected content of a file, written with types.
#
#   {"range": [float], "capped": (bool, bool)}    an object with at least these keys
#   {str: float}                                  an object of any keys
#   [int]                                         a list, its items alike
#   (str, float)                                  a list of exactly these items
#   int, float, str, bool, NULL                   a number without a fraction, any number, ...
#   Either(float, NULL), Maybe(float)             one of several; a key that may be missing

NULL = type(None)
_NAMES = {dict: "an object", list: "a list", str: "text", bool: "true or false", NULL: "null"}
_NAMES |= {int: "a whole number", float: "a number"}


class Either:
    """Any of several shapes."""

    def __init__(self, *shapes: Any) -> None:
        self.shapes = shapes


class Maybe(NamedTuple):
    """The value of a key that may be missing."""

    shape: Any


def mismatch(value: Any, shape: Any, where: str = "") -> str | None:
    """Says where a value differs from a shape, `expected a number as sizes.3, found None`; None if it fits."""
    if isinstance(shape, Either):
        problems = [mismatch(value, alternative, where) for alternative in shape.shapes]
        return None if None in problems else problems[0]
    if isinstance(shape, dict):
        return _of_object(value, shape, where) if isinstance(value, dict) else _wrong(dict, value, where)
    if isinstance(shape, list | tuple):
        if not isinstance(value, list):
            return _wrong(list, value, where)
        if isinstance(shape, tuple) and len(value) != len(shape):
            return f"expected {len(shape)} items{_at(where)}, found {len(value)}"
        shapes = shape if isinstance(shape, tuple) else shape * len(value)
        return _first(mismatch(item, inner, _join(where, k)) for k, (item, inner) in enumerate(zip(value, shapes)))
    right = isinstance(value, int | float if shape is float else shape)
    if not right or (isinstance(value, bool) and shape is not bool):
        return _wrong(shape, value, where)
    return None


def _of_object(value, shape, where):
    if str in shape:
        return _first(mismatch(item, shape[str], _join(where, key)) for key, item in value.items())
    for key, inner in shape.items():
        optional = isinstance(inner, Maybe)
        if key in value:
            if problem := mismatch(value[key], inner.shape if optional else inner, _join(where, key)):
                return problem
        elif not optional:
            return f"expected {_join(where, key)}, found nothing of that name"
    return None


def _first(problems):
    return next((problem for problem in problems if problem), None)


def _wrong(shape, value, where):
    found = _NAMES[type(value)] if isinstance(value, dict | list) else repr(value)
    return f"expected {_NAMES[shape]}{_at(where)}, found {found}"


def _join(where, key):
    return f"{where}.{key}" if where else str(key)


def _at(where):
    return f" as {where}" if where else ""
