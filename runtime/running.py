"""The running command: its name and its line, and Ctrl-C while it imports its modules.

Commands import this before anything else, by `runtime.command`. It imports little, so that they answer as soon as their
first line runs.
"""

import os
import signal
import sys

INTERRUPTED = 128 + signal.SIGINT
TRACEBACK = "JAX_CORRUPTIONS_TRACEBACK"

_came = False


def watch() -> None:
    """Ends this process in one line when Ctrl-C comes, until `leave` is called.

    A process that ignores Ctrl-C, or has a handler of its own, keeps that.
    """
    sys.excepthook = _end
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        try:
            signal.signal(signal.SIGINT, _note)
        except ValueError:  # only the main thread may
            return


def watch_command(package: str) -> None:
    """Calls `watch` where Python imports a package on its way to a module of it, `python -m PACKAGE.MODULE`."""
    if asked().partition(".")[0] == package:
        watch()


def leave() -> None:
    """Leaves Ctrl-C to the command, which has imported its modules."""
    if signal.getsignal(signal.SIGINT) is _note:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def asked() -> str:
    """Names the module of `python -m MODULE` while Python looks for it; "" in any other state."""
    words = sys.orig_argv
    return words[words.index("-m") + 1] if sys.argv[:1] == ["-m"] and "-m" in words[:-1] else ""


def program() -> str:
    """Returns the name of the running command: `overlap.py`, or `tools.report` of `python -m tools.report`."""
    return module() or asked() or os.path.basename(sys.argv[0])


def module() -> str:
    """Names the module that runs by `python -m`; "" for a script."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec.name.removesuffix(".__main__") if spec else ""


def command_line() -> str:
    """Returns the running command as a shell takes it: `python -m tools.report --workdir=DIR`."""
    import shlex

    start = ["-m", module()] if module() else sys.argv[:1]
    return shlex.join(["python", *start, *sys.argv[1:]])


def stopped() -> str:
    """Returns the line that a command ends with after Ctrl-C."""
    return f"{program()}: stopped; the same command continues"


def came(kind: type[BaseException]) -> bool:
    """Tells whether an error, or an error that a module made of it, is Ctrl-C during the imports."""
    return issubclass(kind, KeyboardInterrupt) or (_came and signal.getsignal(signal.SIGINT) is _note)


def _note(number, frame):
    global _came
    _came = True
    signal.default_int_handler(number, frame)


def _end(kind, error, traceback):
    if not came(kind) or os.environ.get(TRACEBACK):
        sys.__excepthook__(kind, error, traceback)
        return
    print(stopped(), file=sys.stderr)
    raise SystemExit(INTERRUPTED)
