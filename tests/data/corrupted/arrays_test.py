"""Arrays, as CIFAR-10-C and CIFAR-10-C-bar are published."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from data.corrupted import open_corrupted
from tests.data.corrupted.pictures import LABELS, NUMBER, pixels, whole


@pytest.fixture
def arrays(tmp_path):
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    for name in ("fog", "gaussian_noise", "blue_noise_sample", "spatter"):
        np.save(folder / f"{name}.npy", np.concatenate([pixels(name, s) for s in range(1, 6)]))
    np.save(folder / "labels.npy", np.tile(LABELS, 5).astype(np.uint8))
    (folder / "README.txt").write_text("CIFAR-10-C")
    return folder


def test_arrays_as_published(arrays):
    dataset = open_corrupted(arrays)
    names = ["imagenet_c/gaussian_noise", "imagenet_c/fog", "imagenet_c/spatter", "cbar/blue_noise_sample"]
    assert dataset.conditions() == tuple((name, s) for name in names for s in range(1, 6))
    assert (dataset.number, dataset.image_shape, dataset.class_names) == (NUMBER, (32, 32, 3), None)
    for name, severity in dataset.conditions():
        batches = list(dataset.batches(name, severity, 3))
        assert [len(images) for images, _ in batches] == [3, 3, 1]
        images, labels = map(np.concatenate, zip(*batches))
        assert images.dtype == np.uint8 and labels.dtype == np.int32
        assert np.array_equal(images, pixels(name.split("/")[-1], severity)) and np.array_equal(labels, LABELS)
    assert np.array_equal(whole(dataset, "fog", "2")[0], pixels("fog", 2))


def resident():
    """Bytes of memory this process holds, mapped files included."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the memory in use")
def test_arrays_are_not_read_before_they_are_asked_for(tmp_path):
    number = 600
    for name in ("fog", "snow"):  # 450 MB each, of holes
        np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", np.uint8, (5 * number, 224, 224, 3))
    np.save(tmp_path / "labels.npy", np.zeros(5 * number, int))
    before = resident()
    images, _ = next(open_corrupted(tmp_path).batches("snow", 5, 4))
    assert images.shape == (4, 224, 224, 3) and images.flags.owndata
    assert resident() - before < 50e6
    touched = np.load(tmp_path / "snow.npy", mmap_mode="r")
    assert touched.max() == 0 and resident() - before > 400e6  # the measure would have seen it


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (lambda f: (f / "labels.npy").unlink(), FileNotFoundError, r"expected the file .*labels\.npy"),
        (
            lambda f: os.truncate(f / "fog.npy", 5000),
            ValueError,
            r"fog\.npy: expected an \.npy file.*\(5000 bytes;.*copy it again",
        ),
        (lambda f: (f / "fog.npy").write_bytes(b""), ValueError, r"fog\.npy: expected an \.npy file.*\(0 bytes;"),
        (lambda f: (f / "fog.npy").write_text("<html>not found"), ValueError, r"fog\.npy: expected an \.npy file"),
        (lambda f: np.save(f / "fog.npy", np.zeros((35, 32, 32, 3))), ValueError, r"fog\.npy: expected uint8.*float64"),
        (
            lambda f: np.save(f / "fog.npy", np.zeros((30, 32, 32, 3), np.uint8)),
            ValueError,
            r"fog\.npy: expected the shape \[35, 32, 32, 3\] of gaussian_noise\.npy, found \[30, 32, 32, 3\]",
        ),
        (lambda f: np.save(f / "labels.npy", LABELS), ValueError, r"labels\.npy: expected whole labels \[35\]"),
        (lambda f: np.save(f / "labels.npy", np.arange(35)), ValueError, r"same 7 labels for every severity"),
    ],
)
def test_damaged_arrays_are_named(arrays, damage, error, message):
    damage(arrays)
    with pytest.raises(error, match=message):
        open_corrupted(arrays)


def test_arrays_without_five_severities_are_refused(tmp_path):
    np.save(tmp_path / "fog.npy", np.zeros((12, 32, 32, 3), np.uint8))
    np.save(tmp_path / "labels.npy", np.zeros(12, int))
    with pytest.raises(ValueError, match=r"fog\.npy: expected a multiple of 5 images.*found 12"):
        open_corrupted(tmp_path)


def test_what_is_not_there(arrays, tmp_path):
    dataset = open_corrupted(arrays)
    with pytest.raises(ValueError, match=r"no corruption 'fogg'; did you mean 'fog'.* found imagenet_c/gaussian_noise"):
        dataset.batches("fogg", 1, 2)
    with pytest.raises(ValueError, match="no severity 6 of imagenet_c/fog; found severities 1, 2, 3, 4, 5"):
        dataset.batches("fog", 6, 2)
    with pytest.raises(ValueError, match="batch_size of at least 1, found 0"):
        dataset.batches("fog", 1, 0)
    with pytest.raises(FileNotFoundError, match=r"expected a folder, or one of .* found no .*absent"):
        open_corrupted(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="found neither"):
        open_corrupted(tmp_path / "empty")
    np.save(tmp_path / "empty/labels.npy", LABELS)
    with pytest.raises(FileNotFoundError, match="found no corruption in it"):
        open_corrupted(tmp_path / "empty")
