"""The shared layers: initial values of each rule and family, modules without values, and pooling against NumPy loops."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import models
from models import layers
from models.layers import Conv, Linear, adaptive_mean_pool, max_pool, mean_pool
from tests.models import reference, tiny

SHAPE = (3, 3, 32, 400)  # fan_in 288, fan_out 3600
DEVIATIONS = {"he": (2 / 3600) ** 0.5, "he_in": (2 / 288) ** 0.5, "small": 0.01}
BOUNDS = {"he_uniform": (6 / 288) ** 0.5, "lecun": 288**-0.5, "pytorch": 288**-0.5, "xavier": (6 / 3888) ** 0.5}


@pytest.mark.parametrize("rule", [*DEVIATIONS, *BOUNDS])
def test_initial_values_follow_their_rule(rule):
    values = layers.initial_kernel(np.random.default_rng(0), SHAPE, rule)
    bias = layers.initial_bias(np.random.default_rng(0), SHAPE, rule)
    assert values.dtype == np.float32 and values.shape == SHAPE
    if rule in DEVIATIONS:
        np.testing.assert_allclose(values.std(), DEVIATIONS[rule], rtol=0.01)
        np.testing.assert_allclose((values**4).mean() / values.var() ** 2, 3, rtol=0.05)  # kurtosis of the normal
        assert not bias.any()
        return
    bound = BOUNDS[rule]
    assert 0.999 * bound < values.max() <= bound * (1 + 1e-6) and -bound * (1 + 1e-6) <= values.min() < -0.999 * bound
    np.testing.assert_allclose(values.std(), bound / 3**0.5, rtol=0.01)
    if rule == "pytorch":
        assert 0.9 * bound < np.abs(bias).max() <= bound * (1 + 1e-6)
    else:
        np.testing.assert_array_equal(bias, np.float32(0.01 if rule == "xavier" else 0))


def std(layer):
    return np.asarray(layer.kernel[...]).std()


def test_each_family_starts_by_torchvisions_rule(monkeypatch):
    densenet = tiny.build(monkeypatch, "densenet")
    np.testing.assert_allclose(std(densenet.stem), (2 / 147) ** 0.5, rtol=0.05)  # 7 x 7 x 3 inputs
    np.testing.assert_allclose(std(densenet.blocks[2][0].conv2), (2 / 288) ** 0.5, rtol=0.05)  # 3 x 3 x 4 growth
    assert np.abs(np.asarray(densenet.head.kernel[...])).max() <= densenet.head.kernel.shape[0] ** -0.5

    grouped = tiny.build(monkeypatch, "resnext").stages[3][0].conv2  # 1024 channels; fan-out is not divided by groups
    assert grouped.kernel.shape == (3, 3, 32, 1024)
    np.testing.assert_allclose(std(grouped), (2 / 9216) ** 0.5, rtol=0.01)

    vgg = tiny.build(monkeypatch, "vgg")
    np.testing.assert_allclose(std(vgg.stages[4][0].conv), (2 / 4608) ** 0.5, rtol=0.01)
    np.testing.assert_allclose([std(vgg.hidden[0]), std(vgg.hidden[1])], 0.01, rtol=0.1)

    alexnet = tiny.build(monkeypatch, "alexnet")
    for layer, fan_in in ((alexnet.convs[1], 25 * 64), (alexnet.hidden[0], 256 * 36)):
        for values in (layer.kernel, layer.bias):
            found = np.abs(np.asarray(values[...])).max()
            assert 0.8 * fan_in**-0.5 < found <= fan_in**-0.5 * (1 + 1e-6)

    squeezenet = tiny.build(monkeypatch, "squeezenet1_0")
    found = np.abs(np.asarray(squeezenet.fires[7].expand3x3.kernel[...])).max()
    assert 0.999 * (6 / 576) ** 0.5 < found <= (6 / 576) ** 0.5 * (1 + 1e-6)
    np.testing.assert_allclose(std(squeezenet.head), 0.01, rtol=0.05)


@pytest.mark.parametrize(
    "init, kernel_of_conv, kernel_of_linear", [("xavier", "xavier", "xavier"), ("goyal", "he", "small")]
)
def test_xavier_and_goyal_mean_the_same_everywhere(init, kernel_of_conv, kernel_of_linear, monkeypatch):
    for name in ("cifar_densenet", "resnext", "vgg_bn", "alexnet", "squeezenet1_1"):
        model = tiny.build(monkeypatch, name, init=init)
        for _, layer in nnx.iter_graph(model):
            if isinstance(layer, Conv | Linear) and layer.kernel.size > 5000 and layer is not model.head:
                shape = layer.kernel.shape
                rule = kernel_of_conv if isinstance(layer, Conv) else kernel_of_linear
                expected = layers.initial_kernel(np.random.default_rng(0), shape, rule).std()
                np.testing.assert_allclose(std(layer), expected, rtol=0.1, err_msg=f"{name} {shape}")


@pytest.mark.parametrize("name, init", [("small_resnet", "he"), ("wrn_16_4", "xavier"), ("squeezenet1_1", "he")])
def test_modules_without_values_have_the_shapes_of_real_ones(name, init):
    graph, real = nnx.split(models.build(name, 10, init=init))
    abstract_graph, abstract = nnx.split(models.abstract(name, 10, init=init))
    assert abstract_graph == graph
    assert jax.tree.structure(abstract) == jax.tree.structure(real)
    for one, other in zip(jax.tree.leaves(abstract), jax.tree.leaves(real)):
        assert isinstance(one, jax.ShapeDtypeStruct) and (one.shape, one.dtype) == (other.shape, other.dtype)
        assert other.dtype == jnp.float32


def maps(*size, channels=3):
    return np.random.default_rng(0).standard_normal((2, *size, channels)).astype(np.float32)


@pytest.mark.parametrize("size, stride", [(2, 2), (3, 2), (1, 2), (3, 1)])
@pytest.mark.parametrize("ceil", [False, True])
def test_max_pool(size, stride, ceil):
    broken = [(2, 5)] if (size, stride, ceil) == (3, 2, True) else []  # one broken window is enough
    for shape in ((3, 4), (5, 6), (7, 12), *broken):
        x = maps(*shape)
        np.testing.assert_array_equal(max_pool(x, size, stride, ceil=ceil), reference.max_pool(x, size, stride, ceil))


@pytest.mark.parametrize(
    "full, padding, ceil, expected",
    [(109, 0, True, 54), (109, 0, False, 54), (6, 0, True, 3), (6, 0, False, 2), (112, 1, False, 56), (5, 1, True, 3)],
)
def test_number_of_windows(full, padding, ceil, expected):
    """(full + 2 padding - 3) / 2 + 1, rounded; a window in the upper padding alone is dropped."""
    x = -1 - np.abs(maps(full, full))
    y = max_pool(x, 3, 2, padding, ceil=ceil)
    assert y.shape == (2, expected, expected, 3)
    assert y.max() < 0  # the padding never wins
    np.testing.assert_array_equal(y[:, 0, 0], x[:, : 3 - padding, : 3 - padding].max((1, 2)))


def test_a_window_that_would_start_in_the_upper_padding_is_dropped():
    for full, stride, expected in ((4, 2, 3), (4, 3, 2), (2, 3, 1)):
        assert max_pool(maps(full, full), 2, stride, 1, ceil=True).shape == (2, expected, expected, 3)


@pytest.mark.parametrize("size", [1, 6, 7])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (6, 7), (13, 6), (14, 25)])
def test_adaptive_mean_pool(size, shape):
    x = maps(*shape)
    np.testing.assert_allclose(adaptive_mean_pool(x, size), reference.adaptive_mean_pool(x, size), rtol=1e-5, atol=1e-6)
    assert adaptive_mean_pool(jnp.asarray(x, jnp.bfloat16), size).dtype == jnp.bfloat16


def test_mean_pool_cuts_the_odd_rest():
    x = maps(5, 6)
    expected = (x[:, 0:4:2, ::2] + x[:, 1:4:2, ::2] + x[:, 0:4:2, 1::2] + x[:, 1:4:2, 1::2]) / 4
    np.testing.assert_allclose(mean_pool(x), expected, rtol=1e-5, atol=1e-6)


def test_maps_too_small_are_named():
    for pool, size, message in (
        (lambda x: max_pool(x, 3, 2), (2, 5), "3 pixels to pool, found (2, 5)"),
        (lambda x: max_pool(x, 3, 2, ceil=True), (5, 1), "2 pixels to pool, found (5, 1)"),
        (mean_pool, (1, 4), "2 pixels to halve, found (1, 4)"),
    ):
        with pytest.raises(ValueError, match=re.escape(f"expected maps of at least {message}")):
            pool(maps(*size))
