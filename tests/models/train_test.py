"""Models in training: under `jit`, `grad` and `scan`, with dropout keys from outside."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import models
from models.layers import Dropout, Options
from models.norms import BatchNorm
from models.resnet import WideResNet
from tests.models import tiny
from tests.refusing import refuses
from training import states, steps

SGD = optax.sgd(0.1)
train_block = jax.jit(steps.train_block, static_argnums=(0, 1))


def batch(number=16, size=8):
    """Images whose label is the colour channel that is brightest."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, number)
    images = rng.random((number, size, size, 3)).astype(np.float32) * 0.7
    images[np.arange(number), :, :, labels] += 0.3
    return jnp.asarray(images), jnp.asarray(labels)


def wide(conv="auto", dropout=0.0):
    """A Wide ResNet of one block a stage."""
    return WideResNet(3, Options(np.random.default_rng(1), "float32", conv=conv), depth=10, widen=1, dropout=dropout)


@nnx.jit
def forward(model, images):
    """Logits in evaluation mode."""
    return model(images, train=False)[0]


def trained(model, images, labels, number):
    """Takes `number` steps of gradient descent on one batch; returns (state before, after, losses)."""
    graphdef, params, rest = nnx.split(model, nnx.Param, ...)
    state = states.initial_state(params, rest, SGD)
    repeated = jnp.stack([images] * number), jnp.stack([labels] * number)
    after, metrics = train_block(graphdef, SGD, state, *repeated, jax.random.key(0))
    return state, after, metrics["loss"]


@pytest.mark.parametrize("name", ["small_resnet", pytest.param("wrn_16_4", marks=pytest.mark.slow)])
def test_scanned_training_learns_and_equals_single_steps(name):
    images, labels = batch()
    model = models.build(name, 3, dtype="float32")
    before, after, losses = trained(model, images, labels, 6)
    assert losses[-1] < 0.5 * losses[0]
    assert not np.array_equal(after.statistics["normalize"]["mean"][...], np.zeros(3))
    chex.assert_trees_all_equal(after.statistics["normalize"], before.statistics["normalize"])
    graphdef, state = nnx.split(model)[0], before
    for expected in losses[:2]:
        state, metrics = train_block(graphdef, SGD, state, images[None], labels[None], jax.random.key(0))
        np.testing.assert_allclose(metrics["loss"][0], expected, rtol=1e-3)


def test_gradients_do_not_depend_on_the_path_of_the_convolutions():
    images, labels = batch(8)
    results = []
    for path in ("cpu", "xla"):
        before, after, losses = trained(wide(path), images, labels, 1)
        moved = jax.tree.map(np.subtract, *jax.device_get((after.params, before.params)))
        results.append((losses[0], moved))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-5)
    for by_hand, by_xla in zip(*(jax.tree.leaves(moved) for _, moved in results), strict=True):
        np.testing.assert_allclose(by_hand, by_xla, rtol=1e-2, atol=2e-4 * float(jnp.abs(by_xla).max()) + 1e-7)


def test_uint8_images_are_divided_by_255_and_normalised_as_the_model_says():
    levels = np.random.default_rng(1).integers(0, 256, (2, 16, 16, 3)).astype(np.uint8)
    images = levels.astype(np.float32) / 255
    plain = models.build("small_resnet", 5, dtype="float32", mean=(0, 0, 0), std=(1, 1, 1))
    scaled = models.build("small_resnet", 5, dtype="float32", mean=(0.1, 0.2, 0.3), std=(0.5, 0.25, 2))
    expected = forward(plain, (images - np.float32([0.1, 0.2, 0.3])) / np.float32([0.5, 0.25, 2]))
    for given in (images, levels):
        np.testing.assert_allclose(forward(scaled, given), expected, rtol=1e-4, atol=1e-5)


def test_dropout_needs_a_key_in_training_only_and_is_a_function_of_it():
    images, _ = batch(4)
    model = wide(dropout=0.5)
    numbers = [block.dropout.number for blocks in model.stages for block in blocks]
    assert len(set(numbers)) == len(numbers)  # layers of one number would drop the same values of a key
    graphdef, state = nnx.split(model)
    logits = jax.jit(
        lambda seed: nnx.merge(graphdef, state, copy=True)(images, train=True, key=jax.random.key(seed))[0]
    )
    np.testing.assert_array_equal(logits(0), logits(0))
    assert not np.allclose(logits(0), logits(1), atol=1e-2)
    np.testing.assert_array_equal(forward(model, images), forward(wide(), images))


def test_dropout_keeps_the_mean():
    x = jnp.ones((200, 200))
    y = Dropout(0.3)(x, True, jax.random.key(0))
    assert set(np.unique(y).round(5)) == {0, np.float32(1 / 0.7).round(5)}
    np.testing.assert_allclose(y.mean(), 1, atol=0.02)
    assert not np.array_equal(y, Dropout(0.3, 1)(x, True, jax.random.key(0)))
    np.testing.assert_array_equal(Dropout(0.3)(x, False, None), x)


@pytest.mark.parametrize("name", ["wide_resnet", "vgg_bn"])
def test_a_missing_key_is_refused_before_running_statistics_are_moved(name, monkeypatch):
    model = wide(dropout=0.5) if name == "wide_resnet" else tiny.build(monkeypatch, name, dropout=0.5)
    before = jax.tree.map(np.array, nnx.state(model, nnx.BatchStat))
    refuses(lambda: model(jnp.ones((2, 64, 64, 3)), train=True), "None")
    jax.tree.map(np.testing.assert_array_equal, nnx.state(model, nnx.BatchStat), before)


@pytest.mark.parametrize("name", [pytest.param("vgg", marks=pytest.mark.slow), "alexnet", "squeezenet1_1"])
def test_families_with_dropout_need_a_key_in_training_only(name, monkeypatch):
    images = jnp.asarray(np.random.default_rng(0).random((2, 64, 64, 3)), jnp.float32)
    graphdef, state = nnx.split(tiny.build(monkeypatch, name, dropout=0.5))

    @partial(jax.jit, static_argnums=1)
    def features(key, train):
        return nnx.merge(graphdef, state)(images, train, key)[1]["penultimate"]

    refuses(lambda: features(None, True), "None")
    first, second, plain = features(jax.random.key(0), True), features(jax.random.key(1), True), features(None, False)
    assert not np.allclose(first, second, atol=1e-3 * np.abs(plain).max())
    if name == "squeezenet1_1":  # the mean over pixels evens out what was dropped
        np.testing.assert_allclose(first.mean(), plain.mean(), rtol=0.2)


@pytest.mark.parametrize(
    "name, dtype",
    [(name, "float32") for name in ("vgg_bn", "alexnet")]
    + [("squeezenet1_1", "bfloat16")]
    + [
        pytest.param(name, "float32", marks=pytest.mark.slow)
        for name in ("resnext", "cifar_densenet", "squeezenet1_1", "msdnet", "multigrid", "condensenet")
    ]
    + [pytest.param(name, "bfloat16", marks=pytest.mark.slow) for name in ("resnext", "cifar_densenet", "vgg_bn")],
)
def test_a_step_downhill_lowers_the_loss(name, dtype, monkeypatch):
    """A small step along the gradient; the loss falls by what the gradient foretells."""
    side = tiny.NETWORKS[name][1]
    images, labels = batch(4, side)
    graphdef, params, rest = nnx.split(tiny.build(monkeypatch, name, 3, dtype=dtype), nnx.Param, ...)

    @jax.jit
    def loss_and_gradient(params):
        def loss_fn(params):
            logits, _ = nnx.merge(graphdef, params, rest, copy=True)(images, train=True)
            return steps.cross_entropy(logits, labels)

        return jax.value_and_grad(loss_fn)(params)

    @jax.jit
    def moved(params, gradient, loss):
        slope = sum((leaf**2).sum() for leaf in jax.tree.leaves(gradient))
        step = 0.02 * loss / slope  # to lower it by 2 %
        return jax.tree.map(lambda p, g: p - step * g, params, gradient)

    before, gradient = loss_and_gradient(params)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(gradient))
    after, _ = loss_and_gradient(moved(params, gradient, before))
    if dtype == "float32":
        np.testing.assert_allclose(before - after, 0.02 * before, rtol=0.5)
    assert after < before


def test_batch_norm_of_a_whole_batch_keeps_its_axes():
    """With one more a TPU's compiler takes the sums apart from the convolution before, reading its
    maps once more for each.
    """
    graphdef, state = nnx.split(BatchNorm(3, rng=None))

    def apply(state, maps):
        return nnx.merge(graphdef, state, copy=True)(maps, train=True)

    traced = jax.make_jaxpr(jax.grad(lambda *given: apply(*given).sum(), argnums=1))(state, jnp.ones((2, 4, 4, 3)))
    assert max(made.aval.ndim for line in traced.eqns for made in line.outvars) == 4
