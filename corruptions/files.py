"""Files that are complete or absent, in the folder that they belong to; folders with one writer; digests; progress; names alike.

For the library and all commands. Every writer goes through `writing`: the content goes to a file beside, is forced to disk and
takes the name in one rename, so that a crash at any moment leaves the old file or the new one. The file beside is locked by its
writer; one that is not was left by a killed process, and the next writer of the same name removes it.
"""

import contextlib
import difflib
import errno
import functools
import hashlib
import json
import logging
import math
import os
import pathlib
import re
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import numpy as np  # imported where arrays are met: a command answers --help before

try:
    import fcntl
except ModuleNotFoundError:  # Windows: folders have no locks
    fcntl = None  # type: ignore[assignment]

LOG = logging.getLogger("corruptions.write")
# What a file system cannot do. EBADF: NFS locks only files that are open for writing, and a folder is not. EACCES: a folder
# takes files but does not list them.
_LACKS = (errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF, errno.EACCES)
_ASIDE = ".part-"
EVERY = 10.0  # seconds between two lines of text of a progress bar
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/")  # pathlib makes gs:/bucket of gs://bucket
WHOLE = 2**28  # up to this many bytes, a digest reads all; beyond it, a sample
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
    return {"bytes": os.path.getsize(path), "sha256": digest_of_file(path)}


def digest_of_file(path: str | os.PathLike, kind: str = "sha256") -> str:
    """Returns the sha256, or another digest of hashlib, hexadecimal, of the content of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


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
    if total <= WHOLE:
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


@contextlib.contextmanager
def writing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Yields a binary file that becomes `path` when the block ends without an error, and else is removed.

    Missing folders are made. The file has the permissions of an ordinary new one (by the umask). An OSError names
    `path`, also where the system names no file (a full disk).
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_parts(path.parent, path.name)
    with naming(path), _open_aside(path) as (file, aside):
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(aside, path)
        except BaseException:
            with contextlib.suppress(OSError):
                aside.unlink()
            raise
    force_to_disk(path.parent)


def replace(path: str | os.PathLike, content: bytes) -> None:
    """Writes bytes so that `path` holds the old content or the new one."""
    with writing(path) as file:
        file.write(content)


@contextlib.contextmanager
def naming(path: str | os.PathLike) -> Iterator[None]:
    """Puts `path` into errors of writing: errors of an open file, such as a full disk, name no file."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


@contextlib.contextmanager
def _open_aside(path: pathlib.Path) -> Iterator[tuple[BinaryIO, pathlib.Path]]:
    """Opens and locks a new file beside `path`; yields it and its own path."""
    while True:
        aside = path.with_name(f"{_ASIDE}{path.name}.{secrets.token_hex(4)}")
        with open(aside, "xb") as file:
            if take_lock(file, path.parent) is False or not os.fstat(file.fileno()).st_nlink:
                continue  # another writer took the new file for a left one
            yield file, aside
            return


def remove_parts(folder: str | os.PathLike, name: str = "") -> None:
    """Removes the unfinished files that killed writers, of the file `name` or of any, left in a folder."""
    of_name = re.compile(re.escape(f"{_ASIDE}{name}.") + "[0-9a-f]{8}" if name else re.escape(_ASIDE) + ".*", re.S)
    for path in [path for path in pathlib.Path(folder).iterdir() if of_name.fullmatch(path.name)]:
        with contextlib.suppress(OSError), open(path, "r+b") as file:
            if take_lock(file, folder):
                path.unlink()


def force_to_disk(folder: str | os.PathLike) -> None:
    """Forces the names in a folder to disk; a warning says that the file system cannot."""
    if fcntl is None:  # Windows opens no folders
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        _warn(error, folder, "forces no folders to disk", "a power cut may take the newest files")


@contextlib.contextmanager
def locked(folder: str | os.PathLike) -> Iterator[IO]:
    """Holds a folder against other writers and yields its open lock; a warning names a file system that has no locks.

    Raises OSError where the folder cannot be written, and BlockingIOError where another process is writing it.
    """
    no_link = lambda path, flags: os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))  # noqa: E731
    with open(pathlib.Path(folder, ".lock"), "a", opener=no_link) as file:
        if take_lock(file, folder) is False:
            raise BlockingIOError(f"another process is writing {folder}; wait for it or use another folder")
        yield file


@contextlib.contextmanager
def lock(folder: str | os.PathLike) -> Iterator[None]:
    """Makes a folder and holds it (`locked`); WriteError: it cannot be made or written, or another process is writing it."""
    folder = local(folder)
    if folder.exists() and not folder.is_dir():
        raise WriteError(f"expected a folder to write to, found a file: {folder}")
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder))
        except OSError as error:
            taken = str(error) if isinstance(error, BlockingIOError) else None
            raise WriteError(taken or f"cannot write to the folder {folder}: {error.strerror}") from error
        yield


def take_lock(file: IO | int, folder: str | os.PathLike, *, wait: bool = False) -> bool | None:
    """Locks an open file, or folder, until it is closed or this process dies; returns True if that succeeded.

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
        _warn(error, folder, "has no locks", "see that no other process writes there")
        return None
    return True


def is_locked(path: str | os.PathLike) -> bool:
    """Returns True if another process has locked the file of this path."""
    if not os.path.isfile(path):
        return False
    with open(path, "r+") as file:
        return take_lock(file, os.path.dirname(path)) is False


def _warn(error: OSError, folder: str | os.PathLike, lacks: str, advice: str) -> None:
    if error.errno not in _LACKS:
        raise error
    _warn_once(os.fspath(folder), f"its file system {lacks} ({error.strerror}); {advice}")


@functools.cache
def _warn_once(folder: str, text: str) -> None:
    LOG.warning("%s: %s", folder, text)


def is_full(error: BaseException | None) -> bool:
    """Returns True if an error, one that it holds or one that caused it, says that a disk or quota is full."""
    if error is None:
        return False
    if getattr(error, "errno", None) in _FULL or any(os.strerror(code) in str(error) for code in _FULL):
        return True
    return any(map(is_full, (*getattr(error, "exceptions", ()), error.__cause__)))


def similar(name: str, known: Iterable[str], count: int = 1, least: float = 0.6) -> list[str]:
    """Lists the known names most like a misspelt one, at most `count`, of a likeness (difflib's ratio) of `least` or more."""
    return difflib.get_close_matches(name, list(dict.fromkeys(known)), count, least)


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


def bar(
    total: int | None,
    description: str,
    progress: bool | None,
    unit: str = "images",
    items: Iterable | None = None,
    **options: Any,
) -> Any:
    """Returns a progress bar, a context that counts images or other units (tqdm), or one of lines of text without tqdm.

    `total` is None if their number is not known. `progress` is True, False, or None for where standard error
    is a terminal; nothing is shown where standard error is closed. With tqdm it iterates over `items`; `options` are tqdm's.
    """
    shown = sys.stderr is not None and (progress or (progress is None and sys.stderr.isatty()))
    try:
        from tqdm import tqdm  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        if options:
            raise
        return _Lines(total, description, shown, unit)
    ours = {"unit": "img" if unit == "images" else unit, "unit_scale": True, "disable": not shown}
    return tqdm(items, description, total, **ours | options)


class _Lines(contextlib.nullcontext):
    """Shows progress as lines of text, one for each description and one every `EVERY` seconds."""

    def __init__(self, total: int | None, description: str, shown: bool, unit: str) -> None:
        super().__init__(self)
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
