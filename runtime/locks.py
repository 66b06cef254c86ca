"""What a file system may lack: locks of files, folders that are forced to disk (a warning names the folder, once), room.

Apart from `runtime.files`, since `runtime.mirrors`, which that module uses, takes locks too.
"""

import errno
import fcntl
import functools
import os
from pathlib import Path
from typing import IO

from runtime.log import log

# EBADF: NFS locks no file that is not open for writing, so no folder. EACCES: a folder that takes files and shows none.
_MISSING = (errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF, errno.EACCES)


def take_lock(file: IO | int, folder: Path, *, wait: bool = False) -> bool | None:
    """Locks an open file, or folder, until it is closed or this process dies; True if that succeeded.

    Returns False where another process has the lock (with `wait` it waits for it), and None, after a warning that names
    `folder`, where the file system has no locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        _warn(error, folder, "has no locks", "see that no other process writes there")
        return None
    return True


def force_to_disk(folder: Path) -> None:
    """Forces the names in a folder to disk; a warning says that the file system cannot."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        _warn(error, folder, "forces no folders to disk", "a power cut may take the newest files")


def is_full(error: BaseException | None) -> bool:
    """Returns True if an error, one that it holds or one that caused it, says that a disk or quota is full."""
    if error is None:
        return False
    codes = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if getattr(error, "errno", None) in codes or any(os.strerror(code) in str(error) for code in codes):
        return True
    return any(map(is_full, (*getattr(error, "exceptions", ()), error.__cause__)))


def _warn(error: OSError, folder: Path, lacks: str, advice: str) -> None:
    if error.errno not in _MISSING:
        raise error
    _warn_once(str(folder), f"its file system {lacks} ({error.strerror}); {advice}")


@functools.cache
def _warn_once(folder: str, text: str) -> None:
    log.warning("%s: %s", folder, text)
