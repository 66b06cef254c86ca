"""Preparation of ImageNet that is killed, that finds no space, or that is not alone; stores that were damaged."""

import dataclasses
import errno
import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

import data
import data.prepare
from data import blocks
from data.dataset import union
from data.imagenet import prepare, store
from data.imagenet.prepare import PrepareError
from tests.data.imagenet import trees
from tests.data.imagenet.trees import SMALL, content, shards
from tests.refusing import refuses


@pytest.mark.slow
def test_shards_that_workers_wrote_are_uploaded_before_the_store_is_whole(tree, tmp_path, monkeypatch):
    uploaded = []
    monkeypatch.setattr(prepare.buckets, "wrote", lambda path: uploaded.append(path.name))
    prepare.prepare("imagenet100", tree, tmp_path, image_size=16, workers=2, shard_images=8)
    written = {
        path.name for path in (tmp_path / "imagenet100" / "16" / "shards").iterdir() if path.suffix in (".npy", ".json")
    }
    assert len(written) > 4 and written <= set(uploaded[: uploaded.index(store.META)])


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
    refuses(lambda: prepare.prepare("imagenet100", tree, tmp_path, **SMALL), "full (No space left", kind=PrepareError)
    kept = {path: path.stat().st_mtime_ns for path in shards(tmp_path)}
    assert len(kept) == 6  # 50 images are six shards of 8, 1 of them damaged, and a piece
    monkeypatch.undo()
    lost, *others = kept
    record = json.loads(lost.with_suffix(".json").read_text())
    lost.with_suffix(".json").write_text(json.dumps({key: record[key] for key in record if key != "seen"}))
    prepare.prepare("imagenet100", tree, tmp_path, **SMALL)
    assert [path.stat().st_mtime_ns for path in others] == [kept[path] for path in others]
    assert content(tmp_path) == content(prepared)


def test_free_space_is_checked_before_anything_is_written(tree, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=300 * 16 * 16 * 3 - 1)
    monkeypatch.setattr(prepare.shutil, "disk_usage", lambda path: usage)
    refuses(lambda: prepare.prepare("imagenet100", tree, tmp_path, **SMALL), "space for 38 shards", kind=PrepareError)
    assert not shards(tmp_path)


def test_one_writer_at_a_time(tree, copy):
    with prepare.files.locked(copy / "imagenet100" / "16"):
        refuses(
            lambda: prepare.prepare("imagenet100", tree, copy, **SMALL), "another process is writing", kind=PrepareError
        )


def test_control_c_is_one_line(tmp_path, monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(data.prepare, "prepare_and_verify", interrupted)
    assert data.prepare.main(["--dataset=imagenet100", f"--data_dir={tmp_path}"]) == 130
    assert capsys.readouterr().err == "data.prepare: stopped; the same command continues\n"


def flip(path, position=-7):
    whole = bytearray(path.read_bytes())
    whole[position] ^= 1
    path.write_bytes(whole)
    return path


def mended(tree, copy):
    """Runs the command that verifies and mends; returns the store's content."""
    arguments = ["--dataset=imagenet100", f"--data_dir={copy}", "--image_size=16", "--verify"]
    assert data.prepare.main([*arguments, f"--source={tree}", "--workers=1", "--shard_images=8"]) == 0
    return content(copy)


def test_a_changed_byte_is_found_and_mended(tree, prepared, copy, capsys):
    path = flip(shards(copy)[5])
    arguments = ["--dataset=imagenet100", f"--data_dir={copy}", "--image_size=16", "--verify"]
    [line] = store.problems(copy / "imagenet100" / "16")
    assert line.startswith(f"{path}: expected sha256") and f"--data_dir={copy} --image_size=16 --verify" in line
    assert store.problems(prepared / "imagenet100" / "16") == []
    prepare.prepare("imagenet100", tree, copy, **SMALL)  # without --verify only sizes are looked at
    assert data.prepare.main(arguments) == 1
    printed = capsys.readouterr().err
    assert path.name in printed and "expected sha256" in printed
    assert f"--data_dir={copy} --image_size=16 --verify --shard_images=8" in printed
    before = content(copy)
    for other in (["--shard_images=16", f"--source={tree}"], [f"--source={tree}/nowhere"]):
        assert data.prepare.main([*arguments, *other]) == 1
        assert content(copy) == before  # the damaged shard is kept until it can be made again
    assert mended(tree, copy) == content(prepared)


def test_a_changed_pixel_is_found_when_it_is_read(copy):
    path = flip(shards(copy)[5])  # a shard of test: positions 40 to 47
    for read in (
        lambda found: found.test.images[40],
        lambda found: found.test.images[35:50],
        lambda found: np.asarray(found.test.images),
        lambda found: found.test.to_device(),
        lambda found: union(found, dataclasses.replace(found, train=found.test)).train.images[198 + 47],
    ):
        loaded = data.load("imagenet100", data_dir=copy, image_size=16)
        loaded.test.images[:40]
        loaded.test.images[48:]
        with pytest.raises(ValueError, match=rf"{path.name}: images 0 to 7 changed(.|\n)*--data_dir={copy}.*--verify"):
            read(loaded)


def test_checksums_that_are_not_those_of_the_pixels_are_found(tree, prepared, copy):
    meta = copy / "imagenet100" / "16" / store.META
    text = meta.read_text()
    first = json.loads(text)["splits"]["test"]["shards"][0]["blocks"]["checksums"]
    meta.write_text(text.replace(first, first[::-1]))
    [line] = store.problems(meta.parent)
    assert "test-00000.npy: its checksums of blocks in store.json differ from its pixels" in line
    assert mended(tree, copy) == content(prepared)


def test_a_shard_that_store_json_names_outside_is_not_removed(tree, copy, tmp_path, capsys):
    (tmp_path / "thesis.npy").write_bytes(b"precious")
    meta = copy / "imagenet100" / "16" / store.META
    text = meta.read_text()
    meta.write_text(text.replace("test-00000.npy", str(tmp_path / "thesis.npy")))
    assert f"{tmp_path}/thesis.npy" in meta.read_text()
    arguments = ["--dataset=imagenet100", f"--data_dir={copy}", "--image_size=16", "--verify"]
    assert data.prepare.main([*arguments, f"--source={tree}", "--workers=1", "--shard_images=8"]) == 1
    assert "expected names between slashes" in capsys.readouterr().err
    assert (tmp_path / "thesis.npy").read_bytes() == b"precious"


def test_shards_without_checksums_are_made_again(tree, prepared, copy):
    meta = copy / "imagenet100" / "16" / store.META
    for path in (meta, shards(copy)[3].with_suffix(".json")):
        record = json.loads(path.read_text())
        for known in [s for split in record["splits"].values() for s in split["shards"]] if path == meta else [record]:
            del known["blocks"]
        path.write_text(json.dumps(record, indent=2) + "\n")
    refuses(lambda: data.load("imagenet100", data_dir=copy, image_size=16), "store.json", "repeat data.prepare")
    meta.unlink()
    stamps = {path: path.stat().st_mtime_ns for path in shards(copy)}
    prepare.prepare("imagenet100", tree, copy, **SMALL)
    assert content(copy) == content(prepared)
    assert [path for path in shards(copy) if path.stat().st_mtime_ns != stamps[path]] == [shards(copy)[3]]


def test_a_file_of_another_size_is_found_on_loading(copy):
    path = shards(copy)[2]
    os.truncate(path, path.stat().st_size - 1)
    shards(copy)[3].unlink()
    with pytest.raises(
        ValueError, match=rf"2 files changed since(.|\n)*{path.name}: expected \d+ bytes, found \d+\n(.|\n)*no file"
    ):
        data.load("imagenet100", data_dir=copy, image_size=16)


@pytest.mark.parametrize("name", ["train-labels.npy", "test-index.npy", "store.json"])
def test_damaged_tables_are_found_on_loading(copy, name):
    flip(copy / "imagenet100" / "16" / name, -2)
    [line] = store.problems(copy / "imagenet100" / "16")
    assert name in line and "repeat data.prepare" in line
    with pytest.raises(ValueError, match=rf"{name}.*repeat data.prepare"):
        data.load("imagenet100", data_dir=copy, image_size=16)
