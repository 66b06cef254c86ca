"""The content of `pip install`: sdist and wheel hold the whole library and nothing else."""

import email
import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

import corruptions
from tests.pages import ROOT

LIBRARY = {
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "corruptions").rglob("*")
    if path.suffix in (".py", ".json") or path.name == "py.typed"
}
BACKEND = int(importlib.metadata.version("setuptools").partition(".")[0])


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(names in the sdist, the wheel as a ZipFile), built by the installed backend: nothing is fetched."""
    root = tmp_path_factory.mktemp("packages")
    tree = root / "tree"
    shutil.copytree(ROOT / "corruptions", tree / "corruptions", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "eval.py"):
        shutil.copy(ROOT / name, tree)
    code = re.search(r'python -c "(.*build_meta.*)"', (ROOT / "Makefile").read_text())[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (sdist,) = tree.glob("dist/*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    (wheel,) = tree.glob("dist/*.whl")
    with zipfile.ZipFile(wheel) as archive:
        yield names, archive


@pytest.mark.skipif(BACKEND < 77, reason="pyproject.toml asks for a newer setuptools; `make test` installs it")
def test_sdist_and_wheel_hold_the_library_and_nothing_else(built):
    in_sdist, wheel = built
    assert {name for name in in_sdist if name.startswith("corruptions/") and "." in name} == LIBRARY
    assert {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO"} <= in_sdist and "eval.py" not in in_sdist
    (about,) = {name.partition("/")[0] for name in wheel.namelist()} - {"corruptions"}
    assert about == f"jax_corruptions-{corruptions.__version__}.dist-info"
    assert {name for name in wheel.namelist() if not name.startswith(about)} == LIBRARY
    assert f"{about}/licenses/LICENSE" in wheel.namelist()
    metadata = email.message_from_bytes(wheel.read(f"{about}/METADATA"))
    assert (metadata["Name"], metadata["Version"]) == ("jax-corruptions", corruptions.__version__)
    assert metadata["License-Expression"] == "Apache-2.0" and metadata["Requires-Python"] == ">=3.11"
    needed = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert sorted(needed) == ["jax>=0.8", "numpy>=2"]


def test_the_version_is_that_of_the_citation():
    assert re.search(rf"^version: {re.escape(corruptions.__version__)}$", (ROOT / "CITATION.cff").read_text(), re.M)


def test_make_all_extras_runs_what_needs_packages_that_the_default_environment_lacks():
    """A module that a test imports if it can is one of the default environment, or the file's tests are marked `needs`."""
    for path in (ROOT / "tests").rglob("*_test.py"):
        text = path.read_text()
        for name in re.findall(r"importorskip\(\s*\"([\w.]+)\"", text):
            marked = f'pytestmark = pytest.mark.needs("{name}")' in text
            assert marked or importlib.util.find_spec(name), f"{path}: mark tests that import {name} with needs"
