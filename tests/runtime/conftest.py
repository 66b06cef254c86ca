"""Machines that share buckets."""

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from corruptions import remote


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Calls of `machine(name)` move to a machine with a home folder of its own; `memory://` is what they share."""
    MemoryFileSystem.store.clear()

    def move(name):
        monkeypatch.setattr(remote, "copies", {})
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))

    move("first")
    return move
