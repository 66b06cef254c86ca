"""Runs a command that dies at its n-th change of files below a folder; Python's audit events tell of the changes.

    python -m tests.torture.dying FOLDER N LOG train.py --config=...      # or: -m MODULE ..., -c CODE ...

The process kills itself right before the N-th change; 0 lets it live. Every change is a line of LOG. A folder or a file
is opened to be written, made, renamed, linked, cut or removed: each is a change, whoever asks for it, ours, Orbax or NumPy.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable

_CHANGES = {  # event of the audit -> places of its paths, and of the open folder that a relative path starts from
    "os.mkdir": ((0, 2),),
    "os.rmdir": ((0, 1),),
    "os.remove": ((0, 1),),
    "os.truncate": ((0, None),),
    "os.rename": ((0, 2), (1, 3)),
    "os.link": ((0, 2), (1, 3)),
    "os.symlink": ((1, 2),),
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
HERE: list[Callable[[str], None]] = []  # who is told of the changes; empty: nobody
_hooked = False


def watch(folder: str | os.PathLike, tell: Callable[[str], None]) -> None:
    """Calls `tell(what)` before each change of files below `folder`, until `unwatch`; what it raises stops the change."""
    global _hooked
    root = os.path.realpath(folder)

    def told(event, given):
        paths = [path for path in _paths(event, given) if path.startswith(root + os.sep)]
        if paths and not _is_idle(event, paths[0]):
            tell(f"{event} {' '.join(path[len(root) + 1 :] for path in paths)}")

    HERE[:] = [told]
    if not _hooked:  # a hook stays for the life of the process
        sys.addaudithook(lambda event, given: [one(event, given) for one in HERE] if event in _EVENTS else None)
        _hooked = True


def unwatch() -> None:
    """Ends `watch`."""
    HERE.clear()


_EVENTS = {*_CHANGES, "open"}


def _is_idle(event, path):
    """Whether a change changes nothing: a folder that is there is made, or a file removed that is not there."""
    return os.path.lexists(path) if event == "os.mkdir" else event == "os.remove" and not os.path.lexists(path)


def _paths(event, given):
    if event == "open":
        return [_whole(given[0])] if given[2] & _WRITES and not isinstance(given[0], int) else []
    return [_whole(given[k], None if at is None else given[at]) for k, at in _CHANGES[event]]


def _whole(path, folder=None):
    path = os.fsdecode(path) if not isinstance(path, int) else os.readlink(f"/proc/self/fd/{path}")
    if not os.path.isabs(path):
        above = os.getcwd() if folder in (None, -1) else os.readlink(f"/proc/self/fd/{folder}")
        path = os.path.join(above, path)
    return os.path.normpath(path)


def _die_at(folder, at, log):
    count, turn = 0, threading.Lock()

    def tell(what):
        nonlocal count
        with turn:
            count += 1
            os.write(log, f"{count} {what}\n".encode())
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)

    watch(folder, tell)


if __name__ == "__main__":
    from tests.processes import run_words

    _, folder, at, log, *words = sys.argv
    _die_at(folder, int(at), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
    run_words(words)
