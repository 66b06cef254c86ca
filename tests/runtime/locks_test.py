"""File systems without locks or folders that are forced to disk, and what killed writers left."""

import errno
import fcntl
import logging
import os
import stat
import subprocess
import sys

import numpy as np
import pytest

import corruptions
from corruptions import files as write_files
from data import cache
from runtime import files, workdirs
from tests.runtime.remote_test import content, opened


@pytest.fixture
def warnings(monkeypatch, caplog):
    """The text of all warnings."""
    for name in ("corruptions", "jax_corruptions"):
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    write_files._warn_once.cache_clear()
    caplog.set_level(logging.WARNING)
    return lambda: [record.getMessage() for record in caplog.records]


def without_locks(monkeypatch, code):
    def flock(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS])
def test_folders_that_cannot_be_forced_to_disk_are_a_warning_each(code, tmp_path, monkeypatch, warnings):
    sync = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    for folder in ("a", "b", "a"):
        files.write_atomically(tmp_path / folder / "x.csv", folder)
    assert content(tmp_path) == {"a/x.csv": b"a", "b/x.csv": b"b"}
    assert [line.partition(":")[0] for line in warnings()] == [str(tmp_path / "a"), str(tmp_path / "b")]


def test_another_error_of_a_folder_is_raised(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "disk failing")))
    with pytest.raises(OSError, match="disk failing"):
        files.write_atomically(tmp_path / "x.csv", "")


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP])
def test_a_workdir_where_there_are_no_locks_is_used_with_a_warning(code, tmp_path, monkeypatch, warnings):
    without_locks(monkeypatch, code)
    with workdirs.open_workdir(tmp_path, {"seed": 1}) as workdir:
        workdir.write_text("a.csv", "1")
    assert (tmp_path / "a.csv").read_text() == "1"
    [line] = warnings()
    assert line.startswith(f"{tmp_path}: ") and "locks" in line and "\n" not in line


def test_disk_space_that_cannot_be_reserved_is_a_longer_file(tmp_path, monkeypatch):
    def fallocate(*_):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, "posix_fallocate", fallocate)
    with open(tmp_path / "x", "wb") as file:
        write_files.reserve(file, 1000)
    assert (tmp_path / "x").stat().st_size == 1000


def test_a_copy_and_a_cache_need_no_locks(machine, tmp_path, monkeypatch, warnings):
    without_locks(monkeypatch, errno.ENOLCK)
    with opened() as workdir:
        workdir.write_text("a.csv", "1")
    machine("second")
    assert "a.csv" in content(files.local("memory://b/run"))
    piece = (np.zeros((2, 4, 4, 3), np.uint8), np.arange(2), np.arange(2))
    assert cache.cached("x", "1", lambda notes: [piece], tmp_path / "cache").labels.tolist() == [0, 1]
    assert all("no locks" in line for line in warnings())


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP])
def test_the_library_writes_where_there_are_no_locks(code, tmp_path, monkeypatch, warnings):
    without_locks(monkeypatch, code)
    images, labels = np.zeros((4, 32, 32, 3), np.uint8), [0, 1, 0, 1]
    for _ in range(2):
        corruptions.write_dataset(tmp_path, (images, labels), corruptions="fog", severities=[1])
    assert np.load(tmp_path / "fog.npy").shape == (4, 32, 32, 3)
    [line] = warnings()
    assert str(tmp_path) in line and "locks" in line


# Unfinished files of writers that were killed.
KILLED = (
    "import os, sys; from runtime import files\n"
    "with files.writing(sys.argv[1]) as file: file.write(b'1' * 10**6); os._exit(9)\n"
)


def killed_at(path):
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)]).returncode == 9


def test_the_next_writer_of_a_file_removes_what_a_killed_one_left(tmp_path):
    for name in ("value", "value.csv"):
        killed_at(tmp_path / name)
    (tmp_path / "value.12345678").write_text("the user's")
    assert len(content(tmp_path)) == 3
    files.write_atomically(tmp_path / "value", "new")
    kept = content(tmp_path)
    assert kept.pop("value") == b"new" and kept.pop("value.12345678") == b"the user's"
    assert [name[:16] for name in kept] == [".part-value.csv."], "another file's is left to its own writer"


@pytest.mark.parametrize(
    "remove", [lambda path: files.write_atomically(path, "2"), lambda path: write_files.remove_parts(path.parent)]
)
def test_what_a_living_process_writes_is_not_removed(remove, tmp_path):
    code = (
        "import sys; from runtime import files\n"
        "with files.writing(sys.argv[1]) as file: file.write(b'1'); file.flush(); print('writing', flush=True); input()\n"
    )
    path = tmp_path / "value"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code, str(path)], **pipes) as living:
        assert living.stdout.readline() == "writing\n"
        remove(path)
        assert len([name for name in content(tmp_path) if name.startswith(".part-")]) == 1
        living.communicate("\n")
    assert living.returncode == 0 and content(tmp_path) == {"value": b"1"}


def test_where_there_are_no_locks_nothing_is_taken_for_left_over(tmp_path, monkeypatch):
    killed_at(tmp_path / "value")
    without_locks(monkeypatch, errno.ENOLCK)
    files.write_atomically(tmp_path / "value", "new")
    assert len(content(tmp_path)) == 2
