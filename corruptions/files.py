"""Files that are complete or absent, in the folder that they belong to; folders with one writer; the folder of caches."""

import contextlib
import errno
import functools
import hashlib
import json
import logging
import math
import os
import pathlib
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import numpy as np  # imported where arrays are met: a command answers --help before

try:
    import fcntl
except ModuleNotFoundError:  # Windows: folders have no locks
    fcntl = None  # type: ignore[assignment]

LOG = logging.getLogger("corruptions.write")
_LACKS = (errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)  # what a file system cannot do
EVERY = 10.0
"""Seconds between two lines of text of a progress bar."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/")  # pathlib makes gs:/bucket of gs://bucket
_WHOLE = 2**28  # up to this many bytes, a digest reads all; beyond it, a sample
_PIECES, _PIECE = 1024, 2**14  # number of pieces in a sample, and bytes in each


class WriteError(RuntimeError):
    """The dataset cannot be written with these settings, or not now; finished files stay on disk."""


def local(path: str | os.PathLike) -> pathlib.Path:
    """Returns the path of a file or folder of this machine; WriteError for an address such as gs://bucket/folder."""
    if is_address(path):
        raise WriteError(
            f"expected a path of this machine, found the address {path}; write to a folder and copy it (gcloud storage cp -r, "
            "aws s3 cp --recursive), or mount the bucket (gcsfuse, mount-s3)"
        )
    return pathlib.Path(path)


def is_address(path: str | os.PathLike) -> bool:
    """Returns True for gs://BUCKET/FOLDER and the like."""
    return bool(_ADDRESS.match(os.fspath(path)))


def check_relative(path: str) -> str:
    """Returns a relative path, `a/b/c`, unchanged.

    Raises:
      ValueError: a part between slashes is no name: empty, `.`, `..`, or a drive letter.
    """
    for part in path.split("/"):
        if part == ".." or "\0" in part or pathlib.PurePath(part).parts != (part,):
            raise ValueError(f"expected names between slashes, neither empty ones nor . and .., found {path!r}")
    return path


def contained(base: str | os.PathLike, relative: str) -> pathlib.Path:
    """Resolves a path that a file names (a manifest, listing, archive, config or address) against its folder `base`.

    What deletes or overwrites by such a name takes the path from here: the file may come from others.

    Raises:
      ValueError: `relative` has a part that is no name (`check_relative`), or leads out of `base` through a link.
    """
    path = pathlib.Path(base, check_relative(relative))
    if not (found := pathlib.Path(os.path.realpath(path))).is_relative_to(os.path.realpath(base)):
        raise ValueError(f"expected {relative} within {base}, found a link to {found}")
    return path


def keeps_apart(folder: pathlib.Path, first: str, second: str) -> bool:
    """Returns True if a folder can hold both names, which differ in capitals or in composed letters, as two files."""
    pairs = zip(first.split("/"), second.split("/"))
    one, other = next(pair for pair in pairs if pair[0] != pair[1])
    with tempfile.TemporaryDirectory(dir=folder, prefix=".names-") as probe:
        pathlib.Path(probe, one).touch()
        return not pathlib.Path(probe, other).exists()


class Digest:
    """The sha256 of what is added, one after the other: text in UTF-8, bytes, and the bytes of arrays in C order."""

    def __init__(self, *parts: Any) -> None:
        self._total = hashlib.sha256()
        self.add(*parts)

    def add(self, *parts: Any) -> None:
        for part in parts:
            if isinstance(part, str):
                part = part.encode()
            elif not isinstance(part, bytes):
                import numpy as np

                part = np.ascontiguousarray(part).reshape(-1).view(np.uint8)
            self._total.update(part)

    def add_named(self, name: str, array: "np.ndarray") -> None:
        """Adds name, type, shape (of a number, (1,)) and bytes of an array."""
        self.add(f"{name} {array.dtype} {array.shape or (1,)}", array)

    def __str__(self) -> str:
        """Returns the digits, hexadecimal."""
        return self._total.hexdigest()


def digest_of(*parts: Any) -> str:
    """Returns the sha256, hexadecimal, of text, bytes and arrays, one after the other (`Digest`)."""
    return str(Digest(*parts))


def digest_of_json(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """Returns the sha256 of a JSON-ready value, keys sorted; `default` makes other values JSON-ready."""
    return digest_of(json.dumps(value, sort_keys=True, default=default))


def describe_file(path: str | os.PathLike) -> dict[str, Any]:
    """Returns {"bytes", "sha256"} of a file."""
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": found}


def content_sha256(paths: Sequence[str | os.PathLike]) -> str:
    """Computes the sha256 of the content of files, in order: of every byte up to 2^28 bytes in all.

    Of more, it takes a sample: 1,024 pieces of 2^14 bytes at equal distances, and the end. An image of a large set that
    was exchanged for another of the same name, size and time may then go unnoticed. A file that cannot be read counts as empty.
    """
    sizes = []
    for path in paths:
        try:
            sizes.append(os.stat(path).st_size)
        except OSError:
            sizes.append(0)
    total, content = sum(sizes), Digest()
    if total <= _WHOLE:
        pieces = ((path, 0, size) for path, size in zip(paths, sizes) if size)
    else:
        import numpy as np

        ends, starts = np.cumsum([0, *sizes]), np.linspace(0, total - 1, _PIECES).astype(int)
        numbers = np.searchsorted(ends, starts, side="right") - 1
        pieces = ((paths[i], start - ends[i], _PIECE) for i, start in zip(numbers.tolist(), starts.tolist()))
    for path, start, size in pieces:
        with open(path, "rb") as file:
            file.seek(start)
            content.add(file.read(size))
    return str(content)


def move(path: str | os.PathLike, to: str | os.PathLike) -> None:
    """Gives a file or folder another name of the same file system, in one rename; makes the folders above."""
    os.makedirs(os.path.dirname(to) or ".", exist_ok=True)
    os.replace(path, to)


def replace(path: pathlib.Path, content: bytes) -> None:
    """Writes bytes to a hidden file, forces them to disk and renames the file to `path`.

    The hidden file has a fixed name, so the next write replaces the leftovers of a killed process. That is
    safe because a folder has one writer (`lock`), which writes each file in one thread.
    """
    aside = path.with_name(f".{path.name}.part")
    try:
        aside.unlink(missing_ok=True)  # it may be a link in a folder that comes from others
        with open(aside, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        move(aside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        if isinstance(error, OSError):  # errors of an open file, such as a full disk, name no file
            error.filename = error.filename or str(path)
        raise


@contextlib.contextmanager
def lock(folder: str | os.PathLike) -> Iterator[None]:
    """Makes the folder and holds it against other writers; a warning names one whose file system has no locks.

    Raises WriteError where the folder cannot be made or written, or another process is writing it.
    """
    folder = local(folder)
    if folder.exists() and not folder.is_dir():
        raise WriteError(f"expected a folder to write to, found a file: {folder}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        no_link = lambda path, flags: os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))  # noqa: E731
        file = open(folder / ".lock", "a", opener=no_link)  # noqa: SIM115 - closed below
    except OSError as error:
        raise WriteError(f"cannot write to the folder {folder}: {error.strerror}") from error
    with file:
        if take_lock(file, folder) is False:
            raise WriteError(f"another process is writing {folder}; wait for it or use another folder")
        yield


def take_lock(file: IO, folder: str | os.PathLike, *, wait: bool = False) -> bool | None:
    """Locks an open file until it is closed or this process dies; returns True if that succeeded.

    Returns False where another process has the lock (with `wait` it waits for it), and None, after a warning that names
    `folder`, where the system or its file system has no locks.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _LACKS:
            raise
        _warn_of_no_locks(str(folder), error.strerror)
        return None
    return True


def is_locked(path: str | os.PathLike) -> bool:
    """Returns True if another process has locked the file of this path."""
    if not os.path.isfile(path):
        return False
    with open(path, "r+") as file:
        return take_lock(file, os.path.dirname(path)) is False


@functools.cache  # once for each folder
def _warn_of_no_locks(folder: str, reason: str) -> None:
    LOG.warning("%s: its file system has no locks (%s); see that no other process writes there", folder, reason)


def is_full(error: BaseException | None) -> bool:
    """Returns True if an error says that the disk or quota is full."""
    return isinstance(error, OSError) and error.errno in _FULL


def cache_folder() -> pathlib.Path:
    """Returns the folder of files that any process may use again: compiled programs, decoded images, copies of buckets."""
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(folder):
        raise FileNotFoundError(f"expected a home folder, or XDG_CACHE_HOME as an absolute path, found {folder!r}")
    return pathlib.Path(folder, "jax-corruptions")


def reserve(file: BinaryIO, size: int) -> None:
    """Makes an open file `size` bytes long and allocates the disk space where the system and its file system can.

    A full disk is then met at once and not after hours of work.
    """
    file.flush()
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except AttributeError:  # macOS
        file.truncate(size)
    except OSError as error:
        if error.errno not in _LACKS:
            raise
        file.truncate(size)


@contextlib.contextmanager
def bar(total: int | None, description: str, progress: bool | None, unit: str = "images") -> Iterator[Any]:
    """Yields a progress bar that counts images, or other units (tqdm), or lines of text without tqdm.

    `total` is None if their number is not known. `progress` is True, False, or None for where standard error
    is a terminal; nothing is shown where standard error is closed.
    """
    shown = sys.stderr is not None and (progress or (progress is None and sys.stderr.isatty()))
    try:
        from tqdm import tqdm  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        yield _Lines(total, description, shown, unit)
        return
    with tqdm(
        total=total, desc=description, unit="img" if unit == "images" else unit, unit_scale=True, disable=not shown
    ) as counter:
        yield counter


class _Lines:
    """Shows progress as lines of text, one for each description and one every `EVERY` seconds."""

    def __init__(self, total: int | None, description: str, shown: bool, unit: str) -> None:
        self._of = f"{f' of {total:,}' if total else ''} {unit}"
        self._shown, self._count, self._text, self._said = shown, 0, description, time.monotonic()

    def set_description(self, text: str) -> None:
        self._text, self._said = text, -math.inf
        self.update(0)

    def update(self, count: int) -> None:
        self._count += count
        if self._shown and time.monotonic() - self._said >= EVERY:
            print(f"{self._text}: {self._count:,}{self._of}", file=sys.stderr, flush=True)
            self._said = time.monotonic()
