"""A cache of its own for each test of data, which counts what is decoded."""

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("JAXC_CACHE_DIR", str(folder))
    return folder
