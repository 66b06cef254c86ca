"""Preparation of ImageNet that is killed, that finds no space, or that is not alone."""

import errno
import os
import shutil
import signal
import subprocess
import time

import pytest

import data
import data.prepare
from data import blocks
from data.imagenet import prepare, store
from data.imagenet.prepare import PrepareError
from tests.data.imagenet import trees
from tests.data.imagenet.trees import SMALL, content, shards


@pytest.mark.slow
def test_a_killed_run_continues_and_keeps_what_is_finished(tree, prepared, tmp_path):
    process = subprocess.Popen(
        trees.command(tree, tmp_path, "--workers=2"), cwd=trees.ROOT, env=os.environ | {"JAX_PLATFORMS": "cpu"}
    )
    records = tmp_path / "imagenet100" / "16" / "shards"
    while process.poll() is None and len(list(records.glob("*.json"))) < 3:
        time.sleep(0.002)
    workers = [int(pid) for pid in children(process.pid)]
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (records.parent / store.META).exists(), "the run was over before it was killed"
    assert workers
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") and not zombie(pid) for pid in workers):
        assert time.monotonic() < deadline, "workers outlive the killed run"
        time.sleep(0.05)
    # The record comes last: a shard without one is made again.
    finished = {path: path.with_suffix(".npy").stat().st_mtime_ns for path in records.glob("*.json")}
    assert finished
    (records / ".part-train-00099.npy.x").write_bytes(b"half a shard")
    done = trees.run(tree, tmp_path, "--workers=2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(records.parent)
    assert all(path.with_suffix(".npy").stat().st_mtime_ns == then for path, then in finished.items())
    assert content(tmp_path) == content(prepared)


def children(pid):
    path = f"/proc/{pid}/task/{pid}/children"
    return open(path).read().split() if os.path.exists(path) else pytest.skip("needs /proc/PID/task/PID/children")


def zombie(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_full_disk_is_named_and_the_run_continues(tree, prepared, tmp_path, monkeypatch):
    left, append = [50], blocks.Writer.append

    def limited(self, piece):
        left[0] -= len(piece)
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(self, piece)

    monkeypatch.setattr(blocks.Writer, "append", limited)
    with pytest.raises(PrepareError, match=r"disk is full \(No space left.*free space, then repeat the command"):
        prepare.prepare("imagenet100", tree, tmp_path, **SMALL)
    kept = {path: path.stat().st_mtime_ns for path in shards(tmp_path)}
    assert len(kept) == 6  # 50 images are six shards of 8, 1 of them damaged, and a piece
    monkeypatch.undo()
    prepare.prepare("imagenet100", tree, tmp_path, **SMALL)
    assert all(path.stat().st_mtime_ns == then for path, then in kept.items())
    assert content(tmp_path) == content(prepared)


def test_free_space_is_checked_before_anything_is_written(tree, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=300 * 16 * 16 * 3 - 1)
    monkeypatch.setattr(prepare.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(PrepareError, match=r"0\.0 GB of free space for 38 shards"):
        prepare.prepare("imagenet100", tree, tmp_path, **SMALL)
    assert not shards(tmp_path)


def test_one_writer_at_a_time(tree, copy):
    with prepare.files.locked(copy / "imagenet100" / "16"):
        with pytest.raises(PrepareError, match="another process is writing"):
            prepare.prepare("imagenet100", tree, copy, **SMALL)


def test_control_c_is_one_line(tmp_path, monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(data.prepare, "prepare_and_verify", interrupted)
    assert data.prepare.main(["--dataset=imagenet100", f"--data_dir={tmp_path}"]) == 130
    assert capsys.readouterr().err == "data.prepare: stopped; the same command continues\n"
