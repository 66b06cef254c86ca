"""Files that are complete or absent."""

import contextlib
import os
import pathlib
import tempfile


def write_atomically(path, content):
    """Writes `content` (str, UTF-8, or bytes) so that `path` holds the old file or the new one.

    The content goes to a temporary file in the same folder, is forced to disk (fsync) and takes the
    name in one rename; a crash at any moment leaves no half-written result. Missing folders are made.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        content = content.encode("utf-8")
    handle, aside = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files private to the owner; results get the permissions of ordinary files.
        os.chmod(aside, 0o666 & ~_umask())
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aside)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the rename itself
    finally:
        os.close(folder)


def _umask():
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
