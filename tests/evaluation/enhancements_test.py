"""Enhancements in commands: eval.py marks the models, training shows enhanced images."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import data
import eval as evaluate
from corruptions import enhance as enhancements
from corruptions.keys import seed_key
from evaluation import correctness
from evaluation.shown import Shown
from runtime import meshes
from tests.training import tiny
from training import batches, states
from training.batches import Plan


def settings(**changed):
    config = tiny.config()
    config.eval.corruptions = ()
    config.eval.update(changed)
    return config


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.untrained_workdir(tmp_path_factory.mktemp("trained") / "work", settings())


def test_an_enhanced_evaluation_is_one_of_a_model_with_a_name_of_its_own(folder):
    plain = evaluate.run(settings(), folder)
    both = evaluate.run(settings(enhance="clahe"), folder)
    assert {count.model for count in both} == {"standard", "standard+enhance=clahe"}
    assert [count for count in both if count.model == "standard"] == plain
    assert evaluate.run(settings(enhance="clahe"), folder) == both  # read back
    assert evaluate.run(settings(), folder) == both


class Brightness(nnx.Module):
    """A network that answers with the mean brightness in steps of 1/200, and doubts a little."""

    def __init__(self):
        self.sharpness = nnx.Param(jnp.asarray(300.0))

    def __call__(self, images, train):
        place = (images.astype(jnp.float32) / 255).mean((1, 2, 3))[:, None] * 200
        return -self.sharpness[...] / 100 * jnp.abs(place - jnp.arange(200.0)[None, :]), {}


@pytest.mark.parametrize("name", ["clahe", "ten_crop"])
def test_images_are_enhanced_or_answers_averaged(name):
    images = np.random.default_rng(0).integers(0, 200, (6, 32, 32, 3)).astype(np.uint8)
    images[:, :9, :9] = 255
    model = Brightness()
    graphdef, params, statistics = nnx.split(model, nnx.Param, ...)
    state = states.TrainState(jnp.zeros((), jnp.int32), params, statistics, None)
    classify = enhancements.averaged(lambda images: model(images, train=False)[0], name)
    scores = classify(jnp.asarray(images) if name == "ten_crop" else enhancements.enhance(images, name))
    split = data.Split(jnp.asarray(images), scores.argmax(-1).astype(jnp.int32), np.arange(6))
    mesh = meshes.data_mesh(2)
    shown = Shown(split, mesh, 2)
    models = {"": (graphdef, state)}
    with meshes.counting_compiles() as compiled:
        assert correctness.of_models(models, shown, name)[""].all()
        assert not correctness.of_models(models, shown)[""].all()
    assert compiled["network_logits"] <= (2 if name == "ten_crop" else 1)  # enhanced images are images


def test_training_shows_enhanced_images():
    recipe = tiny.config(batch_size=4, flip=False).train
    images = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3)).astype(np.uint8)
    split = data.Split(jnp.asarray(images), jnp.arange(8) % 4, np.arange(8))
    keys, mesh = batches.Keys(*jax.random.split(seed_key(0), 4)), meshes.data_mesh(4)
    plan = Plan(recipe, images.shape)
    order = batches.epoch_order(seed_key(1), plan.views)
    plain, _ = batches.block(plan, split, order, 0, keys, mesh)
    recipe.enhance = "clahe"  # which the plan holds
    found, _ = batches.block(plan, split, order, 0, keys, mesh)
    assert found.shape == plain.shape and found.dtype == jnp.uint8
    expected = enhancements.enhance(np.asarray(plain).reshape(-1, 32, 32, 3), "clahe")
    np.testing.assert_array_equal(np.asarray(found).reshape(-1, 32, 32, 3), expected)
    assert (np.asarray(found) != np.asarray(plain)).mean() > 0.5
