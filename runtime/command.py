"""What commands share: who is called and how, flags alone on the command line, and errors a person can act on."""

import contextlib
import errno
import os
import pathlib
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping

from absl import app, flags

from runtime.log import configure, log

# Foreseen: ours, of files, of JAX and Orbax (a device that is out of memory, a checkpoint that does not fit).
_FORESEEN = (ValueError, TypeError, OSError, RuntimeError)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def given(argv: list[str], required: Mapping[str, str] | None = None) -> flags.FlagValues:
    """Returns the flags of the command line of a command that works on tables.

    Args:
      argv: what absl left over; anything beside the script's name is refused.
      required: {flag: what it stands for} of the flags that must have a value.

    Raises:
      absl.app.UsageError: a positional argument, or a required flag without a value.
    """
    configure()
    refuse_positional(argv)
    if any(not flags.FLAGS[name].value for name in required or {}):
        needed = [f"--{name}={what}" for name, what in required.items()]
        head = ", ".join(needed[:-1])
        raise app.UsageError(f"expected {head + ' and ' if head else ''}{needed[-1]}")
    return flags.FLAGS


def refuse_positional(argv: list[str]) -> None:
    """Raises absl.app.UsageError for anything that absl left over beside the script's name."""
    if len(argv) > 1:
        raise app.UsageError(f"expected only flags (patterns in quotes), found {argv[1:]}")


def program() -> str:
    """Returns the name of the running command: `overlap.py`, or `tools.report` of `python -m tools.report`."""
    return _module() or pathlib.Path(sys.argv[0]).name


def command_line() -> str:
    """Returns the running command as a shell takes it: `python -m tools.report --workdir=DIR`."""
    start = ["-m", _module()] if _module() else sys.argv[:1]
    return shlex.join(["python", *start, *sys.argv[1:]])


def _module():
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec.name.removesuffix(".__main__") if spec else None


@contextlib.contextmanager
def errors() -> Iterator[None]:
    """Turns foreseen errors into one message on standard error and exit status 1, without a traceback.

    Ctrl-C ends in one line too, with exit status 130: what is finished lies in files already.
    JAX_CORRUPTIONS_TRACEBACK=1 in the environment shows the traceback instead.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        if os.environ.get("JAX_CORRUPTIONS_TRACEBACK"):
            raise
        log.error("%s: stopped; the same command continues", program())
        raise SystemExit(128 + signal.SIGINT) from error
    except _FORESEEN as error:
        if os.environ.get("JAX_CORRUPTIONS_TRACEBACK"):
            raise
        kind = "" if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: "
        full = isinstance(error, OSError) and error.errno in _FULL
        advice = "; make room, and the same command continues" if full else ""
        hint = "(JAX_CORRUPTIONS_TRACEBACK=1 shows where.)"
        log.error("%s: %s%s%s\n%s", program(), kind, error, advice, hint)
        if "runtime.distributed" in sys.modules:  # else the command needs no JAX, and is alone
            from runtime import distributed

            distributed.abandon(error)
        raise SystemExit(1) from error
