"""Strictness for every test: no silent rank or dtype promotion within our code, one CPU platform."""

import os
import pathlib

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")


@pytest.fixture
def shared():
    """Folder with golden/ and data/, named by JAXC_SHARED; tests that need it are skipped, visibly, without it."""
    folder = os.environ.get("JAXC_SHARED")
    if not folder:
        pytest.skip("JAXC_SHARED does not name the folder with golden figures and photographs")
    return pathlib.Path(folder)
