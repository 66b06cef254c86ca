"""Nothing of ours promotes ranks or dtypes silently: every corruption, scheme and training step,
traced strictly.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import corruptions
import models
from configs import default
from training import states, steps

KEY = jax.eval_shape(lambda: jax.random.key(0))


@pytest.fixture(autouse=True)
def strict():
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        yield


def images(number, dtype, side=33):
    return jax.ShapeDtypeStruct((number, 40, side, 3), dtype)


def test_strictness_is_on():
    with pytest.raises(ValueError, match="rank_promotion"):
        jnp.ones((2, 3)) + jnp.ones(3)
    with pytest.raises(ValueError, match="dtype_promotion=strict"):
        jnp.ones(3) + jnp.ones(3, jnp.int32)


@pytest.mark.parametrize("name", corruptions.names())
def test_corruptions(name):
    """With drawn severities; tests/corruptions/contract_test.py traces those that are given as strictly."""
    found = jax.eval_shape(lambda key, images: corruptions.corrupt(key, images, name), KEY, images(2, np.uint8))
    assert found.dtype == np.uint8


@pytest.mark.parametrize("name", ["augmix", "autoaugment_cifar", "autoaugment_imagenet", "patch_gaussian"])
def test_schemes(name):
    augmented = jax.eval_shape(lambda key, x: corruptions.augment.augment(key, x, name), KEY, images(2, np.uint8))
    assert augmented.dtype == np.uint8


@pytest.mark.parametrize("schedule", ["step", "cosine", "triangle"])
def test_a_training_step(schedule):
    recipe = default.get_config().train
    recipe.update({"schedule": schedule, "warmup_epochs": 0 if schedule == "step" else 2})
    optimizer = states.make_optimizer(recipe, 10)
    graph, params, rest = nnx.split(models.build("small_resnet", 10), nnx.Param, ...)
    state = states.initial_state(params, rest, optimizer)

    def train(state, key, images, labels):
        return steps.train_block(graph, optimizer, state, images, labels, key)

    batches = jax.ShapeDtypeStruct((3, 8, 32, 32, 3), np.uint8), jax.ShapeDtypeStruct((3, 8), np.int32)
    _, metrics = jax.eval_shape(train, state, KEY, *batches)
    assert metrics["loss"].dtype == np.float32
