"""corruptions.adapters.keras: the layer corrupts while training alone, compiled and saved as Keras does it.

Skipped, visibly, where Keras is not installed.
"""

import importlib
import sys

import jax
import numpy as np
import pytest

import corruptions
from tests.refusing import refuses

keras = pytest.importorskip("keras")
pytestmark = pytest.mark.needs("keras")
Corrupt = importlib.import_module("corruptions.adapters.keras").Corrupt

IMAGES = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3)).astype(np.uint8)


def expected(images, name, severity=None, seed=0, **options):
    """What a layer with this seed makes of its first images."""
    key = jax.random.wrap_key_data(keras.random.SeedGenerator(seed).next())
    return corruptions.corrupt(key, images, name, severity, **options)


def test_images_are_corrupted_while_training_alone():
    layer, first = Corrupt("imagenet_c/gaussian_noise", 3, seed=0), expected(IMAGES, "gaussian_noise", 3)
    np.testing.assert_array_equal(layer(IMAGES), IMAGES)
    np.testing.assert_array_equal(layer(IMAGES, training=True), first)
    assert (np.asarray(layer(IMAGES, training=True)) != first).any()  # drawn anew
    in_levels = Corrupt("imagenet_c/gaussian_noise", 3, seed=0)(IMAGES.astype(np.float32), training=True)
    np.testing.assert_allclose(in_levels, first, atol=1.001)  # floats are not truncated to whole levels
    of_unit = Corrupt("imagenet_c/gaussian_noise", 3, seed=0, value_range=(0, 1))
    in_unit = of_unit(IMAGES / np.float32(255), training=True)
    np.testing.assert_allclose(255 * np.asarray(in_unit), in_levels, atol=1e-2)


def test_frames_of_an_image_share_its_draws():
    layer, frames = Corrupt("imagenet_c/gaussian_noise", seed=0), np.stack([IMAGES] * 2, 1)[:, :, None]
    found = np.asarray(layer(frames, training=True))
    np.testing.assert_array_equal(found[:, 0, 0], expected(IMAGES, "gaussian_noise"))
    np.testing.assert_array_equal(found[:, 1, 0], found[:, 0, 0])
    one = Corrupt("imagenet_c/gaussian_noise", 1, seed=0)(IMAGES[0], training=True)
    np.testing.assert_array_equal(one, expected(IMAGES[:1], "gaussian_noise", 1)[0])


def test_a_model_with_it_trains_compiled_and_is_saved(tmp_path):
    layers = [keras.layers.Input((32, 32, 3)), Corrupt("noc/border", 0.5, seed=1), keras.layers.GlobalMaxPooling2D()]
    model = keras.Sequential([*layers, keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):  # Keras' own layers need both
        model.fit(IMAGES.astype(np.float32), np.zeros((4, 2), np.float32), batch_size=2, verbose=0)
        model.save(tmp_path / "model.keras")
        read = keras.models.load_model(tmp_path / "model.keras")
        np.testing.assert_array_equal(read(IMAGES.astype(np.float32)), model(IMAGES.astype(np.float32)))
    assert read.layers[0].get_config() == model.layers[0].get_config()


def test_mistakes_are_named_at_once(monkeypatch):
    refuses(lambda: Corrupt("imagenet_c/fgo"), "did you mean")
    refuses(lambda: Corrupt("imagenet_c/fog", 6), "severity level 1..5")
    refuses(lambda: Corrupt("imagenet_c/fog", 5, options={"tabel": "cifar"}), "did you mean 'table'")
    monkeypatch.setattr(keras.backend, "backend", lambda: "tensorflow")
    refuses(lambda: Corrupt("imagenet_c/fog"), "tensorflow; set KERAS_BACKEND=jax", kind=RuntimeError)


def test_without_keras_the_module_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "corruptions.adapters.keras")
    monkeypatch.setitem(sys.modules, "keras", None)
    refuses(lambda: importlib.import_module("corruptions.adapters.keras"), "pip install keras", kind=ImportError)


def test_a_corruption_made_of_others_is_registered_first():
    choice = corruptions.random_choice(["noc/border", "noc/hue"], name="of_two/keras_layer")
    refuses(lambda: Corrupt(choice), "register")
    layer = Corrupt(corruptions.register(choice), seed=0)
    np.testing.assert_array_equal(layer(IMAGES, training=True), expected(IMAGES, "of_two/keras_layer"))


def test_a_loop_that_fills_one_buffer():
    """Keras gives JAX the memory of NumPy's arrays, which JAX reads after the call has returned."""
    frames = np.random.default_rng(1).integers(0, 256, (24, 4, 360, 640, 3), dtype=np.uint8)
    memory = np.empty(frames[0].size + 128, np.uint8)
    start = 16 - memory.ctypes.data % 64 + 64  # memory that JAX copies, and does so late
    buffer = memory[start : start + frames[0].size].reshape(frames[0].shape)
    layer, found = Corrupt("imagenet_c/contrast", 3), []
    for frame in frames:
        buffer[:] = frame
        found.append(layer(buffer))
        buffer[:] = 0
    assert [np.array_equal(result, frame) for result, frame in zip(found, frames, strict=True)] == [True] * len(frames)
