"""No test may read or write the user's own cache."""

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("JAXC_CACHE_DIR", str(folder))
    return folder
