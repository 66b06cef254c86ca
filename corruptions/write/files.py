"""Files that are complete or absent, and folders with one writer."""

import contextlib
import hashlib
import os
import pathlib
from collections.abc import Iterator
from typing import Any, BinaryIO


class WriteError(RuntimeError):
    """The dataset cannot be written with these settings, or not now; finished files stay on disk."""


def describe_file(path: str | os.PathLike) -> dict[str, Any]:
    """Returns {"bytes", "sha256"} of a file."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": digest}


def replace(path: pathlib.Path, content: bytes) -> None:
    """Writes bytes to a hidden file, forces them to disk and renames the file to `path`.

    The hidden file has a fixed name, so the next write replaces the leftovers of a killed process. That is
    safe because a folder has one writer (`lock`), which writes each file in one thread.
    """
    aside = path.with_name(f".{path.name}.part")
    try:
        with open(aside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        if isinstance(error, OSError):  # errors of an open file, such as a full disk, name no file
            error.filename = error.filename or str(path)
        raise


@contextlib.contextmanager
def lock(folder: str | os.PathLike) -> Iterator[None]:
    """Makes the folder and holds it against other writers.

    Raises:
      WriteError: the folder cannot be made or written, or another process is writing it.
    """
    import fcntl  # not on Windows, where the rest of the package works

    folder = pathlib.Path(folder)
    if folder.exists() and not folder.is_dir():
        raise WriteError(f"expected a folder to write to, found a file: {folder}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / ".lock", "a")  # noqa: SIM115 - closed below
    except OSError as error:
        raise WriteError(f"cannot write to the folder {folder}: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WriteError(f"another process is writing {folder}; wait for it or use another folder") from None
        yield


def reserve(file: BinaryIO, size: int) -> None:
    """Makes an open file `size` bytes long and allocates the disk space where the system can.

    A full disk is then met at once and not after hours of work.
    """
    file.flush()
    if hasattr(os, "posix_fallocate"):  # not on macOS
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)
