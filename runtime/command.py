"""The frame of every command: it reads flags, names itself, and ends with a message that a person can act on.

Commands import this module first. Then Ctrl-C ends them in one line also while they import the others.
"""

from corruptions.core import running  # isort: skip

running.watch()

# ruff: noqa: E402 - Ctrl-C is watched before the first import
import argparse
import contextlib
import errno
import importlib
import io
import os
import pathlib
import re
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from corruptions.core.running import INTERRUPTED, TRACEBACK, command_line, program, stopped
from corruptions.files import is_full, similar
from runtime.log import MISSING, configure, log, open_closed_streams
from runtime.settings import SettingsError, WorkdirInUseError, flag_for, of_percent

try:
    from absl import app, flags
except ModuleNotFoundError as error:
    missing = ModuleNotFoundError(MISSING.format(error.name), name=error.name)
    sys.excepthook = lambda kind, error, trace: (
        print(error, file=sys.stderr) if error is missing else sys.__excepthook__(kind, error, trace)
    )
    raise missing from None

# Errors of files, of JAX and of Orbax (a device without memory, a checkpoint that does not fit), and our own. Any other
# (TypeError, KeyError ...) is a mistake of ours: readers turn errors that data can cause into ValueErrors.
_FORESEEN = (ValueError, OSError, RuntimeError, MemoryError)
_NO_MEMORY = ("RESOURCE_EXHAUSTED", "ut of memory")  # in the errors of JAX
_MISTAKES = (NotImplementedError, RecursionError)  # subclasses of RuntimeError
IN_USE = os.EX_TEMPFAIL  # 75, the exit status of a command whose workdir another process holds


def run(main: Callable[[list[str]], object], parse: Callable[[list[str]], list[str]] = flags.FLAGS) -> None:
    """Runs `main(argv)` of a command with absl's flags, inside of `errors`.

    Wrong flags are refused in one line. An address among the flags (gs://bucket/folder) becomes the path of its copy
    (`files.local`); in a config it stays, and who reads the setting calls `files.local`. Every command has the flag
    --imports. `parse` reads the flags from the command line and returns the other arguments.
    """
    try:
        with errors():
            configure()
            if "imports" not in flags.FLAGS:
                flags.DEFINE_list("imports", [], "Modules to import first, a.b,c: they register corruptions, datasets.")
            app.run(lambda argv: _checked(main, argv), flags_parser=lambda argv: _parsed(parse, argv))
    except SystemExit as end:
        _end(end.code)
        raise


def _parsed(parse, argv):
    try:
        with _usage():
            return parse(argv)
    except SystemExit:  # absl ends with status 1 after --help
        raise SystemExit(0) from None


def _checked(main, argv):
    with _usage():
        argv = _copied(argv)
        import_all(flags.FLAGS.imports, "--imports")
        return main(argv)


_WRITTEN = ("out", "write_reference")  # flags of results


def _copied(argv):
    """Puts paths of copies in place of addresses among the arguments and flags; returns the arguments."""
    known = flags.FLAGS.flag_values_dict()
    texts = [text for key, value in known.items() for _, text in _texts(key, value)]
    if not any("://" in text for text in texts) and not any(":/" in text for text in argv[1:]):
        return argv
    from runtime import files  # imports NumPy, which takes a while

    _show_addresses()
    for name in sorted(known, key=_WRITTEN.__contains__):  # results last: they may lie in a folder that is read
        value, use = known[name], "write" if name in _WRITTEN else "read"
        if name == "workdir" and "config" in known:  # a command with a config holds its workdir
            use = "hold"
        if isinstance(value, str):
            flags.FLAGS[name].value = files.local(value, f"--{name}", use)
        elif isinstance(value, list):
            flags.FLAGS[name].value = [files.local(text, f"--{name}", use) for text in value]
    return [*argv[:1], *map(files.local, argv[1:])]


def _show_addresses():
    """Has the log and standard output name addresses where they would name paths of copies."""
    from runtime import files

    def named(record):
        record.msg, record.args = files.shown(record.getMessage()), ()
        return True

    for handler in log.handlers:
        handler.addFilter(named)
    write = sys.stdout.write
    sys.stdout.write = lambda text: write(files.shown(text))


def fetch_settings(config: Mapping[str, Any]) -> None:
    """Brings files at addresses in a config to this machine, before anything is done with it."""
    from runtime import files

    for key, text in _texts("config", config):
        files.local(text, key)


def _texts(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yields (dotted key, text) of every text in a flag or config."""
    if isinstance(value, str):
        yield key, value
    elif hasattr(value, "items"):
        for name, inner in value.items():
            yield from _texts(f"{key}.{name}", inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(key, inner)


class _Pipe(io.FileIO):
    """A standard stream whose reader may leave (`| head`): the command goes on, the text is dropped."""

    def write(self, content):
        try:
            return super().write(content)
        except BrokenPipeError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return len(content)


def _outlive_readers():
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is getattr(sys, f"__{name}__") and stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode):
            raw = io.BufferedWriter(_Pipe(stream.fileno(), "w", closefd=False))
            setattr(sys, name, io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=name == "stderr"))


def _end(status):
    """Ends a process that failed or was stopped while XLA may still compile.

    XLA compiles in a separate thread, which Python does not wait for. As the interpreter ends, JAX destroys the
    devices that this thread uses, and the process would die of SIGSEGV. One of many processes ends as JAX wants it.
    """
    distributed = sys.modules.get("runtime.distributed")
    if "jax" in sys.modules and isinstance(status, int) and status and not (distributed and distributed.several()):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


@contextlib.contextmanager
def _usage():
    """Turns absl's errors into SettingsErrors of their last line: before it absl may quote a traceback of a config."""
    try:
        yield
    except (app.UsageError, flags.Error) as error:
        last = str(error).strip().splitlines()[-1].strip().removesuffix(".").removeprefix("ValueError: ")
        if match := re.match(r"flag (--\w+)=(.*): could not convert string to float", last):
            last = f"{match[1]}: expected a number, found {match[2]!r}{of_percent(match[2], float)}"
        raise SettingsError(f"{last} (--help lists the flags)") from error


class Arguments(argparse.ArgumentParser):
    """The flags of a command that takes them without absl: wrong ones are refused in one line, with the flag they are like."""

    def parse_args(self, args=None, namespace=None):
        known = set(re.findall(r"--\w+", self.format_usage()))
        for text in sys.argv[1:] if args is None else args:
            flag = text.partition("=")[0]
            if flag.startswith("--") and flag != "--help" and not any(one.startswith(flag) for one in known):
                near = similar(flag, sorted(known))
                self.error(f"there is no flag {flag}" + (f"; did you mean {near[0]}?" if near else ""))
        return super().parse_args(args, namespace)

    def error(self, message):
        self.exit(2, f"{program()}: {message} (--help lists the flags)\n")


def given(argv: list[str], required: Mapping[str, str] | None = None) -> flags.FlagValues:
    """Returns the flags of a command that needs no config.

    Refuses (absl.app.UsageError) arguments beside the script's name, and missing values of the flags
    `required`, {flag: its value in words}.
    """
    configure()
    refuse_positional(argv)
    if any(not flags.FLAGS[name].value for name in required or {}):
        *head, last = [f"--{name}={value}" for name, value in required.items()]
        raise app.UsageError(f"expected {', '.join(head)}{' and ' if head else ''}{last}")
    return flags.FLAGS


def refuse_unused(flag: str, used: Mapping[str, Collection[str]]) -> None:
    """Refuses (absl.app.UsageError) flags that the value of `flag` does not use; `used` are those of each value."""
    chosen = flags.FLAGS[flag].value
    for name in dict.fromkeys(name for names in used.values() for name in names):
        if name not in used[chosen] and flags.FLAGS[name].present:
            takers = " or ".join(f"--{flag}={value}" for value, names in used.items() if name in names)
            raise app.UsageError(f"expected --{name} with {takers}, found it with --{flag}={chosen}")


def refuse_positional(argv: list[str]) -> None:
    """Raises absl.app.UsageError for any argument beside flags."""
    if len(argv) > 1:
        raise app.UsageError(f"expected only flags (patterns in quotes), found {argv[1:]}")


@contextlib.contextmanager
def errors() -> Iterator[None]:
    """Turns foreseen errors into one message on standard error and exit status 1, without a traceback.

    The status is 75 where another process holds the workdir: wait, or leave the work to it. Ctrl-C too ends in one
    line, with exit status 130: finished work lies in files already. Any other error is a mistake of ours: its traceback
    ends with where to report it. JAX_CORRUPTIONS_TRACEBACK=1 in the environment shows the traceback of every error.
    A reader of the output that leaves (`| head`) is no error.
    """
    _outlive_readers()
    running.leave()
    try:
        yield
    except KeyboardInterrupt as error:
        if os.environ.get(TRACEBACK):
            raise
        log.error(stopped())
        raise SystemExit(INTERRUPTED) from error
    except Exception as error:
        if not isinstance(error, _FORESEEN) or isinstance(error, _MISTAKES):
            error.add_note(
                "This is a mistake in jax-corruptions, not in what was asked for: please report the lines above as "
                f"CONTRIBUTING.md says, with the command: {command_line()}"
            )
            raise
        if os.environ.get(TRACEBACK):
            raise
        kind = "" if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: "
        hint = "" if isinstance(error, SettingsError) else f"\n({TRACEBACK}=1 shows where.)"
        log.error("%s: %s%s%s%s", program(), kind, error, flag_for(error) + _advice(error), hint)
        status = IN_USE if isinstance(error, WorkdirInUseError | BlockingIOError) else 1
        if "runtime.distributed" in sys.modules:  # else the command needs no JAX and has one process
            from runtime import distributed

            distributed.abandon(error, status)
        raise SystemExit(status) from error


def _advice(error: Exception) -> str:
    """Returns what helps where a disk or the memory is full, "" otherwise."""
    if isinstance(error, OSError) and is_full(error):
        return "; make room, and the same command continues"
    without_memory = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    of_device = isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)
    return "; a smaller batch_size needs less memory" if without_memory or of_device else ""


def import_all(modules: Iterable[str], source: str = "config.imports") -> None:
    """Imports modules that the setting or flag `source` names, which register corruptions and benchmarks.

    A SettingsError refuses other values than dotted names, and modules that are not found or cannot be imported.
    """
    if not isinstance(modules, list | tuple) or not all(isinstance(name, str) and name for name in modules):
        raise SettingsError(f"{source}: expected names of modules, such as ('my_corruptions',), found {modules!r}")
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception as error:  # the user's code may raise any error
            raise SettingsError(
                f"{source}: expected a module that Python finds (beside the commands, installed or on "
                f"PYTHONPATH) and can import, found {name!r}: {type(error).__name__}: {error}"
            ) from error


def refuse_imports(stored: Iterable[str], path: str | os.PathLike) -> None:
    """Refuses (SettingsError) modules that a file in a workdir names and this process has not imported.

    A workdir may come from others, so it cannot have their code run: the user names the modules to import.
    """
    is_list = isinstance(stored, list | tuple)
    if not is_list or not all(isinstance(name, str) and all(map(str.isidentifier, name.split("."))) for name in stored):
        raise SettingsError(f"{path}: expected names of modules as imports, found {ascii(stored)[:200]}; restore it")
    if unknown := [name for name in stored if name not in sys.modules]:
        advice = "import it first"
        if flags.FLAGS.is_parsed() and "imports" in flags.FLAGS:
            advice = f"add --imports={','.join(dict.fromkeys([*flags.FLAGS.imports, *stored]))}"
        raise SettingsError(
            f"{path}: expected no code to import but what you name, found imports {', '.join(unknown)}; if you trust "
            f"this code, {advice}"
        )


def _missing(error):
    """Names the package that an import did not find; "" if the module is ours, or another error."""
    package = ((isinstance(error, ModuleNotFoundError) and error.name) or "").partition(".")[0]
    of_checkout = pathlib.Path(__file__).parents[1] / package
    return "" if of_checkout.is_dir() or of_checkout.with_suffix(".py").is_file() else package


def _end_import(kind, error, traceback):
    """Ends a process in one line where `errors` does not reach, while modules are imported: Ctrl-C, a missing package."""
    interrupted, package = issubclass(kind, KeyboardInterrupt), _missing(error)
    if not (interrupted or package) or os.environ.get(TRACEBACK):
        sys.__excepthook__(kind, error, traceback)
        return
    if interrupted:
        running.end()
    print(f"{program()}: {MISSING.format(package)}", file=sys.stderr)
    raise SystemExit(1)


sys.excepthook = _end_import
open_closed_streams()
