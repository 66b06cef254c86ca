"""Checksums of blocks of images: their definition, what they find, and what they cost."""

import zlib

import numpy as np
import pytest

from data import blocks
from runtime.files import DamagedFileError

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 64, 64, 3), np.uint8)  # three pages each


def test_the_checksum_is_the_crc_of_sums_of_words():
    block = IMAGES[:1].tobytes() + b"the rest"
    words = np.frombuffer(block[: 3 * 4096], "<u8").tolist()
    sums = b"".join((sum(words[i : i + 512]) % 2**64).to_bytes(8, "little") for i in range(0, 1536, 512))
    assert blocks.checksum(np.frombuffer(block, np.uint8)) == zlib.crc32(b"the rest", zlib.crc32(sums))


def test_blocks_are_whole_images(monkeypatch):
    assert blocks.describe(IMAGES)["images"] == 2**19 // (64 * 64 * 3)
    monkeypatch.setattr(blocks, "_BYTES", 2 * 64 * 64 * 3 + 1)
    known = blocks.describe(IMAGES)
    assert known["images"] == 2
    assert known["checksums"] == "".join(f"{blocks.checksum(IMAGES[i : i + 2]):08x}" for i in (0, 2, 4))
    monkeypatch.setattr(blocks, "_BYTES", 100)
    assert blocks.describe(IMAGES)["images"] == 1 and len(blocks.describe(IMAGES)["checksums"]) == 5 * 8
    assert blocks.describe(IMAGES[:0])["checksums"] == ""


HARMS = {  # damaged values of one image
    "zeroed": lambda flat: np.where(np.arange(flat.size) // 150 == 20, 0, flat).astype(np.uint8),
    "pages exchanged": lambda flat: np.concatenate([np.roll(flat[:8192], 4096), flat[8192:]]),
    "shifted": lambda flat: np.roll(flat, 1),
    "one bit": lambda flat: flat ^ (np.arange(flat.size) == flat.size - 1),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_change_is_found_once_its_images_are_asked_for(monkeypatch, tmp_path, harm):
    monkeypatch.setattr(blocks, "_BYTES", 2 * 64 * 64 * 3)
    images, known = IMAGES.copy(), blocks.describe(IMAGES)
    images[3] = HARMS[harm](images[3].reshape(-1)).reshape(64, 64, 3)
    checked = blocks.Blocks(tmp_path / "x.npy", images, known, "write it again")
    checked.check(0, 2)
    checked.check(4, 5)
    for _ in range(2):
        with pytest.raises(DamagedFileError, match=r"x\.npy: images 2 to 3 changed: expected.*; write it again"):
            checked.check(1, 3)
    [line] = checked.wrong()
    assert "images 2 to 3" in line


def test_a_block_is_compared_once(monkeypatch, tmp_path):
    checked = blocks.Blocks(tmp_path / "x.npy", IMAGES, blocks.describe(IMAGES), "")
    checked.check(0, 5)
    monkeypatch.setattr(blocks, "checksum", lambda block: pytest.fail("compared again"))
    checked.check(2, 4)


def test_checksums_that_are_none_are_named(tmp_path):
    for known in ({}, {"images": 0, "checksums": ""}, {"images": 5, "checksums": "zz"}, [1]):
        with pytest.raises(DamagedFileError, match=r"x\.npy: expected (\d+ )?checksums"):
            blocks.Blocks(tmp_path / "x.npy", IMAGES, known, "")
