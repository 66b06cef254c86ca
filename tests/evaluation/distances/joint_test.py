"""Centres from images that each have a draw of their own, against one image at a time."""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from ml_collections import ConfigDict

import corruptions
import data
import models
from corruptions.keys import seed_key
from corruptions.scoring.conditions import Condition
from evaluation.distances import centres, features
from evaluation.distances import sampling as joint
from runtime import meshes
from tests.training import tiny
from training.states import TrainState

SIDE, IMAGES, SEED = 16, 5, 3


@pytest.fixture(scope="module")
def network():
    """(model, what measures with it) of a network that saw no training, images four at a time."""
    model = models.build("small_resnet", 10, seed=0)
    graphdef, params, statistics = nnx.split(model, nnx.Param, ...)
    state = TrainState(jnp.zeros((), int), params, statistics, None)
    images = np.random.default_rng(0).integers(0, 256, (IMAGES, SIDE, SIDE, 3)).astype(np.uint8)
    extractor = features.Extractor(meshes.data_mesh(1), graphdef, state, images, np.ones((1, IMAGES), np.float32))
    return model, extractor


def measured(network, folder):
    asked = ConfigDict({"seed": SEED, "chunk": 4})
    return centres.Measured(asked, network[1], None, folder, {})


@pytest.mark.parametrize("level", [2, 4])
def test_the_centre_is_the_mean_over_images_each_with_its_draw(network, tmp_path, level):
    model, extractor = network
    name = "imagenet_c/gaussian_noise"
    key = jax.random.fold_in(seed_key(SEED), zlib.crc32(name.encode()))
    feature = jax.jit(lambda image: model(image[None].astype(jnp.float32) / 255, train=False)[1]["penultimate"][0])
    expected = []
    for i in range(IMAGES):  # the last batch is padded with images that must not count
        one = corruptions.corrupt(key, extractor.images[i : i + 1], name, level, index=np.array([i]))[0]
        expected.append(np.asarray(feature(one), float))
    found = joint.centre(measured(network, tmp_path), Condition(name, str(level)))
    assert found.shape == (96,) and found.dtype == np.float64
    np.testing.assert_allclose(found, np.mean(expected, axis=0), rtol=2e-3, atol=1e-4)
    apart = np.abs(expected[0] - np.mean(expected, axis=0)).max()
    assert apart > 100 * np.abs(found - np.mean(expected, axis=0)).max()


def test_data_are_not_loaded_again_and_images_with_draws_of_their_own_stay_on_the_host(network, tmp_path, monkeypatch):
    model = network[1].graphdef, network[1].state
    monkeypatch.setattr(centres.study, "load_dataset", lambda *given, **more: pytest.fail("loaded again"))
    monkeypatch.setattr(centres.trained_models, "list_models", lambda workdir: {("standard", 0): workdir})
    monkeypatch.setattr(centres.trained_models, "read_model", lambda *given: model)
    dataset = data.load("shapes", train_limit=10, test_limit=10)
    asked = {"model": "standard", "model_seed": 0, "seed": SEED, "images": 3, "halves": 0, "chunk": 4}
    for draws, kind in ((0, np.ndarray), (1, jax.Array)):
        given = ConfigDict(asked | {"draws": draws})
        found = centres.Measured.by(tiny.config(), given, tmp_path, f"draws{draws}", {}, dataset)
        assert isinstance(found.extractor.images, kind) and found.split is dataset.train
        assert {image.tobytes() for image in np.asarray(found.extractor.images)} <= {
            image.tobytes() for image in dataset.train.images
        }


def test_what_is_measured_is_read_back_and_nan_is_refused(network, tmp_path, monkeypatch):
    condition = Condition("imagenet_c/gaussian_noise", "2")
    found = joint.centre(measured(network, tmp_path), condition)
    monkeypatch.setattr(joint, "_features", lambda *given: jnp.full((2, 4, 96), jnp.nan))
    np.testing.assert_array_equal(joint.centre(measured(network, tmp_path), condition), found)
    with pytest.raises(ValueError, match="expected finite outputs for images under imagenet_c/gaussian_noise"):
        joint.centre(measured(network, tmp_path / "other"), condition)
    assert not (tmp_path / "other").exists()
