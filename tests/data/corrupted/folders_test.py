"""Folders, as ImageNet-C is published."""

import io
import os

import numpy as np
import pytest
from PIL import Image

from data.corrupted import open_corrupted
from tests.data.corrupted.pictures import LABELS, NUMBER, pixels, whole

CLASSES = ("n01440764", "n01443537", "n02077923", "n09288635")


def make_folders(root, conditions):
    for name, severity in conditions:
        for i, image in enumerate(pixels(name.split("/")[-1], severity, (NUMBER, 24, 40, 3))):
            path = root / f"{name}/{severity}/{CLASSES[LABELS[i]]}/ILSVRC2012_val_{i:08d}.JPEG"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path, "JPEG", quality=85, optimize=True)


def decoded(name, severity):
    """Images as JPEG leaves them, by class and then by name."""
    images = []
    for image in pixels(name, severity, (NUMBER, 24, 40, 3)):
        file = io.BytesIO()
        Image.fromarray(image).save(file, "JPEG", quality=85, optimize=True)
        images.append(np.asarray(Image.open(file)))
    return np.stack(images)[np.argsort(LABELS, kind="stable")]


@pytest.mark.parametrize("prefix", ["", "weather/"])
def test_folders_as_published(tmp_path, prefix):
    make_folders(tmp_path, [(f"{prefix}{name}", s) for name in ("snow", "frost", "perlin_noise") for s in (1, 3)])
    (tmp_path / "README.md").write_text("")
    dataset = open_corrupted(tmp_path, threads=2)
    names = ("imagenet_c/snow", "imagenet_c/frost", "cbar/perlin_noise")
    assert dataset.conditions() == tuple((name, s) for name in names for s in (1, 3))
    assert (dataset.number, dataset.image_shape, dataset.class_names) == (NUMBER, (24, 40, 3), CLASSES)
    for name, severity in dataset.conditions():
        batches = list(dataset.batches(name, severity, 4))
        assert [len(images) for images, _ in batches] == [4, 3]
        images, labels = map(np.concatenate, zip(*batches))
        assert images.dtype == np.uint8 and labels.dtype == np.int32
        assert np.array_equal(images, decoded(name.split("/")[-1], severity))
        assert np.array_equal(labels, np.sort(LABELS))
    with pytest.raises(ValueError, match="no severity 2 of imagenet_c/snow; found severities 1, 3"):
        dataset.batches("snow", 2, 4)


@pytest.mark.parametrize("batch_size", [1, 2, 7, 100])
def test_every_batch_size_gives_every_image_once(tmp_path, batch_size):
    make_folders(tmp_path, [("fog", 1)])
    images, labels = whole(open_corrupted(tmp_path), "fog", 1, batch_size)
    assert np.array_equal(images, decoded("fog", 1)) and np.array_equal(labels, np.sort(LABELS))


def test_damaged_folders_are_named(tmp_path):
    make_folders(tmp_path, [("fog", s) for s in range(1, 6)])
    damaged = tmp_path / f"fog/2/{CLASSES[0]}/ILSVRC2012_val_00000006.JPEG"
    os.truncate(damaged, 300)
    Image.new("RGB", (30, 30)).save(tmp_path / f"fog/3/{CLASSES[0]}/ILSVRC2012_val_00000006.JPEG")
    (tmp_path / f"fog/4/{CLASSES[0]}/ILSVRC2012_val_00000006.JPEG").unlink()
    (tmp_path / "fog/5" / CLASSES[1]).rename(tmp_path / "fog/5/tench")
    dataset = open_corrupted(tmp_path)
    assert len(whole(dataset, "fog", 1)[0]) == NUMBER
    for severity, message in (
        (2, r"fog/2/n01440764/ILSVRC2012_val_00000006\.JPEG is damaged"),
        (3, r"fog/3/n01440764/ILSVRC2012_val_00000006\.JPEG: expected an image of 24x40, found 30x30"),
        (4, r"fog/4: expected 7 images as in the other conditions, found 6"),
        (5, r"fog/5: expected the 4 class folders .* they differ in n01443537, tench"),
    ):
        with pytest.raises(ValueError, match=message):
            whole(dataset, "fog", severity)


def test_folders_without_images_are_refused(tmp_path):
    (tmp_path / "fog/1/n01440764").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match=r"fog/1: expected class folders with images .* found none"):
        open_corrupted(tmp_path)
