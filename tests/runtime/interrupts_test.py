"""Ctrl-C while a command imports its modules: one line and status 130, whatever module is being imported."""

import os
import subprocess
import sys

import pytest

from tests.processes import ROOT

# Python runs it before everything else: a Ctrl-C as the import of a module begins. `LOST`: as when a compiled module makes an
# ImportError of it, which NumPy does.
CUSTOMIZED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background ignores it
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["AT"]:
            sys.meta_path.remove(self)
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                if "LOST" not in os.environ:
                    raise
                raise ImportError("PyCapsule_Import could not import a module") from None
sys.meta_path.insert(0, Interrupt())
"""
_STUDY = ("absl", "numpy")
WRITE = ("-m", "corruptions.write")
COMMANDS = {
    **{(f"{name}.py",): _STUDY for name in ("train", "eval", "overlap", "select_noc")},
    **{("-m", f"tools.{path.stem}"): _STUDY for path in sorted(ROOT.glob("tools/[a-z]*.py"))},
    ("-m", "tools"): ("difflib", "absl"),
    ("-m", "tools.tables"): ("difflib", "corruptions.files", "absl", "numpy", "pandas"),
    ("-m", "analysis.gallery"): ("absl", "numpy", "jax"),
    ("-m", "data.prepare"): ("numpy", "jax", "data.imagenet.prepare"),
    ("-m", "data.shapes"): ("numpy", "jax"),
    ("-m", "data.listed"): ("numpy", "jax"),
    WRITE: ("numpy", "jax", "corruptions.write.verifying"),
    ("-m", "benchmarks.compiled"): _STUDY,
    ("-m", "benchmarks.compiled.plan"): _STUDY,
    ("-m", "benchmarks.device"): _STUDY,
    ("-m", "benchmarks.parity"): _STUDY,
    ("-m", "projects.coverage"): _STUDY,
    ("-m", "projects.natural_shift"): _STUDY,
    ("-m", "projects.natural_shift.standin"): _STUDY,
    ("-m", "projects.structural.flips"): _STUDY,
    ("-m", "projects.structural.figures"): ("numpy", "matplotlib"),
    ("-m", "projects.structural.imagenet22k"): _STUDY,
    ("-m", "projects.structural.standin"): _STUDY,
}


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """Runs a command that Ctrl-C meets as it imports a module."""
    folder = tmp_path_factory.mktemp("customized")
    (folder / "sitecustomize.py").write_text(CUSTOMIZED)

    def run(words, at, **more):
        environment = os.environ | {"PYTHONPATH": str(folder), "AT": at} | more
        return subprocess.run(
            [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
        )

    return run


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[-1])
def test_control_c_during_any_import_is_one_line_and_status_130(interrupted, words):
    for at in COMMANDS[words]:
        done = interrupted(words, at)
        assert (done.returncode, done.stdout) == (130, ""), f"{at}: {done.stderr}"
        assert done.stderr.strip() == f"{words[-1]}: stopped; the same command continues", at


@pytest.mark.parametrize("words", [("select_noc.py",), ("-m", "tools.tables"), WRITE])
def test_control_c_that_a_module_turns_into_another_error_is_one_line(interrupted, words):
    done = interrupted(words, "numpy", LOST="1")
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr.strip().endswith("the same command continues") and done.stderr.strip().count("\n") == 0


@pytest.mark.parametrize("module", ["corruptions", "data", "runtime.files", "runtime.settings"])
def test_a_script_that_imports_the_packages_keeps_its_own_ctrl_c(module):
    code = f"import signal, sys, {module}; print(signal.getsignal(signal.SIGINT).__name__, sys.excepthook.__name__)"
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    told = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    done = subprocess.run(
        [sys.executable, "-c", told + code], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.stdout.split() == ["default_int_handler", "excepthook"], done.stderr
