"""Adapted BatchNorm statistics against NumPy on a tiny network, and limits of the pseudo-count."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import models
from evaluation import adaptation
from models.layers import Linear
from models.norms import BatchNorm
from runtime import meshes
from tests.evaluation import known
from tests.refusing import refuses
from tests.training import tiny
from training import loop, study


class Tiny(nnx.Module):
    """Two layers whose second sees what the first normalises."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.first, self.linear, self.second = BatchNorm(3, rng=rng), Linear(3, 5, rng=rng), BatchNorm(5, rng=rng)
        self.first.scale[...] = jnp.array([0.5, 1.0, 2.0])
        self.first.bias[...] = jnp.array([0.1, -0.2, 0.0])

    def __call__(self, images, train, key=None):
        return self.second(nnx.relu(self.linear(self.first(images, train))), train), {}


@pytest.fixture(scope="module")
def network():
    return known.split(Tiny())


def images(number, seed=0, shift=0.0):
    return (np.random.default_rng(seed).gamma(2.0, 1.0, (number, 4, 6, 3)) + shift).astype(np.float32)


def reference(model, batches):
    """Pooled moments of both layers, each batch normalised by its own: ((mean, var), (mean, var))."""
    seen = [], []
    for x in batches:
        seen[0].append(x.reshape(-1, 3).astype(np.float64))
        normal = (seen[0][-1] - seen[0][-1].mean(0)) / np.sqrt(seen[0][-1].var(0) + 1e-5)
        y = normal * np.asarray(model.first.scale[...]) + np.asarray(model.first.bias[...])
        seen[1].append(np.maximum(y @ np.asarray(model.linear.kernel[...]) + np.asarray(model.linear.bias[...]), 0))
    return [(np.concatenate(one).mean(0), np.concatenate(one).var(0)) for one in seen]


def statistics(graphdef, state):
    """(mean, variance) of every BatchNorm."""
    layers = (node for _, node in nnx.iter_graph(known.merge(graphdef, state)) if isinstance(node, BatchNorm))
    return [(np.asarray(layer.mean[...]), np.asarray(layer.var[...])) for layer in layers]


@pytest.mark.parametrize("sizes", [(24,), (10, 10, 10), (12, 4)])
def test_full_replacement_is_the_pooled_moments(network, sizes):
    """Each batch has another mean, so the mean of their variances would be less than the variance of all images."""
    batches = [images(size, seed, shift=2.0 * seed) for seed, size in enumerate(sizes)]
    found, number = adaptation.adapt(*network, batches)
    assert number == sum(sizes)
    for one, other in zip(statistics(network[0], found), reference(Tiny(), batches), strict=True):
        np.testing.assert_allclose(one[0], other[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(one[1], other[1], rtol=1e-4)
    chex.assert_trees_all_equal(found.params, network[1].params)


def test_moments_keep_their_digits_far_from_zero(network):
    batch = (1000 + 0.1 * images(40)).astype(np.float32)
    found, _ = adaptation.adapt(*network, [batch])
    for one, other in zip(statistics(network[0], found), reference(Tiny(), [batch]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def test_one_batch_of_all_images_is_exact(network):
    """In evaluation every layer then gives mean beta and variance gamma^2 over these very images."""
    given = images(40)
    state, _ = adaptation.adapt(*network, [given])
    logits, _ = known.merge(network[0], state)(given, train=False)
    np.testing.assert_allclose(np.asarray(logits).reshape(-1, 5).mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(np.asarray(logits).reshape(-1, 5).var(0), 1, atol=1e-3)


def test_the_pseudo_count_weighs_the_source(network):
    batches = [images(10), images(6, 1)]
    full, _ = adaptation.adapt(*network, batches)
    part, _ = adaptation.adapt(*network, batches, pseudo_count=48)
    for source, target, found in zip(*(statistics(network[0], s) for s in (network[1], full, part)), strict=True):
        for k in range(2):
            np.testing.assert_allclose(found[k], 0.75 * source[k] + 0.25 * target[k], rtol=1e-5, atol=1e-6)
    same, _ = adaptation.adapt(*network, batches, pseudo_count=float("inf"))
    chex.assert_trees_all_equal(same, network[1])


@pytest.mark.parametrize(
    "name", ["small_resnet", *(pytest.param(name, marks=pytest.mark.slow) for name in ("wrn_40_2", "cifar_vgg19_bn"))]
)
def test_every_layer_of_a_model_is_adapted(name):
    graphdef, state = known.split(models.build(name, 10))
    found, _ = adaptation.adapt(graphdef, state, [np.random.default_rng(0).random((4, 32, 32, 3), np.float32)])
    layers = [statistics(graphdef, one) for one in (state, found)]
    assert len(layers[0]) == {"small_resnet": 7, "wrn_40_2": 37, "cifar_vgg19_bn": 16}[name]
    for (mean, var), (new_mean, new_var) in zip(*layers, strict=True):
        assert np.abs(new_mean - mean).max() > 0 and np.abs(new_var - var).max() > 0
    before, adapted = (known.merge(graphdef, one) for one in (state, found))
    np.testing.assert_array_equal(adapted.normalize.mean[...], before.normalize.mean[...])
    logits = jax.eval_shape(lambda images: adapted(images, train=False)[0], np.zeros((2, 32, 32, 3), np.float32))
    assert logits.shape == (2, 10)


def test_training_images_give_back_the_statistics_of_training(dataset, tmp_path):
    """Running averages of the last steps, at a small learning rate, are near those of all images
    under the last weights.
    """
    config = tiny.config(epochs=20, learning_rate=0.02, schedule="cosine", flip=False)
    split = dataset.train.to_device()
    one = study.model_config(config, "standard", 0)
    graphdef, state = loop.train(one, split, 10, tmp_path, mesh=meshes.data_mesh(32))
    batches = np.asarray(split.images).reshape(5, 32, 32, 32, 3)
    found, _ = adaptation.adapt(graphdef, state, batches)
    plain = statistics(graphdef, state)
    for (mean, var), (new_mean, new_var) in zip(plain, statistics(graphdef, found), strict=True):
        assert np.abs((new_mean - mean) / np.sqrt(var)).mean() < 0.05
        assert np.abs(np.log(new_var / var)).mean() < 0.1
    assert any(np.abs(mean).max() > 0.2 for mean, _ in plain[1:])  # they are not those of a fresh network


def test_no_images_are_refused(network):
    refuses(lambda: adaptation.adapt(*network, []), "none")
