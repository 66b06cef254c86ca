"""Machines that share buckets."""

import pytest

from corruptions import objects
from runtime import buckets


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Calls of `machine(name)` move to a machine with a home folder of its own; `memory://` is what they share."""
    objects._tensorstore.cache_clear()  # with an empty store
    objects._open.cache_clear()

    def move(name):
        monkeypatch.setattr(buckets, "_mirrors", {})
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))

    move("first")
    return move
