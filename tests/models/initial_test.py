"""Initial values: spread and limits of each rule, which rule each family follows, and modules
without values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import models
from models import layers
from models.layers import Conv, Linear
from tests.models import tiny

SHAPE = (3, 3, 32, 400)  # fan_in 288, fan_out 3600
DEVIATIONS = {"he": (2 / 3600) ** 0.5, "he_in": (2 / 288) ** 0.5, "small": 0.01}
BOUNDS = {"he_uniform": (6 / 288) ** 0.5, "lecun": 288**-0.5, "pytorch": 288**-0.5, "xavier": (6 / 3888) ** 0.5}


@pytest.mark.parametrize("rule", DEVIATIONS)
def test_normal_rules(rule):
    values = layers.initial_kernel(np.random.default_rng(0), SHAPE, rule)
    assert values.dtype == np.float32 and values.shape == SHAPE
    np.testing.assert_allclose(values.std(), DEVIATIONS[rule], rtol=0.01)
    np.testing.assert_allclose((values**4).mean() / values.var() ** 2, 3, rtol=0.05)  # kurtosis of the normal
    assert not layers.initial_bias(np.random.default_rng(0), SHAPE, rule).any()


@pytest.mark.parametrize("rule", BOUNDS)
def test_uniform_rules(rule):
    values, bound = layers.initial_kernel(np.random.default_rng(0), SHAPE, rule), BOUNDS[rule]
    assert values.dtype == np.float32 and values.shape == SHAPE
    assert 0.999 * bound < values.max() <= bound * (1 + 1e-6) and -bound * (1 + 1e-6) <= values.min() < -0.999 * bound
    np.testing.assert_allclose(values.std(), bound / 3**0.5, rtol=0.01)
    bias = layers.initial_bias(np.random.default_rng(0), SHAPE, rule)
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


@pytest.mark.parametrize("name", ["small_resnet", "wrn_16_4", "squeezenet1_1"])
@pytest.mark.parametrize("init", ["he", "xavier"])
def test_modules_without_values_have_the_shapes_of_real_ones(name, init):
    graph, real = nnx.split(models.build(name, 10, init=init))
    abstract_graph, abstract = nnx.split(models.abstract(name, 10, init=init))
    assert abstract_graph == graph
    assert jax.tree.structure(abstract) == jax.tree.structure(real)
    for one, other in zip(jax.tree.leaves(abstract), jax.tree.leaves(real)):
        assert isinstance(one, jax.ShapeDtypeStruct) and (one.shape, one.dtype) == (other.shape, other.dtype)
        assert other.dtype == jnp.float32
