"""Flags alone on the command line, and foreseen errors in one message; without JAX."""

import ast
import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from data import prepare
from runtime import artifacts, command
from runtime.settings import WorkdirInUseError
from tests.processes import ROOT
from tests.tools import report_studies

COMMANDS = sorted([*ROOT.glob("*.py"), *ROOT.glob("tools/[a-z]*.py")])

# A command like the scripts, which fails with the error that its flag names.
SCRIPT = """
import errno, sys
from absl import flags
from runtime import command
def main(argv):
    given = command.given(argv, {"what": "ERROR", "where": "FILE"})
    error = {
        "value": ValueError("expected a, found b"), "full": OSError(errno.ENOSPC, "No space left", "x.csv"),
        "runtime": RuntimeError("device lost"), "key": KeyError("a bug"), "stop": KeyboardInterrupt(),
    }.get(given.what)
    if error:
        raise error
    print(command.program(), command.command_line(), "jax" in sys.modules)
if __name__ == "__main__":
    flags.DEFINE_string("what", None, "")
    flags.DEFINE_string("where", None, "")
    if "import" in sys.argv[-1]:
        raise KeyboardInterrupt  # as one that comes while modules are imported
    command.run(main)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "script.py").write_text(SCRIPT)

    def run(*arguments, start=("script.py",), **environment):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), str(folder)])} | environment
        command = [sys.executable, *start, *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)

    return run


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("value", "script.py: expected a, found b"),
        ("full", "script.py: [Errno 28] No space left: 'x.csv'; make room, and the same command continues"),
        ("runtime", "script.py: RuntimeError: device lost"),
    ],
)
def test_a_foreseen_error_is_one_message_and_status_1(run, what, message):
    done = run(f"--what={what}", "--where=b")
    assert done.returncode == 1 and not done.stdout
    assert done.stderr == f"{message}\n(JAX_CORRUPTIONS_TRACEBACK=1 shows where.)\n"


def test_control_c_is_one_line_and_status_130(run):
    for arguments in (["--what=stop", "--where=b"], ["import"]):
        done = run(*arguments)
        said = "script.py: stopped; the same command continues\n"
        assert (done.returncode, done.stdout, done.stderr.lstrip("\n")) == (130, "", said)


COMPILING = """
from runtime import command
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background ignores it
def main(argv):
    import jax, jax.numpy as jnp
    def long(x):  # some seconds of compilation
        for step in range(100):
            x = jnp.sort(jnp.fft.ifft(jnp.fft.fft(x)).real) @ x + step
        return x
    lowered = jax.jit(long).lower(jnp.ones((32, 32)))
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    lowered.compile()
if __name__ == "__main__":
    command.run(main)
"""


DROPPED = """
from runtime import command
import gc, os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
def callback(phase, info):
    if phase == "start":
        gc.callbacks.remove(callback)
        os.kill(os.getpid(), signal.SIGINT)
def main(argv):
    gc.callbacks.append(callback)
    gc.collect()  # Python drops the exceptions of its callbacks
    time.sleep(60)
if __name__ == "__main__":
    command.run(main)
"""


@pytest.mark.parametrize("script", [COMPILING, DROPPED], ids=["while XLA compiles", "in a callback"])
def test_control_c_ends_no_process_by_a_signal_and_is_answered_everywhere(tmp_path, script):
    """XLA compiles in a thread that outlives Python's wait for it, and uses devices that JAX destroys at exit. JAX has a
    callback of the garbage collector, in which most of the signals to a process that traces arrive.
    """
    (tmp_path / "script.py").write_text(script)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_ENABLE_COMPILATION_CACHE": "0"}
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "script.py: stopped; the same command continues\n")


@pytest.mark.slow
def test_control_c_at_any_moment_of_a_report_ends_it_in_one_line(tmp_path):
    """Its samples are compiled for most of the time."""
    report_studies.write(tmp_path / "work", ("imagenet_c/elastic_transform", "imagenet_c/frost", "noc/rain"))
    command = [sys.executable, "-m", "tools.report", f"--workdir={tmp_path / 'work'}"]
    environment = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "0"}
    done = []
    for seconds in range(4, 29, 3):
        answers = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
        streams = {"stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, cwd=ROOT, env=environment, preexec_fn=answers, **streams)
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=100)
        done.append(process.returncode)
        assert process.returncode in (0, 130) and "Traceback" not in error, f"after {seconds} s: {error}"
    assert 130 in done


def test_what_is_foreseen_and_what_is_a_mistake_of_ours():
    for error in (ValueError, OSError, RuntimeError, FileNotFoundError):
        with pytest.raises(SystemExit) as caught, command.errors():
            raise error("found b")
        assert caught.value.code == 1
    from runtime import distributed  # noqa: F401 - as in commands that compute

    with pytest.raises(SystemExit) as caught, command.errors():
        raise WorkdirInUseError("workdir a is in use by another run")
    assert caught.value.code == 75
    for error in (TypeError, KeyError, AttributeError, ZeroDivisionError, NotImplementedError, RecursionError):
        with pytest.raises(error) as caught, command.errors():
            raise error("a bug")
        assert "CONTRIBUTING.md" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 37.3 GiB for an array"),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 40000000000 bytes"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_too_little_memory_is_one_line_that_says_what_needs_less(error, monkeypatch):
    messages = []
    monkeypatch.setattr(command.log, "error", lambda message, *given: messages.append(message % given))
    with pytest.raises(SystemExit) as caught, command.errors():
        raise error
    assert caught.value.code == 1 and "; a smaller batch_size needs less memory" in messages[0]


def test_the_traceback_is_shown_when_asked_for_and_for_bugs(run):
    asked = run("--what=value", "--where=b", JAX_CORRUPTIONS_TRACEBACK="1")
    assert asked.returncode == 1 and "Traceback" in asked.stderr and "expected a, found b" in asked.stderr
    bug = run("--what=key", "--where=b")
    assert bug.returncode == 1 and "Traceback" in bug.stderr and "a bug" in bug.stderr
    last = bug.stderr.splitlines()[-1]
    assert last.startswith("This is a mistake in jax-corruptions, not in what was asked for: please report")
    assert last.endswith("python script.py --what=key --where=b")


BY_PATH = [
    *("tools/report.py", "tools/tables.py", "benchmarks/speed.py", "analysis/gallery.py", "data/prepare.py"),
    *("benchmarks/device/__main__.py", "benchmarks/device/page.py", "benchmarks/parity/__main__.py"),
    *("benchmarks/compiled/__main__.py", "projects/coverage/__main__.py", "projects/natural_shift/standin.py"),
    *("projects/structural/flips.py", "examples/flax_loop.py"),
]


@pytest.mark.parametrize("path", BY_PATH)
def test_a_tool_called_by_its_path_names_the_command_in_one_line(path, tmp_path):
    module = path.removesuffix(".py").removesuffix("/__main__").replace("/", ".")
    for folder, script in ((ROOT, path), (tmp_path, str(ROOT / path))):
        done = subprocess.run([sys.executable, script, "--help"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 1 and not done.stdout and done.stderr.count("\n") == 1, done.stderr
        assert f"expected python -m {module} in the checkout, found python {script}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dataset=cifar10", "--data_dr=x"], "there is no flag --data_dr; did you mean --data_dir?"),
        (["--zzz"], "there is no flag --zzz (--help lists the flags)"),
        (["--dataset=cifar"], "invalid choice: 'cifar'"),
        ([], "required: --dataset"),
    ],
)
def test_a_wrong_flag_of_a_command_without_absl_is_refused_in_one_line(arguments, words, capsys):
    with pytest.raises(SystemExit) as ended:
        prepare.main(arguments)
    found = capsys.readouterr()
    assert ended.value.code == 2 and not found.out and found.err.count("\n") == 1 and words in found.err


CLOSED = """
from runtime import command
from runtime.log import bar, log
import os, runpy
# By its path, since the package imports JAX.
bar_of_images = runpy.run_path(os.environ["PYTHONPATH"] + "/corruptions/files.py")["bar"]
def main(argv):
    with open("result", "w") as file:
        for number in bar("step", range(3)):
            log.info("message")
            file.write(str(number))
        with bar_of_images(3, "writing", None) as counter:
            counter.update(3)
        print("printed" * 100_000)
if __name__ == "__main__":
    command.run(main)
"""


@pytest.mark.parametrize(
    "streams", ["2>&-", ">&-", ">&- 2>&-", "<&- >&- 2>&-", "| true", "2>&1 | true", "2>&1 >/dev/null | head -c 1"]
)
def test_closed_streams_and_readers_that_leave_lose_no_result(streams, tmp_path):
    (tmp_path / "script.py").write_text(CLOSED)
    shell = f"set -o pipefail; {sys.executable} script.py {streams}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr
    assert (tmp_path / "result").read_text() == "012"


def test_first_mistakes_at_tools_are_one_line_with_the_right_command(run):
    for start, *given in (["-m", "tools.reprot"], ["-m", "tools", "report"], ["-m", "tools", "Report"]):
        done = run(*given, start=(start,))
        assert done.returncode == 1 and not done.stdout and done.stderr.count("\n") == 1, done.stderr
        assert "expected python -m tools.report, found python -m tools" in done.stderr
    for asked in ("-m tools | true", "-m tools --help | head -1", "-m data.shapes --out=/dev/null/x.png 2>&1 | true"):
        done = subprocess.run(f"{sys.executable} {asked}", shell=True, cwd=ROOT, capture_output=True, text=True)
        assert not done.stderr, done.stderr


@pytest.mark.parametrize(
    ("package", "start"),
    [
        *(("absl", "tools.report"), ("absl", "data.shapes"), ("PIL", "analysis.gallery"), ("pandas", "tools.tables")),
        *(("pandas", "benchmarks.compiled"), ("pandas", "tools.report")),
    ],
)
def test_a_command_without_its_packages_names_the_extra_in_one_line(package, start):
    hidden = f"import runpy, sys; sys.modules[{package!r}] = None; runpy.run_module({start!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", hidden], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and not done.stdout and done.stderr.count("\n") == 1, done.stderr
    assert f"expected the package {package}, found none" in done.stderr and "[study]" in done.stderr


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_every_command_imports_it_first_and_runs_by_it(path):
    """Then Ctrl-C is one line from the first import to the last line."""
    tree = ast.parse(path.read_text())
    first = next(node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    assert ast.unparse(first) == "from runtime import command"
    run = tree.body[-1].body[-1].value
    assert ast.unparse(run.func) == "command.run" and ast.unparse(run.args[0]).startswith(("main", "cli.main("))
    assert [ast.unparse(argument) for argument in run.args[1:]] in ([], ["cli.parse"]) and not run.keywords


ADDRESS = "copy its files to this machine, or mount the bucket"
EXPECTED = "expected a path of this machine, or gs://BUCKET/... or s3://BUCKET/... of names between slashes (neither empty ones nor . and ..), found the address"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--what=a"], "expected --what=ERROR and --where=FILE"),
        (["--what=a", "--where=b", "c"], "expected only flags (patterns in quotes), found ['c']"),
        (["--what=a", "--where=az://b/c"], f"--where: {EXPECTED} az://b/c; ..."),
        (["--what=a", "--where=b", "az://b"], f"path: {EXPECTED} az://b; ..."),
        (["--whit=a"], "Unknown command line flag 'whit'. Did you mean: what ?"),
    ],
)
def test_flags_that_are_missing_or_no_flags_are_refused(run, arguments, message):
    done = run(*arguments)
    assert done.returncode == 1 and not done.stdout
    message = f"{message[:-3]}{ADDRESS}" if message.endswith("...") else f"{message} (--help lists the flags)"
    assert done.stderr == f"script.py: {message}\n"


def test_a_command_is_named_as_it_was_called_and_needs_no_jax(run):
    arguments = ("--what=two words", "--where=b")
    assert run(*arguments).stdout == "script.py python script.py '--what=two words' --where=b False\n"
    module = run(*arguments, start=("-m", "script"))
    assert module.stdout == "script python -m script '--what=two words' --where=b False\n", module.stderr


def test_the_record_of_inputs_names_each_file_with_its_digest(tmp_path):
    (tmp_path / "a.csv").write_text("abc")
    record = artifacts.record_inputs({"study/a.csv": tmp_path / "a.csv"})
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-4, "abc"
    assert record["inputs"] == {"study/a.csv": digest}
    assert set(record["versions"]) == {"numpy", "scipy", "pandas", "python"}
    with pytest.raises(FileNotFoundError):
        artifacts.record_inputs({"b": tmp_path / "b.csv"})


def test_provenance_says_how_the_command_was_called():
    assert artifacts.provenance()["command"] == command.command_line()
