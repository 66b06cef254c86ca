"""One CPU platform, one cache of programs, and no silent rank or dtype promotion for every test."""

import os
import pathlib

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Scripts that tests start are held to the same strictness.
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
os.environ.setdefault("JAX_NUMPY_DTYPE_PROMOTION", "strict")
# What one process compiled, the other workers and every script that a test starts read back.
_CACHE = pathlib.Path(__file__).resolve().parents[1] / ".pytest_cache" / "xla"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# Compiling is most of the suite's time, and LLVM's optimisations are half of that: tests do
# without. JAX asks once, when it is imported; scripts that tests start are compiled as users' are,
# and so is all of `make slow`.
if "JAX_DISABLE_MOST_OPTIMIZATIONS" not in os.environ:
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    import jax  # noqa: F401

    del os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"]


@pytest.fixture(autouse=True)
def few_programs():
    """Keeps the compiled programs of a worker's tests within what the kernel allows a process."""
    yield
    from corruptions import programs

    programs.bound()


@pytest.fixture
def shared():
    """Folder with golden/ and data/, named by JAXC_SHARED; tests that need it are skipped, visibly,
    without it.
    """
    folder = os.environ.get("JAXC_SHARED")
    if not folder:
        pytest.skip("JAXC_SHARED does not name the folder with golden figures and photographs")
    return pathlib.Path(folder)
