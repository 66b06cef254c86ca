"""Python processes that are forked from one which has imported what the commands import.

A command that starts anew spends four to seven seconds of CPU time on its imports, more than most tests of a command
spend on the rest. All else is as `subprocess` has it: arguments, environment, signals and output of its own. A test of
the imports, or of a signal while they last, takes `subprocess`.
"""

import atexit
import contextlib
import importlib
import logging
import multiprocessing
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import forkserver

ROOT = pathlib.Path(__file__).resolve().parents[1]
_COMMANDS = ("train", "eval", "overlap", "select_noc", "corruptions.write.__main__") + tuple(
    f"tools.{name}" for name in ("adapt", "calibrate", "cbar", "msd", "report", "tables")
)
_SERVER = multiprocessing.get_context("forkserver")


class Process:
    """A command that runs.

    Args:
      command: what `subprocess.Popen` takes: `sys.executable`, then a script, `-m MODULE` or `-c CODE`, and arguments.
      cwd: the folder it works in.
      env: its environment, by default that of this process.
      output: a file for both streams; by default `communicate` returns what they held.
      together: whether standard error goes to standard output.
    """

    def __init__(self, command, *, cwd=ROOT, env=None, output=None, together=False):
        assert command[0] == sys.executable, command
        _start_server()
        if output:
            pathlib.Path(output).write_text("")
        self._output = output
        self._streams = [] if output else [_Stream() for _ in range(1 if together else 2)]
        streams = [str(output)] if output else [stream.end for stream in self._streams]
        given = [str(word) for word in command[1:]], str(cwd), dict(os.environ if env is None else env)
        self._process = _SERVER.Process(target=_main, args=(*given, streams[0], streams[-1]))
        self._process.start()
        self.pid = self._process.pid
        for stream in self._streams:
            stream.start()

    @property
    def returncode(self):
        """The exit status, negative for a signal; None while the process runs."""
        return self._process.exitcode

    def poll(self):
        return self.returncode

    def send_signal(self, number):
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def kill_when(self, condition, every=0.01):
        """Kills the process (SIGKILL) once a condition holds; fails if it ended before that by itself."""
        while self.poll() is None and not condition():
            time.sleep(every)
        self.kill()
        assert self.wait(60) == -signal.SIGKILL, self._said()

    def wait(self, timeout=None):
        """Waits for the end and returns the exit status."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("the process", timeout)
        return self.returncode

    def communicate(self, timeout=None):
        """Waits for the end and returns (standard output, standard error)."""
        self.wait(timeout)
        texts = [stream.text() for stream in self._streams]
        return texts[0], (texts[1] if len(texts) > 1 else None)

    def _said(self):
        texts = [stream.text() for stream in self._streams] or [pathlib.Path(self._output).read_text()]
        return "\n".join(text[-5000:] for text in texts)


class _Stream:
    """Opens a pipe, which no limit on file sizes affects, and a thread that reads it."""

    def __init__(self):
        self._reader, self.end = _SERVER.Pipe(duplex=False)
        self._content, self._thread = b"", threading.Thread(target=self._read, daemon=True)

    def start(self):
        self.end.close()
        self._thread.start()

    def _read(self):
        while part := os.read(self._reader.fileno(), 2**16):
            self._content += part

    def text(self):
        self._thread.join(10)
        return self._content.decode(errors="replace")


def run(command, *, cwd=ROOT, env=None, timeout=None):
    """Runs a command to its end, as `subprocess.run(..., capture_output=True, text=True)` does."""
    process = Process(command, cwd=cwd, env=env)
    try:
        out, err = process.communicate(timeout)
    finally:
        process.kill()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def fork(function, *given):
    """Calls `function(pipe, *given)` in a forked process; returns (process, the other end of the pipe)."""
    _start_server()
    mine, theirs = _SERVER.Pipe()
    process = _SERVER.Process(target=function, args=(theirs, *given))
    process.start()
    theirs.close()
    return process, mine


def _start_server():
    """Starts the process that is forked, without the variables that JAX reads when it is imported: a child sets them."""
    own = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(("JAX_", "XLA_", "PYTHONPATH"))}
    try:
        os.environ |= {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
        _SERVER.set_forkserver_preload([__name__, *_COMMANDS])
        forkserver.ensure_running()
    finally:
        del os.environ["JAX_PLATFORMS"], os.environ["PYTHONPATH"]
        os.environ |= own


def _main(words, cwd, environment, *outputs):
    """The child: what `python WORDS...` does in `cwd`."""
    for number, end in enumerate(outputs, 1):
        os.dup2(os.open(end, os.O_WRONLY | os.O_APPEND) if isinstance(end, str) else end.fileno(), number)
    sys.stdout, sys.stderr = (open(n, "w", closefd=False, buffering=1) for n in (1, 2))  # noqa: SIM115
    os.chdir(cwd)
    adopt(environment)
    for name in _COMMANDS:
        sys.modules.pop(name, None)
    logging.root.handlers.clear()  # that of absl, which not every command imports
    try:
        run_words(words)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - as the interpreter does at its top
        sys.excepthook(type(error), error, error.__traceback__)
        raise SystemExit(1) from None
    finally:
        with contextlib.suppress(Exception):
            threading._shutdown()
        atexit._run_exitfuncs()


def adopt(environment):
    """Sets the environment, and the settings that JAX reads from it when it is imported."""
    import jax

    os.environ.clear()
    os.environ.update(environment)
    for name, text in environment.items():
        if (key := name.lower()) in jax.config.values:
            kind = type(jax.config.values[key])
            value = text.lower() in ("1", "true", "yes", "on") if kind is bool else text
            jax.config.update(key, kind(text) if kind in (int, float) else value)
    if remote := sys.modules.get("corruptions.remote"):  # it reads this when it is imported
        remote.TERM = float(environment.get("JAX_CORRUPTIONS_OWNER_SECONDS") or 180)
    folders = [folder for folder in environment.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.path[:0] = folders
    if any(os.path.exists(os.path.join(folder, "sitecustomize.py")) for folder in folders):
        sys.modules.pop("sitecustomize", None)
        importlib.import_module("sitecustomize")


def run_words(words):
    first, *rest = words
    if first == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), sys.modules["__main__"].__dict__)
    elif first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, os.path.dirname(os.path.abspath(first)))
        runpy.run_path(first, run_name="__main__")
