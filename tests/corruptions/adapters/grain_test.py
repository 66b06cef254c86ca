"""corruptions.adapters.grain: draws by the record's index, workers that leave accelerators alone, and errors
that name the remedy.
"""

import contextlib
import dataclasses
import functools
import importlib
import os
import sys

import absl.flags
import grain
import jax
import numpy as np
import pytest

import corruptions
from corruptions.adapters.grain import CorruptBatch, CorruptRecord
from corruptions.core import forks, keys
from tests.pages import example_of
from tests.refusing import refuses

IMAGES = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3)).astype(np.uint8)
IMAGES[3] = IMAGES[2]
RECORDS = [{"image": image, "label": label} for label, image in enumerate(IMAGES)]


def test_a_record_is_corrupted_by_its_index_alone():
    corrupted = grain.MapDataset.source(RECORDS).seed(7).random_map(CorruptRecord("noc/border", 0.5))
    last = corrupted[3]
    assert last["label"] == 3 and last["image"].dtype == np.uint8 and type(last["image"]) is np.ndarray
    assert (last["image"] != corrupted[2]["image"]).any()  # the same image with another index
    np.testing.assert_array_equal(corrupted[3]["image"], last["image"])
    longer = grain.MapDataset.source(RECORDS * 2).seed(7).random_map(CorruptRecord("noc/border", 0.5))
    np.testing.assert_array_equal(longer[3]["image"], last["image"])
    assert (longer[7]["image"] != last["image"]).any()
    np.testing.assert_array_equal(RECORDS[3]["image"], IMAGES[3])


def test_epochs_draw_anew_unless_they_are_not_reseeded():
    source, transform = grain.MapDataset.source(RECORDS[:2]).seed(7), CorruptRecord("noc/border", 0.5)
    for dataset, kept in (
        (source.random_map(transform).repeat(2), False),
        (source.random_map(transform).repeat(2, reseed_each_epoch=False), True),
        (source.repeat(2).random_map(transform), False),
    ):
        assert [np.array_equal(dataset[i]["image"], dataset[i + 2]["image"]) for i in range(2)] == [kept] * 2


def test_a_records_seed_is_64_bits_of_its_generator():
    found = CorruptRecord("imagenet_c/contrast", 3).random_map(RECORDS[0], np.random.default_rng(5))["image"]
    seed = int(np.random.default_rng(5).integers(2**64, dtype=np.uint64))
    assert seed > 2**32
    np.testing.assert_array_equal(found, corruptions.corrupt_image(IMAGES[0], "contrast", 3, seed))


@pytest.fixture
def worker(monkeypatch):
    """Settings of JAX that are changed in a process other than the one that made the transforms."""
    changed = []
    monkeypatch.setattr(jax.config, "update", lambda *setting: changed.append(setting))
    monkeypatch.setattr(forks, "jax_started", lambda: False)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    return changed


def test_in_a_worker_jax_starts_on_the_cpu_alone(worker, monkeypatch):
    CorruptRecord("imagenet_c/contrast", 3).random_map(RECORDS[0], np.random.default_rng(0))  # asks once for a program
    used = []
    monkeypatch.setattr(jax, "default_device", lambda device: used.append(device) or contextlib.nullcontext())
    at_home = CorruptRecord("imagenet_c/contrast", 3)  # made in the process that uses it
    at_home.random_map(RECORDS[0], np.random.default_rng(0))
    assert not worker
    object.__setattr__(at_home, "_made_in", 1)
    at_home.random_map(RECORDS[0], np.random.default_rng(0))
    assert worker == [("jax_platforms", "cpu")]
    assert [device.platform for device in used] == ["cpu", "cpu"]
    with pytest.raises(RuntimeError, match=r"behind mp_prefetch, found a worker, .* CorruptRecord"):
        moved = CorruptBatch("imagenet_c/contrast", 3, seed=0)
        object.__setattr__(moved, "_made_in", 1)
        moved.map({"image": IMAGES, "index": np.arange(4)})


def test_a_batch_is_corrupted_by_the_indices_of_its_images():
    def batches(size):
        records = grain.MapDataset.source(RECORDS).map_with_index(lambda i, record: {**record, "index": i})
        return records.to_iter_dataset().batch(size).map(CorruptBatch("noc/border", 0.5, seed=2**40))

    whole, halves = next(iter(batches(4))), list(batches(2))
    expected = corruptions.corrupt(keys.seed_key(2**40), IMAGES, "noc/border", 0.5)
    np.testing.assert_array_equal(whole["image"], expected)
    np.testing.assert_array_equal(np.concatenate([half["image"] for half in halves]), expected)
    np.testing.assert_array_equal(whole["label"], np.arange(4))


def test_a_seed_of_none_draws_each_epoch_anew():
    transform, drawn = CorruptBatch("imagenet_c/gaussian_noise", 3, seed=None), {"image": IMAGES, "index": np.arange(4)}
    first, second = (np.asarray(transform.map(drawn)["image"]) for _ in range(2))
    assert (first != second).any((1, 2, 3)).all()
    refuses(lambda: CorruptBatch("imagenet_c/gaussian_noise", 3), "seed", kind=TypeError)


@pytest.mark.parametrize("transform", [CorruptRecord, functools.partial(CorruptBatch, seed=0)])
def test_a_wrong_name_severity_or_option_is_refused_at_once(transform):
    refuses(lambda: transform("imagenet_c/fgo"), "did you mean")
    refuses(lambda: transform("imagenet_c/fog", 6), "severity level 1..5")
    refuses(lambda: transform("imagenet_c/fog", 5, options={"tabel": "cifar"}), "did you mean 'table'")


def test_records_without_an_image_or_an_index_are_named():
    rng = np.random.default_rng(0)
    refuses(lambda: CorruptRecord("imagenet_c/contrast").random_map({"pixels": IMAGES[0]}, rng), "the keys 'pixels'")
    refuses(lambda: CorruptRecord("imagenet_c/contrast", image="photo").random_map((IMAGES[0], 1), rng), "tuple")
    with pytest.raises(ValueError, match=r"found the keys 'image'; \.map_with_index\(lambda i, record: .*'index': i}"):
        CorruptBatch("imagenet_c/contrast", seed=0).map({"image": IMAGES})


def test_cameras_and_frames_of_a_record_have_one_draw():
    """In nested dictionaries or at a key with a slash; with leading axes each frame is as the image alone."""
    left = IMAGES[0]
    record = {"camera": {"left": left, "right": IMAGES[:2]}, "camera/top": IMAGES[1], "state": 7}
    transform = CorruptRecord("imagenet_c/gaussian_noise", image=("camera/left", "camera/right", "camera/top"))
    found = transform.random_map(record, np.random.default_rng(5))
    alone = [
        CorruptRecord("imagenet_c/gaussian_noise").random_map({"image": image}, np.random.default_rng(5))["image"]
        for image in IMAGES[:2]
    ]
    np.testing.assert_array_equal(found["camera"]["left"], alone[0])
    np.testing.assert_array_equal(found["camera"]["right"], alone)
    np.testing.assert_array_equal(found["camera/top"], alone[1])
    assert found["state"] == 7 and record["camera"]["left"] is left

    batch = {"camera": {"left": IMAGES}, "frames": np.stack([IMAGES[:2]] * 4)[:, None], "index": np.arange(4)}
    found = CorruptBatch("imagenet_c/gaussian_noise", seed=3, image=("camera/left", "frames")).map(batch)
    frames = np.asarray(found["frames"])
    assert frames.shape == (4, 1, 2, 32, 32, 3)
    for image in range(2):
        same = np.broadcast_to(IMAGES[image], IMAGES.shape)
        expected = corruptions.corrupt(keys.seed_key(3), same, "imagenet_c/gaussian_noise")
        np.testing.assert_array_equal(frames[:, 0, image], expected)
    left = corruptions.corrupt(keys.seed_key(3), IMAGES, "imagenet_c/gaussian_noise")
    np.testing.assert_array_equal(found["camera"]["left"], left)
    refuses(
        lambda: CorruptRecord("noc/border", image="camera/right").random_map(
            {"camera": {"left": 0}}, np.random.default_rng(0)
        ),
        "the keys 'left'",
    )


@pytest.mark.parametrize("transform", [CorruptRecord, functools.partial(CorruptBatch, seed=0)])
def test_transforms_are_frozen_values(transform):
    made = transform("imagenet_c/fog", 3, options={"table": "cifar"})
    assert made == transform(name="imagenet_c/fog", severity=3, options={"table": "cifar"}) and hash(made)
    assert made != dataclasses.replace(made, severity=5) == transform("imagenet_c/fog", 5, options={"table": "cifar"})
    assert repr(made).startswith(f"{type(made).__name__}(name='imagenet_c/fog', severity=3, image='image', options=")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.severity = 4


def test_without_grain_the_module_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "corruptions.adapters.grain")
    monkeypatch.setitem(sys.modules, "grain", None)
    refuses(lambda: importlib.import_module("corruptions.adapters.grain"), "pip install grain", kind=ImportError)


@pytest.mark.slow
def test_the_recipe_corrupts_in_workers_as_in_this_process(monkeypatch):
    monkeypatch.delenv("JAX_PLATFORMS")  # a worker would inherit it
    recipe = example_of("docs/howto/corrupt.md", "Corrupt in a Grain pipeline")
    for given, small in (("128", "4"), ("num_workers=4", "num_workers=2")):
        assert given in recipe
        recipe = recipe.replace(given, small)
    found = {"source": RECORDS * 2, "grain": grain, "absl": absl}
    exec(recipe, found)
    here = iter(found["training"].to_iter_dataset().batch(4))
    of_workers = iter(found["batches"])
    for _ in range(3):
        np.testing.assert_array_equal(next(of_workers)["image"], next(here)["image"])
    told = found["training"].map(lambda record: {"platforms": str(jax.config.jax_platforms)}).to_iter_dataset()
    assert next(iter(told.mp_prefetch(found["workers"])))["platforms"] == "cpu"
    first = next(iter(found["test"]))["image"]
    np.testing.assert_array_equal(first, corruptions.corrupt(keys.seed_key(0), IMAGES, "imagenet_c/fog", 3))
