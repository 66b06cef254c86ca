"""Folders of images: what is read, how it is resized, what happens to damaged files."""

import json
import logging
import os

import numpy as np
import pytest
from PIL import Image

import data
from data import decode

RNG = np.random.default_rng(1)


def write(path, size=(20, 16), mode="RGB"):
    """A small smooth image: upscaled noise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    array = RNG.integers(0, 256, (4, 4, 3), np.uint8)
    Image.fromarray(array).resize(size, Image.Resampling.BICUBIC).convert(mode).save(path)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Three classes; 126 training images, one of them damaged, and 9 test images in val/."""
    root = tmp_path_factory.mktemp("tree")
    for name in ("ant", "bee", "cat"):
        for i in range(42):
            write(root / "train" / name / f"{i:03d}.png")
        for i in range(3):
            write(root / "val" / name / f"{i}.JPEG")
    whole = (root / "train" / "bee" / "005.png").read_bytes()
    (root / "train" / "bee" / "005.png").write_bytes(whole[: len(whole) // 2])
    (root / "train" / "bee" / "notes.txt").write_text("no image")
    return root


def resize_reference(image, height, width):
    """Bilinear with antialiasing in NumPy: a triangle filter as wide as the scale, on each axis."""

    def matrix(old, new):
        scale = old / new
        support = max(scale, 1.0)
        centre = (np.arange(new)[:, None] + 0.5) * scale - 0.5
        weight = np.clip(1 - np.abs(np.arange(old)[None] - centre) / support, 0, None)
        return weight / weight.sum(1, keepdims=True)

    rows, columns = matrix(image.shape[0], height), matrix(image.shape[1], width)
    return np.einsum("ij,jkc,lk->ilc", rows, image.astype(float), columns, optimize=True)


@pytest.mark.parametrize(("height", "width", "size"), [(50, 70, 28), (61, 40, 28), (20, 20, 28), (300, 90, 56)])
def test_square_resizes_the_shorter_side_and_crops_the_centre(height, width, size):
    image = RNG.integers(0, 256, (height, width, 3), np.uint8)
    short = {28: 32, 56: 64}[size]  # size * 256 / 224
    if height < width:
        resized = resize_reference(image, short, int(width * short / height))
    else:
        resized = resize_reference(image, int(height * short / width), short)
    top, left = (round((n - size) / 2) for n in resized.shape[:2])
    found = decode.square(Image.fromarray(image), size)
    assert found.dtype == np.uint8 and found.shape == (size, size, 3)
    # Pillow rounds once after each axis.
    assert np.abs(found - resized[top : top + size, left : left + size]).max() <= 1.1


@pytest.mark.parametrize("mode", ["L", "P", "CMYK", "RGBA", "1"])
def test_any_mode_becomes_rgb(tmp_path, mode):
    path = tmp_path / ("x.tiff" if mode == "CMYK" else "x.png")
    write(path, mode=mode)
    image = decode.read(path, 16)
    assert image.shape == (16, 16, 3) and image.dtype == np.uint8


def test_a_tree_with_a_damaged_image(tree, caplog):
    with caplog.at_level(logging.WARNING):
        loaded = data.load("image_folder", data_dir=tree, image_size=16)
    assert loaded.class_names == ("ant", "bee", "cat")
    assert loaded.train.images.shape == (125, 16, 16, 3) and loaded.test.images.shape == (9, 16, 16, 3)
    assert np.bincount(loaded.train.labels).tolist() == [42, 41, 42]
    # The index counts the damaged image too, so that the others keep theirs when it is mended.
    assert sorted(set(range(126)) - set(loaded.train.index.tolist())) == [42 + 5]
    assert "005.png" in caplog.text and "skipped 1 damaged" in caplog.text
    [damaged] = loaded.provenance["train"]["damaged"]
    assert "bee/005.png" in damaged and loaded.provenance["test"]["damaged"] == []
    expected = decode.square(Image.open(tree / "train" / "cat" / "041.png"), 16)
    np.testing.assert_array_equal(loaded.train.images[-1], expected)


def test_a_second_load_decodes_nothing_until_a_file_changes(tree, monkeypatch, tmp_path):
    first = data.load("image_folder", data_dir=tree, image_size=16)
    read = decode.read
    seen = []
    monkeypatch.setattr(decode, "read", lambda path, *sides: seen.append(path) or read(path, *sides))
    second = data.load("image_folder", data_dir=tree, image_size=16)
    assert not seen
    np.testing.assert_array_equal(first.train.images, second.train.images)
    assert first.provenance == second.provenance
    path = tree / "val" / "ant" / "0.JPEG"
    before = path.read_bytes()
    try:
        write(path, size=(30, 30))
        data.load("image_folder", data_dir=tree, image_size=16)
        assert len(seen) == 9  # the test split and not the training split
    finally:
        path.write_bytes(before)


def test_limits_open_only_what_is_kept(tree, monkeypatch):
    read = decode.read
    seen = []
    monkeypatch.setattr(decode, "read", lambda path, *sides: seen.append(path) or read(path, *sides))
    loaded = data.load("image_folder", data_dir=tree, image_size=16, train_limit=7, test_limit=3)
    assert len(seen) == 10
    assert loaded.train.labels.tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert loaded.train.index.tolist() == [0, 42, 84, 1, 43, 85, 2]
    assert loaded.test.index.tolist() == [0, 3, 6]


def test_more_than_one_percent_damaged_is_an_error(tree):
    for name in ("ant", "cat"):
        (tree / "train" / name / "zz.png").write_bytes(b"nonsense")
    try:
        with pytest.raises(ValueError, match=r"of 128 images are damaged.*at most 1\.0%") as caught:
            data.load("image_folder", data_dir=tree, image_size=16)
        assert "zz.png" in str(caught.value)
        kept = data.load("image_folder", data_dir=tree, image_size=16, max_damaged=0.05)
        assert len(kept.train) == 125
        with pytest.raises(ValueError, match=r"at most 1\.0%"):  # also when the laxer load is in the cache
            data.load("image_folder", data_dir=tree, image_size=16)
    finally:
        for name in ("ant", "cat"):
            (tree / "train" / name / "zz.png").unlink()


@pytest.mark.parametrize("split", [".", "test"])
def test_broken_links_and_names_that_are_no_text_are_damaged_images(tmp_path, caplog, split):
    root = tmp_path / "tree"
    folder = root / split
    for name in ("a", "b"):
        for i in range(3):
            write(folder / name / f"{i}.png", size=(8, 8))
    (folder / "a" / "link.png").symlink_to("nowhere.png")
    (folder / "a" / "loop.png").symlink_to("loop.png")
    os.rename(folder / "b" / "2.png", os.fsencode(folder / "b") + b"/caf\xe9.png")
    (folder / "gone").symlink_to("unmounted")
    for _ in range(2):  # decoded, and from the cache
        caplog.clear()
        loaded = data.load("image_folder", data_dir=root, image_size=16, max_damaged=0.6, test_fraction=1.0)
        assert loaded.class_names == ("a", "b") and loaded.test.labels.tolist() == [0, 0, 0, 1, 1]
        first, second, third = loaded.provenance["test"]["damaged"]
        assert first.startswith(f"{folder / 'a' / 'link.png'} (FileNotFoundError") and "loop.png (OSError" in second
        assert third == rf"{folder / 'b'}/caf\udce9.png (its name is not valid UTF-8)"
        assert "skipped 3 damaged images" in caplog.text
        assert f"links that lead nowhere: {folder / 'gone'}" in caplog.text
        json.dumps(loaded.provenance, ensure_ascii=False).encode()  # a file can hold it


@pytest.fixture(scope="module")
def flat(tmp_path_factory):
    root = tmp_path_factory.mktemp("flat")
    for name in ("x", "y"):
        for i in range(20):
            write(root / name / f"{i}.png")
    return root


def test_a_flat_tree_is_split_the_same_way_every_time(flat):
    arguments = {"data_dir": flat, "image_size": 16, "test_fraction": 0.25}
    first, again = (data.load("image_folder", **arguments) for _ in range(2))
    other = data.load("image_folder", seed=1, **arguments)
    assert np.bincount(first.test.labels).tolist() == [5, 5] and np.bincount(first.train.labels).tolist() == [15, 15]
    np.testing.assert_array_equal(first.test.images, again.test.images)
    assert not np.array_equal(first.test.images, other.test.images)
    both = {image.tobytes() for split in (first.train, first.test) for image in split.images}
    assert len(both) == 40  # every image in exactly one split


def test_a_flat_tree_may_be_all_for_testing(flat):
    loaded = data.load("image_folder", data_dir=flat, image_size=16, test_fraction=1.0)
    assert len(loaded.test) == 40 and loaded.train.images.shape == (0, 16, 16, 3)


def test_a_flat_tree_of_single_images_cannot_be_split(tmp_path):
    write(tmp_path / "x" / "0.png")
    write(tmp_path / "y" / "0.png")
    with pytest.raises(ValueError, match="test_fraction=1"):
        data.load("image_folder", data_dir=tmp_path, image_size=16)


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        data.load("image_folder", data_dir=tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="expected class folders with images"):
        data.load("image_folder", data_dir=tmp_path)
    write(tmp_path / "train" / "x" / "0.png")
    with pytest.raises(FileNotFoundError, match="none of val, test"):
        data.load("image_folder", data_dir=tmp_path)
    write(tmp_path / "test" / "y" / "0.png")
    with pytest.raises(ValueError, match=r"same classes.*\['x', 'y'\]"):
        data.load("image_folder", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"class_stride": 0}, "class_stride"), ({"test_fraction": 1.5}, "found 1.5")],
)
def test_arguments_out_of_range(flat, arguments, message):
    with pytest.raises(ValueError, match=message):
        data.load("image_folder", data_dir=flat, **arguments)


def test_imagenet100_takes_every_tenth_of_a_thousand_classes(tmp_path):
    for i in range(1000):
        (tmp_path / "val" / f"n{i:08d}").mkdir(parents=True)
    for i in range(0, 1000, 10):
        write(tmp_path / "val" / f"n{i:08d}" / "0.png", size=(8, 8))
    loaded = data.load("imagenet100", data_dir=tmp_path, image_size=16)
    assert loaded.class_names == tuple(f"n{i:08d}" for i in range(0, 1000, 10))
    assert loaded.test.labels.tolist() == list(range(100))


def test_real_photographs(shared):
    loaded = data.load("imagenet100", data_dir=shared / "data" / "imagenet100_samples", test_fraction=1.0)
    assert loaded.test.images.shape == (100, 224, 224, 3) and loaded.num_classes == 100
    path = sorted((shared / "data" / "imagenet100_samples" / loaded.class_names[3]).iterdir())[0]
    whole = resize_reference(np.asarray(Image.open(path).convert("RGB")), 256, 256)
    assert np.abs(loaded.test.images[3] - whole[16:240, 16:240]).max() <= 1.1
