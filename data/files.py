"""Files that are complete or absent, and a folder with one writer."""

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO


@contextlib.contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A binary file, written aside, forced to disk and renamed to `path` when the block ends without an error."""
    handle, aside = tempfile.mkstemp(prefix=f".part-{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(aside, 0o644)  # mkstemp's are private
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise


def write_text(path: Path, text: str) -> None:
    with writing(path) as file:
        file.write(text.encode())


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=1) + "\n")


def remove_parts(folder: Path) -> None:
    """Removes what killed writers left in a folder; only for one who holds its lock."""
    for path in folder.glob(".part-*"):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds a folder against other writers for as long as the block runs.

    Raises:
      BlockingIOError: another process has it.
    """
    with open(folder / ".lock", "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(f"another process is writing {folder}; wait for it or use another folder") from None
        yield
