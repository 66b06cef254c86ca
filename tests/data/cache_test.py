"""The cache of decoded images: checksums of blocks, reuse, atomicity, damage."""

import hashlib
import json
import logging
import os
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

import data
from corruptions import files
from data import blocks, cache, natural
from data.natural import sets
from runtime.files import DamagedFileError
from tests.refusing import refuses

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (10, 4, 5, 3), np.uint8)
LABELS = np.arange(10) % 3


LARGE = np.random.default_rng(0).integers(0, 256, (5, 64, 64, 3), np.uint8)  # three pages each


def test_the_checksum_is_the_crc_of_sums_of_words():
    block = LARGE[:1].tobytes() + b"the rest"
    words = np.frombuffer(block[: 3 * 4096], "<u8").tolist()
    sums = b"".join((sum(words[i : i + 512]) % 2**64).to_bytes(8, "little") for i in range(0, 1536, 512))
    assert blocks.checksum(np.frombuffer(block, np.uint8)) == zlib.crc32(b"the rest", zlib.crc32(sums))


def test_blocks_are_whole_images(monkeypatch):
    assert blocks.describe(LARGE)["images"] == 2**19 // (64 * 64 * 3)
    monkeypatch.setattr(blocks, "_BYTES", 2 * 64 * 64 * 3 + 1)
    known = blocks.describe(LARGE)
    assert known["images"] == 2
    assert known["checksums"] == "".join(f"{blocks.checksum(LARGE[i : i + 2]):08x}" for i in (0, 2, 4))
    monkeypatch.setattr(blocks, "_BYTES", 100)
    assert blocks.describe(LARGE)["images"] == 1 and len(blocks.describe(LARGE)["checksums"]) == 5 * 8
    assert blocks.describe(LARGE[:0])["checksums"] == ""


CHANGES = {  # damaged values of one image
    "zeroed": lambda flat: np.where(np.arange(flat.size) // 150 == 20, 0, flat).astype(np.uint8),
    "pages exchanged": lambda flat: np.concatenate([np.roll(flat[:8192], 4096), flat[8192:]]),
    "shifted": lambda flat: np.roll(flat, 1),
    "one bit": lambda flat: flat ^ (np.arange(flat.size) == flat.size - 1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found_once_its_images_are_asked_for(monkeypatch, tmp_path, change):
    monkeypatch.setattr(blocks, "_BYTES", 2 * 64 * 64 * 3)
    images, known = LARGE.copy(), blocks.describe(LARGE)
    images[3] = CHANGES[change](images[3].reshape(-1)).reshape(64, 64, 3)
    checked = blocks.Blocks(tmp_path / "x.npy", images, known, "write it again")
    checked.check(0, 2)
    checked.check(4, 5)
    for _ in range(2):
        with pytest.raises(DamagedFileError, match=r"x\.npy: images 2 to 3 changed: expected.*; write it again"):
            checked.check(1, 3)
    [line] = checked.wrong()
    assert "images 2 to 3" in line


def test_a_block_is_compared_once(monkeypatch, tmp_path):
    checked = blocks.Blocks(tmp_path / "x.npy", LARGE, blocks.describe(LARGE), "")
    checked.check(0, 5)
    monkeypatch.setattr(blocks, "checksum", lambda block: pytest.fail("compared again"))
    checked.check(2, 4)


def test_checksums_that_are_none_are_named(tmp_path):
    for known in ({}, {"images": 0, "checksums": ""}, {"images": 5, "checksums": "zz"}, [1]):
        with pytest.raises(DamagedFileError, match=r"x\.npy: expected (\d+ )?checksums"):
            blocks.Blocks(tmp_path / "x.npy", LARGE, known, "")


class Builder:
    """Yields IMAGES in unequal pieces and counts how often it was asked; fails after `fail_after` pieces."""

    def __init__(self, fail_after=None):
        self.calls, self.fail_after = 0, fail_after

    def __call__(self, notes):
        self.calls += 1
        notes["seen"] = 10
        for i, piece in enumerate((slice(0, 4), slice(4, 5), slice(5, 10))):
            if i == self.fail_after:
                raise RuntimeError("killed")
            yield IMAGES[piece], LABELS[piece], np.arange(10)[piece]


def check(entry):
    for found, expected in ((entry.images, IMAGES), (entry.labels, LABELS), (entry.index, np.arange(10))):
        np.testing.assert_array_equal(found, expected)
    assert entry.labels.dtype == entry.index.dtype == np.int32
    assert entry.sha256["images"] == hashlib.sha256(IMAGES.tobytes()).hexdigest()
    assert entry.sha256["labels"] == hashlib.sha256(LABELS.astype(np.int32).tobytes()).hexdigest()
    assert entry.notes == {"seen": 10}


def test_an_entry_is_built_once_and_then_mapped_from_an_ordinary_npy(tmp_path):
    build = Builder()
    for _ in range(2):
        entry = cache.cached("d-train", "k", build, tmp_path)
        check(entry)
        assert isinstance(entry.images, np.memmap) and not entry.images.flags.writeable
    assert build.calls == 1
    assert [path.name for path in tmp_path.iterdir()] == ["d-train-k"]
    np.testing.assert_array_equal(np.load(tmp_path / "d-train-k" / "images.npy"), IMAGES)
    cache.cached("d-train", "other", build, tmp_path)
    assert build.calls == 2


def test_a_build_that_fails_leaves_nothing(tmp_path):
    refuses(lambda: cache.cached("d", "k", Builder(fail_after=2), tmp_path), "killed", kind=RuntimeError)
    assert not list(tmp_path.iterdir())
    check(cache.cached("d", "k", Builder(), tmp_path))


def rewrite(name, change):
    """Changes the bytes of a file of an entry."""

    def harm(folder):
        content = bytearray((folder / name).read_bytes())
        (folder / name).write_bytes(change(content) or content)

    return harm


def flip(name, position):
    def change(content):
        content[position] ^= 1

    return rewrite(name, change)


def edit_meta(change, sealed=True):
    """Changes the record, and its digest if it is to be sealed again."""

    def harm(folder):
        meta = json.loads((folder / "meta.json").read_text())
        change(meta)
        if sealed:
            cache.artifacts.write_record(folder / "meta.json", meta)
        else:
            (folder / "meta.json").write_text(json.dumps(meta))

    return harm


HARMS = {
    "truncated": (rewrite("images.npy", lambda content: content[:-1]), "expected 728 bytes, found 727"),
    "no meta": (lambda folder: (folder / "meta.json").unlink(), "meta.json"),
    "half a meta": (rewrite("meta.json", lambda text: text[: len(text) // 2]), "meta.json: expected valid JSON"),
    "no labels": (lambda folder: (folder / "labels.npy").unlink(), "labels.npy"),
    "a bit of the first image": (flip("images.npy", 128), "images.npy: images 0 to 2 changed: expected checksum"),
    "a bit of the last image": (flip("images.npy", -1), "images.npy: images 9 to 9 changed"),
    "a bit of the header": (flip("images.npy", 20), "images.npy: expected an .npy file"),
    "a bit of the labels": (flip("labels.npy", -4), "labels.npy: expected sha256"),
    "a bit of the index": (flip("index.npy", -4), "index.npy: expected sha256"),
    "format 1": (edit_meta(lambda meta: meta.update(format=1)), "expected format 3, found 1"),
    "other notes": (edit_meta(lambda meta: meta["notes"].update(damaged=[]), sealed=False), "the file was edited"),
    "no digest": (edit_meta(lambda meta: meta.pop("sha256"), sealed=False), "expected content with the digest"),
    "no checksums": (edit_meta(lambda meta: meta.pop("blocks")), "expected blocks, found nothing of that name"),
    "few checksums": (edit_meta(lambda m: m["blocks"].update(checksums="")), "expected checksums of its blocks"),
    "a list": (rewrite("meta.json", lambda text: b"[]"), "expected a JSON object, found list"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_half_written_or_damaged_entry_is_named_and_replaced(tmp_path, caplog, monkeypatch, harm):
    monkeypatch.setattr(blocks, "_BYTES", 3 * 4 * 5 * 3)  # blocks of three images
    monkeypatch.setattr(blocks, "_PAGE", 32)
    cache.cached("d", "k", Builder(), tmp_path)
    assert cache.verify(tmp_path) == cache.verify(tmp_path / "d-k") == []
    HARMS[harm][0](tmp_path / "d-k")
    if harm == "no meta":
        refuses(lambda: cache.verify(tmp_path), "the cache (with meta.json)", kind=FileNotFoundError)
    else:
        [line] = cache.verify(tmp_path)
        assert HARMS[harm][1] in line and str(tmp_path) in line
    build = Builder()
    with caplog.at_level(logging.WARNING):
        check(cache.cached("d", "k", build, tmp_path))
    assert "entry d-k is made again" in caplog.text and HARMS[harm][1] in caplog.text
    check(cache.cached("d", "k", build, tmp_path))
    assert build.calls == 1 and cache.verify(tmp_path) == []


def test_verify_finds_words_of_a_page_exchanged_whose_sum_is_the_same(tmp_path):
    images = np.arange(4096, dtype=np.uint16).view(np.uint8).reshape(1, 64, -1, 1).repeat(3, 3)
    cache.cached("d", "k", lambda notes: [(images, [0], [0])], tmp_path)
    path = tmp_path / "d-k" / "images.npy"
    content = bytearray(path.read_bytes())
    content[128:136], content[136:144] = content[136:144], content[128:136]
    path.write_bytes(content)
    [line] = cache.verify(tmp_path)
    assert line.startswith(f"{path}: expected sha256")


def test_parts_of_killed_runs_are_removed_after_a_day_and_those_of_living_ones_are_kept(tmp_path):
    old, new, alive = parts = [tmp_path / f".part-{name}" for name in ("old", "new", "alive")]
    for folder in parts:
        folder.mkdir()
        (folder / "images.npy").write_bytes(b"half")
    then = time.time() - 2 * 24 * 3600
    hold = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], 0), fcntl.LOCK_EX); print(flush=True); input()"
    command, pipes = [sys.executable, "-c", hold, str(alive)], {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        process.stdout.readline()
        for folder in (old, alive):
            os.utime(folder, (then, then))
        check(cache.cached("d", "k", Builder(), tmp_path))
        assert [folder.exists() for folder in parts] == [False, True, True]
        process.communicate(b"\n")
    check(cache.cached("d", "other", Builder(), tmp_path))
    assert new.exists() and not alive.exists()


def test_two_at_once_both_get_the_whole(tmp_path):
    builders = [Builder() for _ in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for entry in pool.map(lambda builder: cache.cached("d", "k", builder, tmp_path), builders):
            check(entry)
    assert sum(builder.calls for builder in builders) == 1  # the others waited for it
    assert [path.name for path in tmp_path.iterdir()] == ["d-k"]


def test_without_a_writable_folder_images_stay_in_memory(tmp_path, caplog):
    (tmp_path / "file").write_text("a file where a folder should be")
    with caplog.at_level(logging.WARNING):
        check(cache.cached("d", "k", Builder(), tmp_path / "file" / "cache"))
    assert "in memory" in caplog.text


def test_no_images_and_images_of_unequal_size_are_refused(tmp_path):
    unequal = [(IMAGES, LABELS, LABELS), (IMAGES[:, :3], LABELS, LABELS)]
    for pieces, message in (([], "at least one image"), (unequal, r"uint8\[n, 4, 5, 3\], found uint8\[10, 3, 5, 3\]")):
        with pytest.raises(ValueError, match=message):
            cache.cached("d", "k", lambda notes, pieces=pieces: pieces, tmp_path)


def test_root_follows_argument_then_variables(monkeypatch, tmp_path):
    assert cache.root(tmp_path / "argument") == tmp_path / "argument"
    monkeypatch.setenv("JAXC_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.root() == tmp_path / "own"
    monkeypatch.delenv("JAXC_CACHE_DIR")
    assert cache.root() == tmp_path / "xdg" / "jax-corruptions"


def _bitmaps(root, classes):
    for name in classes:
        (root / name).mkdir(parents=True)
        for i in range(2):
            Image.new("RGB", (32, 32), (200, 100, 50)).save(root / name / f"{i}.bmp")
    return root / classes[0] / "0.bmp"


def _folder(root):
    path = _bitmaps(root / "in", ("a", "b"))
    return path, lambda: data.load("image_folder", data_dir=root / "in", image_size=32, test_fraction=1).test.images


def _natural_tree(root):
    path = _bitmaps(root / "cinic10" / "test", sets.CIFAR10)
    return path, lambda: natural.open_natural("cinic10", root, 32).split.images


def _natural_arrays(root):
    folder = root / "cifar10_1"
    folder.mkdir()
    np.save(folder / "cifar10.1_v6_data.npy", np.full((3, 32, 32, 3), 9, np.uint8))
    np.save(folder / "cifar10.1_v6_labels.npy", np.arange(3))
    return folder / "cifar10.1_v6_data.npy", lambda: natural.open_natural("cifar10_1", root, 32).split.images


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("source", [_folder, _natural_tree, _natural_arrays])
def test_an_image_of_equal_size_and_time_is_decoded_anew(tmp_path, monkeypatch, source, whole):
    if not whole:  # as for large sets, of which a sample is compared: here the sample holds every byte
        monkeypatch.setattr(files, "WHOLE", 0)
        monkeypatch.setattr(files, "_PIECE", 2**20)
    path, read = source(tmp_path)
    before = np.array(read())
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[-2000:] = bytes(2000)
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (before != read()).any(axis=(1, 2, 3)).sum() == 1
