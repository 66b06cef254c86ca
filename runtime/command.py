"""The command line of the scripts that work on tables: flags only, and foreseen errors in one line."""

import contextlib
import pathlib
import sys

from absl import app, flags


def given(argv, required=None):
    """The flags of the command line.

    Args:
      argv: what absl left over; anything beside the script's name is refused.
      required: {flag: what it stands for} of the flags that must have a value.

    Raises:
      absl.app.UsageError: a positional argument, or a required flag without a value.
    """
    if len(argv) > 1:
        raise app.UsageError(f"expected only flags (patterns in quotes), found {argv[1:]}")
    if any(not flags.FLAGS[name].value for name in required or {}):
        wanted = [f"--{name}={what}" for name, what in required.items()]
        head = ", ".join(wanted[:-1])
        raise app.UsageError(f"expected {head + ' and ' if head else ''}{wanted[-1]}")
    return flags.FLAGS


def program():
    """The running command as it was called: `overlap.py`, or `tools.report` of `python -m tools.report`."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec.name if spec else pathlib.Path(sys.argv[0]).name


@contextlib.contextmanager
def errors():
    """Turns a ValueError or OSError into its message on standard error and exit status 1."""
    try:
        yield
    except (ValueError, OSError) as error:
        print(f"{program()}: {error}", file=sys.stderr)
        raise SystemExit(1) from error
