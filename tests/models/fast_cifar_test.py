"""The fast network: forward pass against a NumPy one, its first layer is not trained, convolutions
start as the identity."""

import functools
import itertools
import math
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import models
from tests.models.reference import conv, max_pool
from training.states import whitening_filters as filters

RNG = np.random.default_rng(0)


def built(name="fast_cifar", **options):
    return models.build(name, 10, dtype="float32", widths=(32, 40), **options)


def gelu(x):
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


@pytest.mark.parametrize("name, size", [("fast_cifar", 15), ("fast_cifar_cpu", 16)])
def test_forward_pass_follows_the_formulas(name, size):
    model, images = built(name), RNG.random((2, size, size, 3)).astype(np.float32)
    graphdef, state = nnx.split(model)
    low = lambda x: -0.5 if x.ndim == 4 else 0.5  # kernels of both signs, so that GELU is met on both sides  # noqa: E731
    state = jax.tree.map(lambda x: jnp.asarray(RNG.uniform(low(x), low(x) + 1, x.shape), jnp.float32), state)
    leaf = lambda *path: np.asarray(functools.reduce(operator.getitem, path, state)[...], np.float64)  # noqa: E731
    x = (images - leaf("normalize", "mean")) / leaf("normalize", "std")
    x = (
        conv(x, leaf("whitening"), stride=2, padding=1)
        if name == "fast_cifar_cpu"
        else conv(x, leaf("whitening"), padding=0)
    )
    x = gelu(x + leaf("whitening_bias"))
    for i in (0, 1):
        for k in (1, 2):
            x = conv(x, leaf("stages", i, f"conv{k}", "kernel"))
            x = max_pool(x, 2, 2) if k == 1 else x
            norm = lambda name: leaf("stages", i, f"norm{k}", name)  # noqa: B023, E731
            x = gelu((x - norm("mean")) / np.sqrt(norm("var") + 1e-5) * norm("scale") + norm("bias"))
    expected = (x.max((1, 2)) @ leaf("head", "kernel") + leaf("head", "bias")) / 9
    found = jax.jit(lambda state: nnx.merge(graphdef, state)(jnp.asarray(images), train=False)[0])(state)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("name, wide", [("fast_cifar", (24, 64, 256, 256)), ("fast_cifar_cpu", (24, 64, 128, 256))])
def test_the_whitening_filters_are_no_parameters(name, wide):
    parameters = nnx.state(models.build(name, 10), nnx.Param)
    assert "whitening" not in parameters and "whitening_bias" in parameters
    # bias of the first layer; two 3x3 convolutions and BatchNorms a stage; linear layer
    expected = wide[0] + 256 * 10 + 10
    for c_in, c_out in itertools.pairwise(wide):
        expected += 9 * c_in * c_out + 9 * c_out * c_out + 4 * c_out
    assert sum(leaf.size for leaf in jax.tree.leaves(parameters)) == expected


def test_convolutions_start_as_the_identity():
    stage = built().stages[0]
    x = jnp.asarray(RNG.random((1, 5, 5, 24)), jnp.float32)
    np.testing.assert_array_equal(stage.conv1(x)[..., :24], x)
    y = jnp.asarray(RNG.random((1, 5, 5, 32)), jnp.float32)
    np.testing.assert_array_equal(stage.conv2(y), y)


def test_whitened_patches_are_uncorrelated():
    smooth = RNG.integers(0, 256, (40, 12, 12, 3)).astype(np.uint8)
    smooth = (smooth[:, 1:] // 2 + smooth[:, :-1] // 2).astype(np.uint8)  # neighbours alike
    mean, std = (0.5, 0.45, 0.4), (0.25, 0.2, 0.3)
    kernel = filters(smooth, 2, 12, mean, std, epsilon=0.0)
    assert kernel.shape == (2, 2, 3, 24)
    np.testing.assert_array_equal(kernel[..., :12], -kernel[..., 12:])
    out = conv((smooth / 255.0 - mean) / std, kernel[..., :12].astype(np.float64), padding=0).reshape(-1, 12)
    np.testing.assert_allclose(out.T @ out / len(out), np.eye(12), atol=1e-4)
    shrunk = filters(smooth, 2, 12, mean, std, epsilon=0.1)
    ratio = np.linalg.norm(shrunk.reshape(12, 24), axis=0) / np.linalg.norm(kernel.reshape(12, 24), axis=0)
    assert np.all(ratio < 1) and ratio[0] > ratio[11]  # strongest direction first, and least affected
