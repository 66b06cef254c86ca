"""The contract of every source: splits, limits, devices, names, images in several arrays, two datasets as one, lists."""

import dataclasses
import hashlib

import jax
import numpy as np
import pytest

import data
from corruptions.files import digest_of
from data import dataset, listed
from evaluation.shown import name_dataset
from tests.refusing import refuses


def test_balanced_prefix_takes_classes_in_turn_and_smaller_limits_come_first():
    labels = np.array([2, 2, 2, 2, 0, 1, 0, 1, 2, 0])
    assert data.balanced_prefix(labels, 6).tolist() == [4, 5, 0, 6, 7, 1]
    for limit in range(1, 11):
        kept = data.balanced_prefix(labels, limit)
        assert kept.tolist() == data.balanced_prefix(labels, 10)[:limit].tolist()
        counts = np.bincount(labels[kept], minlength=3)
        available = np.bincount(labels)
        # No class has two images more than another, unless the other has no more to give.
        assert all(counts[a] <= counts[b] + 1 or counts[b] == available[b] for a in range(3) for b in range(3))
    assert sorted(data.balanced_prefix(labels, 99)) == list(range(10))
    assert data.balanced_prefix(labels, None).tolist() == list(range(10))
    for limit in (0, -3):
        with pytest.raises(ValueError, match=f"at least 1.*found {limit}"):
            data.balanced_prefix(labels, limit)


def test_limited_keeps_the_identity_of_images():
    images = np.arange(3, dtype=np.uint8)[:, None, None, None].repeat(3, axis=3)
    split = dataset.limited(data.Split(images, np.int32([1, 1, 0]), np.int32([7, 8, 9])), 2)
    assert split.labels.tolist() == [0, 1] and split.index.tolist() == [9, 7]
    assert split.images[:, 0, 0, 0].tolist() == [2, 0]


def made(number, name="shapes"):
    """A dataset of noise."""
    images = np.random.default_rng(number).integers(0, 256, (number, 32, 32, 3), np.uint8)
    index = np.arange(number, dtype=np.int32)
    split = dataset.make_split(images, index % 10, index, 10, name)
    facts = dataset.describe(split)
    return data.Dataset(name, tuple("abcdefghij"), split, split, {"train": facts, "test": facts})


def test_to_device_keeps_values_and_types_and_takes_a_sharding():
    split = made(4).test
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[-1])
    for placed in (split.to_device(), split.to_device(sharding)):
        for name, dtype in (("images", np.uint8), ("labels", np.int32), ("index", np.int32)):
            array = getattr(placed, name)
            assert isinstance(array, jax.Array) and array.dtype == dtype
            np.testing.assert_array_equal(array, getattr(split, name))
    assert placed.images.sharding == sharding
    # A split is a pytree: jitted functions take it whole.
    assert jax.jit(lambda s: s.labels[2])(placed) == split.labels[2]


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (np.zeros((2, 4, 4, 3), np.float32), np.zeros(2, int), "uint8.*float32"),
        (np.zeros((2, 4, 4), np.uint8), np.zeros(2, int), r"found uint8\[2, 4, 4\]"),
        (np.zeros((2, 4, 4, 3), np.uint8), np.zeros(3, int), r"expected labels \[2\].*found \[3\]"),
        (np.zeros((2, 4, 4, 3), np.uint8), np.array([0, 5]), r"0\.\.4, found 0\.\.5"),
    ],
)
def test_make_split_says_what_is_wrong(images, labels, message):
    with pytest.raises(ValueError, match=message):
        dataset.make_split(images, labels, np.arange(2), 5, "here")


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("cifar-10", {}, rf"expected a dataset among {', '.join(data.names())}, .* did you mean 'cifar10'"),
        ("shapes", {"train_limit": 0}, r"train_limit of at least 1 image \(or None for all\), found 0"),
        ("cifar10", {"test_limit": -3}, "test_limit of at least 1 image .*found -3"),
        ("cifar10", {"image_size": 64}, "cifar10: expected image_size 32 or None, found 64"),
        ("image_folder", {"image_size": 0, "data_dir": "x"}, "image_size >= 1, found 0"),
        ("shapes", {"train_size": 64}, "expected train_size with image_folder, .* only, found it with shapes"),
        ("cifar10", {"resize": "squash"}, "expected resize with image_folder, .* only, found it with cifar10"),
        ("imagenet", {}, "imagenet needs data_dir, the folder that holds train/ and val/"),
        ("image_folder", {"class_stride": 0, "data_dir": "x"}, "class_stride >= 1, found 0"),
        ("image_folder", {"test_fraction": 1.5, "data_dir": "x"}, r"test_fraction in \[0, 1\], found 1\.5"),
        ("image_folder", {"resize": "stretch", "data_dir": "x"}, "expected resize 'crop' or 'squash', found 'stretch'"),
        ("shapes", {"image_size": 15}, "image_size >= 16.*found 15"),
        ("shapes", {"test_images": 0}, "at least 1"),
        ("shapes", {"seed": 2**32}, r"expected a seed from 0 to 2\*\*32 - 1, found"),
    ],
)
def test_arguments_out_of_range_are_refused_before_anything_is_read(name, arguments, message, monkeypatch):
    monkeypatch.delenv("TFDS_DATA_DIR", raising=False)
    with pytest.raises(ValueError, match=message):
        data.load(name, **arguments)


def test_a_registered_dataset_is_loaded_by_name_and_no_name_is_taken_twice(monkeypatch):
    monkeypatch.setattr(data, "_SOURCES", dict(data._SOURCES))
    asked = []
    data.register("mine", lambda name, **arguments: asked.append((name, arguments)), 48, of_files=True)
    data.register("builtin", "math:hypot")
    data.load("mine", data_dir="x", train_limit=3)
    limits = {"train_limit": 3, "test_limit": None, "train_size": None, "resize": "crop"}
    assert asked == [("mine", {"data_dir": "x", "seed": 0, "image_size": 48, **limits})]
    assert "mine" in data.names() and "mine" in data.of_files() and "builtin" not in data.of_files()
    refuses(lambda: data.register("shapes", "math:hypot"), "'shapes' is registered already")


def test_provenance_holds_the_digest_of_the_very_arrays():
    loaded = data.load("shapes", train_limit=12, test_limit=10)
    for name, split in (("train", loaded.train), ("test", loaded.test)):
        facts = loaded.provenance[name]
        assert facts["size"] == len(split) and facts["image_shape"] == [32, 32, 3]
        assert facts["sha256"]["images"] == hashlib.sha256(split.images.tobytes()).hexdigest()


WHOLE = np.random.default_rng(0).integers(0, 256, (23, 4, 5, 3), np.uint8)
SHARDED = dataset.ShardedImages(np.split(WHOLE, [1, 9, 9, 20]), (4, 5, 3))


@pytest.mark.parametrize(
    "key",
    [
        *(0, 22, -1, -23, np.int32(9), slice(None), slice(5, 12), slice(-3, None), slice(None, None, -4), slice(7, 7)),
        *([3, 3, 20, 0], np.array([[8, 9], [19, 20]]), np.array([], int), np.arange(23) % 3 == 0),
    ],
)
def test_shards_are_indexed_like_one_array(key):
    found = SHARDED[key]
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, WHOLE[key])


def test_shards_as_an_array():
    for key in (23, -24, [0, 23], [0.5], np.ones(5, bool)):
        with pytest.raises(IndexError, match="expected integers from -23 to 22"):
            SHARDED[key]
    assert SHARDED.shape == WHOLE.shape and len(SHARDED) == 23 and SHARDED.nbytes == WHOLE.nbytes
    np.testing.assert_array_equal(np.asarray(SHARDED), WHOLE)
    assert np.asarray(SHARDED, np.float32).dtype == np.float32
    refuses(lambda: np.array(SHARDED, copy=False), "without a copy")
    empty = dataset.ShardedImages([], (4, 5, 3))
    assert empty.shape == (0, 4, 5, 3) and empty[:].shape == (0, 4, 5, 3)

    refuses(lambda: dataset.ShardedImages([WHOLE, np.zeros((2, 5, 4, 3), np.uint8)], (4, 5, 3)), "uint8[2, 5, 4, 3]")


def test_shards_are_one_array_on_the_device():
    labels = np.arange(23, dtype=np.int32) % 7
    split = dataset.make_split(SHARDED, labels, labels, 7, "here")
    for placed in (split.to_device(), split.to_device(jax.sharding.SingleDeviceSharding(jax.devices()[0]))):
        assert isinstance(placed.images, jax.Array)
        np.testing.assert_array_equal(placed.images, WHOLE)


@pytest.fixture
def both():
    return made(30), made(50, "styled")


def test_training_images_of_both_and_test_images_of_the_first(both):
    first, second = both
    found = dataset.union(first, second)
    images = np.concatenate([first.train.images, second.train.images])
    np.testing.assert_array_equal(found.train.images, images)
    for chosen in (np.array([79, 0, 30, 29, 0, -1]), slice(25, 40), 3, 70, slice(0, 0)):
        np.testing.assert_array_equal(found.train.images[chosen], images[chosen])
    np.testing.assert_array_equal(found.train.to_device().images, images)
    np.testing.assert_array_equal(found.train.labels, [*first.train.labels, *second.train.labels])
    assert len(np.unique(found.train.index)) == len(found.train) == 80
    assert found.train.labels.dtype == found.train.index.dtype == np.int32
    np.testing.assert_array_equal(found.test.images, first.test.images)
    assert found.name == "shapes+styled"
    assert found.provenance["train"] == first.provenance["train"]
    assert found.provenance["mixed_in"]["train"]["sha256"] == second.provenance["train"]["sha256"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: {"class_names": (*d.class_names[:-1], "x")}, "found 10 against 10 classes, different in .*x"),
        (lambda d: {"class_names": d.class_names[::-1]}, "different in their order"),
        (lambda d: {"train": dataclasses.replace(d.train, images=d.train.images[:, :16])}, r"images of \(32, 32, 3\)"),
        (lambda d: {"train": data.Split(d.train.images[:0], d.train.labels[:0], d.train.index[:0])}, "found none"),
    ],
)
def test_datasets_that_do_not_fit_together_are_refused(both, change, message):
    first, second = both
    with pytest.raises(ValueError, match=message):
        dataset.union(first, dataclasses.replace(second, **change(second)))


@pytest.fixture(scope="module")
def shapes():
    return data.load("shapes", train_limit=10, test_limit=30)


def lines(shapes, rows):
    test = shapes.test
    return [f"{test.index[row]} {shapes.class_names[test.labels[row]]}" for row in rows]


def test_images_remain_in_the_order_of_the_list(shapes, tmp_path):
    rows = [17, 3, 29]
    (tmp_path / "list").write_text("\n".join(lines(shapes, rows)) + "\n\n")
    found = listed.choose(shapes, tmp_path / "list")
    for part in ("images", "labels", "index"):
        np.testing.assert_array_equal(getattr(found.test, part), np.asarray(getattr(shapes.test, part))[rows])
    assert found.train is shapes.train
    digest = digest_of(shapes.test.index[rows])
    assert found.provenance["listed"] == {"number": 3, "sha256": digest}
    assert found.provenance["test"]["sha256"]["listed"] == digest
    assert name_dataset(found)["dataset"] == f"shapes, 3 images of list {digest[:12]}"
    assert name_dataset(shapes)["dataset"] == "shapes"


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda ok: [ok[0], "circle 3"], "line 2: expected the place of a test image and its class, found 'circle 3'"),
        (lambda ok: [ok[0], "17"], "line 2: expected the place"),
        (lambda ok: [ok[0], ok[1], ok[0]], "line 3: expected each image once"),
        (lambda ok: [f"99999 {ok[0].split()[1]}"], "expected a place in the 30 test images of shapes, found 99999"),
        (lambda ok: [ok[0].split()[0] + " " + ok[1].split()[1]], "found one of .*another copy of the dataset"),
        (lambda ok: [], "expected places of test images"),
    ],
)
def test_a_wrong_list_is_refused_by_its_line(shapes, tmp_path, change, message):
    labels = np.asarray(shapes.test.labels)
    rows = [0, int(np.flatnonzero(labels != labels[0])[0])]
    (tmp_path / "list").write_text("\n".join(change(lines(shapes, rows))))
    with pytest.raises(ValueError, match=message):
        listed.choose(shapes, tmp_path / "list")
    refuses(lambda: listed.choose(shapes, tmp_path / "gone"), "no file", kind=FileNotFoundError)


def test_places_are_those_of_the_tree(tmp_path, capsys):
    """Four files in two classes; names out of order."""
    for name in ("n01/ILSVRC2012_val_00000002", "n01/ILSVRC2012_val_00000009", "n02/ILSVRC2012_val_00000001"):
        path = tmp_path / "val" / f"{name}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    (tmp_path / "names").write_text("n02/ILSVRC2012_val_00000001.JPEG\r\nn01/ILSVRC2012_val_00000009.JPEG\r\n")
    given = [f"--names={tmp_path / 'names'}", f"--source={tmp_path}", f"--out={tmp_path / 'out'}"]
    assert listed.main(given) == 0
    assert (tmp_path / "out").read_text() == "2 n02\n1 n01\n"
    assert listed.main([*given, "--check=robustbench"]) == 1
    expected = "expected 5000 names with sum 123943129 and sha256 6b74a79879be, found 2 with 10 and"
    assert expected in capsys.readouterr().err
    (tmp_path / "names").write_text("n02/ILSVRC2012_val_00000003.JPEG")
    assert listed.main(given) == 1
    assert "found 1 of 1 names missing" in capsys.readouterr().err


def test_a_published_list_is_known_by_its_numbers_in_order():
    names = [f"n01/ILSVRC2012_val_{number:08d}.JPEG" for number in (300, 1, 65535)]
    known = listed.Known(3, 65836, hashlib.sha256(bytes([44, 1, 1, 0, 255, 255])).hexdigest())
    listed.check(names, known)
    refuses(lambda: listed.check(names[::-1], known), "as it was published")
