"""The running command: its name and its line, and Ctrl-C while it imports its modules.

Commands import this before anything else. It imports little, so that they answer as soon as their first line runs.
"""

import os
import signal
import sys

INTERRUPTED = 128 + signal.SIGINT
TRACEBACK = "JAX_CORRUPTIONS_TRACEBACK"


def watch() -> None:
    """Ends a script, or a module of `python -m`, in one line when Ctrl-C comes, until `leave` is called.

    At once, since an exception may crash a compiled module that is half imported, or become another one there. Notebooks
    and tests, which import the modules of commands too, keep their own Ctrl-C, and so does a process that ignores it.
    """
    sys.excepthook, sys.unraisablehook = _end_in_one_line, _raise_again
    if (asked() or _imported_by_script()) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def watch_command(package: str) -> None:
    """Calls `watch` where Python imports a package on its way to a module of it, `python -m PACKAGE.MODULE`."""
    if asked().partition(".")[0] == package:
        watch()


def leave() -> None:
    """Leaves Ctrl-C to the command, which has imported its modules."""
    if signal.getsignal(signal.SIGINT) is _stop:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _imported_by_script():
    frame = sys._getframe()
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in ("importlib", "corruptions", "runtime"):
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") == "__main__" and "__file__" in frame.f_globals


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


def end() -> None:
    """Ends this process in one line after Ctrl-C, without Python's own end, in which half imported modules may crash."""
    for flush in (sys.stdout.flush, sys.stderr.flush, lambda: os.write(2, f"\n{stopped()}\n".encode())):
        try:
            flush()
        except (OSError, ValueError, RuntimeError):  # closed, or Ctrl-C came while it was written to
            continue
    os._exit(INTERRUPTED)


def _stop(number, frame):
    if os.environ.get(TRACEBACK):
        signal.default_int_handler(number, frame)
    end()


def _end_in_one_line(kind, error, traceback):
    if not issubclass(kind, KeyboardInterrupt) or os.environ.get(TRACEBACK):
        sys.__excepthook__(kind, error, traceback)
        return
    end()


def _raise_again(dropped):
    """Repeats Ctrl-C that came in a callback, as of the garbage collector, where Python drops the exception."""
    if dropped.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(dropped)
        return
    import threading

    again = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    again.daemon = True
    again.start()
