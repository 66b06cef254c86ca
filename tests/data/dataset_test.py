"""The contract every source keeps: splits, limits, devices, names."""

import hashlib

import jax
import numpy as np
import pytest

import data
from data import dataset


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


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_is_refused(limit):
    with pytest.raises(ValueError, match=f"at least 1.*found {limit}"):
        data.balanced_prefix(np.zeros(4, int), limit)


def test_limited_keeps_the_identity_of_images():
    labels = np.array([1, 1, 0], np.int32)
    images = np.arange(3, dtype=np.uint8)[:, None, None, None].repeat(3, axis=3)
    split = dataset.limited(data.Split(images, labels, np.array([7, 8, 9], np.int32)), 2)
    assert split.labels.tolist() == [0, 1] and split.index.tolist() == [9, 7]
    assert split.images[:, 0, 0, 0].tolist() == [2, 0]


def test_to_device_keeps_values_and_types_and_takes_a_sharding():
    split = data.load("shapes", train_limit=4, test_limit=4).test
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


def test_unknown_names_are_answered_with_a_suggestion_and_the_list():
    with pytest.raises(ValueError, match="did you mean 'cifar10'") as caught:
        data.load("cifar-10")
    assert all(name in str(caught.value) for name in data.names())


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("shapes", {"train_limit": 0}, r"train_limit of at least 1 image \(or None for all\), found 0"),
        ("cifar10", {"test_limit": -3}, "test_limit of at least 1 image .*found -3"),
        ("cifar10", {"image_size": 64}, "cifar10: expected image_size 32 or None, found 64"),
        ("image_folder", {"image_size": 0, "data_dir": "x"}, "image_size >= 1, found 0"),
        ("shapes", {"train_size": 64}, "expected train_size with image_folder, .* only, found it with shapes"),
        ("cifar10", {"resize": "squash"}, "expected resize with image_folder, .* only, found it with cifar10"),
        ("image_folder", {}, "image_folder needs data_dir, the folder that holds train/ and val/"),
        ("imagenet", {}, "imagenet needs data_dir"),
    ],
)
def test_arguments_out_of_range_are_refused_before_anything_is_read(name, arguments, message):
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
    with pytest.raises(ValueError, match="dataset 'shapes' is registered already"):
        data.register("shapes", "math:hypot")


def test_provenance_holds_the_digest_of_the_very_arrays():
    loaded = data.load("shapes", train_limit=12, test_limit=10)
    for name, split in (("train", loaded.train), ("test", loaded.test)):
        facts = loaded.provenance[name]
        assert facts["size"] == len(split) and facts["image_shape"] == [32, 32, 3]
        assert facts["sha256"]["images"] == hashlib.sha256(split.images.tobytes()).hexdigest()
    assert loaded.image_shape == (32, 32, 3) and loaded.num_classes == 10
