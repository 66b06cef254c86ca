"""Ctrl-C in `python -m corruptions.write`, from its first import to its end. Imports no package but Python's own."""

import contextlib
import os
import signal
import sys


def of_command() -> None:
    """Answers Ctrl-C where Python imports this package on its way to the command, not in other programs."""
    words = sys.orig_argv
    if sys.argv[:1] == ["-m"] and words[words.index("-m") + 1 :][:1] == ["corruptions.write"]:
        answer()


def answer() -> None:
    """Ends the process in one line when Ctrl-C comes."""
    signal.signal(signal.SIGINT, _stop)


def _stop(*_: object) -> None:
    """Ends the process at once: a killed run loses nothing that is complete.

    Python would raise KeyboardInterrupt instead. JAX's callback of the garbage collector loses it, NumPy makes an
    ImportError of it, and at the end of the interpreter JAX destroys devices that a running compilation uses, which
    ends in a segmentation fault.
    """
    with contextlib.suppress(OSError):
        os.write(2, b"\ninterrupted; the same command continues\n")
    os._exit(130)
