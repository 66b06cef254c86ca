"""One CPU platform, one cache of programs, and no silent rank or dtype promotion for every test."""

import functools
import gc
import importlib.util
import logging
import os
import pathlib
import sys

import pytest

from tests import compiling
from tests.tools.report_pages import find_browser

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["KERAS_BACKEND"] = "jax"  # Keras reads it when any test is the first to import it
# Scripts that tests start are equally strict.
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
os.environ.setdefault("JAX_NUMPY_DTYPE_PROMOTION", "strict")
# The other workers, and every script that a test starts, read the programs that one process compiled.
_CACHE = pathlib.Path(__file__).resolve().parents[1] / ".pytest_cache" / "xla"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# Programs are compiled anew where the code of this checkout changed, which JAX's cache looks at alone.
os.environ.setdefault("JAX_CORRUPTIONS_PROGRAMS", "off")
# Lines of Python in the programs, which no test reads, are a tenth of the time of lowering.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
# Tracing makes and drops many small objects; looking through a worker's heap for cycles after every
# 700 of them took an eighth of the suite's time.
gc.set_threshold(100_000, 50, 50)


# Files that take a minute or more, the longest first: begun last, one of them would run alone at the end.
_FIRST = (
    "reproduce_page_test",
    "scripts_test",
    "distributed_test",
    "loop_test",
    "checks_test",
    "faults_test",
    "exact_test",
    "golden_test",
    "forward_test",
    "train_test",
    "meshes_test",
    "resume_test",
)


def pytest_addoption(parser):
    """Sets up how programs are compiled, slow tests' as `make slow` does, however they are started.

    pytest calls this before it imports a conftest of a folder that the command line names, most of which import JAX.
    Workers take over the environment of the process that started them.
    """
    if parser.parse_known_args(sys.argv[1:]).markexpr == "slow":
        os.environ.setdefault(compiling.LEVEL, "0")
    compiling.apply()


def pytest_configure():
    """Reads the bank of images that corruptions of LAION-C need, for tests that take every corruption by name."""
    from corruptions import laion_c
    from tests.reference.photographs import photographs

    laion_c.use_bank(photographs(48, 32, 32))


@functools.cache
def _installed(name):
    """Whether there is the module, or the browser, that a test asks for by `needs`."""
    if name == "browser":
        return find_browser() is not None
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:  # a package of that name that is another one, or a placeholder
        return False


def pytest_collection_modifyitems(items):
    """Puts long files first (workers take whole files, with --no-loadscope-reorder in this order), and gives slow tests
    three times the limit of others. A test that needs what is not installed is skipped, visibly.
    """
    rank = {stem: place for place, stem in enumerate(_FIRST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(900))
        needed = [name for marker in item.iter_markers("needs") for name in marker.args]
        if missing := [name for name in needed if not _installed(name)]:
            item.add_marker(pytest.mark.skip(reason=f"not installed: {', '.join(missing)}"))


def pytest_collection_finish():
    """Leaves what was imported and collected out of every later search for cycles."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def few_programs():
    """Keeps the compiled programs of a worker's tests within what the kernel allows a process."""
    yield
    from corruptions.core import program_cache

    program_cache.bound_programs()


@pytest.fixture(autouse=True)
def own_banks():
    """Puts back the banks of LAION-C that a test has replaced, and drops the programs that took them."""
    from corruptions.laion_c import banks

    before, default = dict(banks._USED), banks.default()
    yield
    if banks.default() != default:
        import jax

        jax.clear_caches()
    banks._USED.clear()
    banks._USED.update(before)


@pytest.fixture(autouse=True)
def own_log():
    """Gives the library's log back to the program, from a command that a test ran."""
    yield
    library = logging.getLogger("corruptions")
    library.handlers, library.propagate = [], True
    library.setLevel(logging.NOTSET)


@pytest.fixture
def own_registry(monkeypatch):
    """Takes back, after the test, what it registers."""
    from corruptions.core import registry

    registry.every()  # imports what registers
    for registered in ("NAMED", "_BENCHMARKS", "_COPIES"):
        monkeypatch.setattr(registry, registered, getattr(registry, registered).copy())


@pytest.fixture(scope="session", autouse=True)
def cache_of_images(tmp_path_factory):
    """No test, and no script that one starts, reads or writes the user's own cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAXC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def mesh():
    """One device."""
    from runtime import meshes

    return meshes.data_mesh()


@pytest.fixture(scope="session")
def dataset():
    """Few images of the embedded dataset."""
    import data

    return data.load("shapes", train_limit=160, test_limit=70)


@pytest.fixture
def shared():
    """Folder with golden/ and data/, named by JAXC_SHARED; tests that need it are skipped, visibly, without it."""
    folder = os.environ.get("JAXC_SHARED")
    if not folder:
        pytest.skip("JAXC_SHARED does not name the folder with golden figures and photographs")
    return pathlib.Path(folder)
