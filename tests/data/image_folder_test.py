"""Folders of images: the files that are read, how they are resized, damaged files."""

import json
import logging
import os

import numpy as np
import pytest
from PIL import Image

import data
from data import decode
from tests.data.imagenet import trees

RNG = np.random.default_rng(1)


def write(path, size=(20, 16)):
    """A small smooth image: upscaled noise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    array = RNG.integers(0, 256, (4, 4, 3), np.uint8)
    Image.fromarray(array).resize(size, Image.Resampling.BICUBIC).save(path)


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
    write(root / "train" / "bee" / ".thrown_away" / "1.png")
    (root / "val" / "bee" / "._0.JPEG").write_bytes(b"as macOS writes beside each file of an archive")
    return root


def test_pixels_are_those_of_torchvisions_rules_and_of_both_sides_resized():
    """`Resize(256)`, `CenterCrop(224)`, or `Resize((224, 224))`, written with Pillow."""
    [(side, short)] = {decode.sides(224, resize="squash")[split] for split in ("train", "test")}
    for size in ((500, 375), (375, 500), (257, 256), (256, 257), (259, 256), (224, 224), (100, 61), (1201, 333)):
        coarse = np.random.default_rng(sum(size)).integers(0, 256, (9, 11, 3), np.uint8)
        image = Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)
        np.testing.assert_array_equal(decode.square(image, 224), trees.reference(image, 224, 256))
        expected = np.asarray(image.resize((224, 224), Image.Resampling.BILINEAR))
        np.testing.assert_array_equal(decode.square(image, side, short), expected)


def test_the_preprocessing_is_described():
    assert decode.description(decode.sides(224)) == "shorter side 256, centre crop 224, bilinear (Pillow)"
    assert decode.description(decode.sides(224, resize="squash")) == "both sides 224, bilinear (Pillow)"
    larger = decode.description(decode.sides(224, 256, "squash"))
    assert larger == "train: both sides 256; test: both sides 224, bilinear (Pillow)"


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


@pytest.fixture
def seen(monkeypatch):
    """The files that are decoded."""
    read, paths = decode.read, []
    monkeypatch.setattr(decode, "read", lambda path, *sides, **more: paths.append(path) or read(path, *sides, **more))
    return paths


def test_a_second_load_decodes_nothing_until_a_file_changes(tree, seen):
    first = data.load("image_folder", data_dir=tree, image_size=16)
    seen.clear()
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


def test_limits_open_only_the_images_that_are_kept(tree, seen):
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
    tested = data.load("image_folder", **arguments | {"test_fraction": 1.0})
    assert len(tested.test) == 40 and tested.train.images.shape == (0, 16, 16, 3)


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [
        (None, FileNotFoundError, "expected a folder of images at data_dir .*tree, which is not there"),
        ([], FileNotFoundError, "expected class folders with images"),
        (["x/0.png", "y/0.png"], ValueError, "test_fraction=1"),
        (["train/x/0.png"], FileNotFoundError, "none of val, test"),
        (["train/x/0.png", "test/y/0.png"], ValueError, r"same classes.*\['x', 'y'\]"),
    ],
)
def test_trees_that_hold_no_dataset_are_refused(tmp_path, files, error, message):
    for file in files or ():
        write(tmp_path / "tree" / file)
    if files is not None:
        (tmp_path / "tree").mkdir(exist_ok=True)
    with pytest.raises(error, match=message):
        data.load("image_folder", data_dir=tmp_path / "tree", image_size=16)
