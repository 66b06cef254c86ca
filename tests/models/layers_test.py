"""The shared layers: initial values, modules without values, pooling against NumPy loops, the CPU's convolution."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

import models
from models import layers
from models.conv_cpu import conv2d, grouped_conv2d
from models.layers import Conv, Linear, adaptive_mean_pool, convolve, max_pool, mean_pool, path_of
from models.norms import BatchNorm
from tests.models import reference, tiny
from tests.refusing import refuses

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
    # In a map of two rows no window of three is whole; with `ceil` one is taken, cut off at the edge.
    small = [(2, 5)] if (size, stride, ceil) == (3, 2, True) else []
    for shape in ((3, 4), (5, 6), (7, 12), *small):
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


# The convolution of CPUs against `lax.conv_general_dilated`: values and both gradients.
CASES = {  # (H, W, C_in, C_out), kernel, stride, padding
    "3x3": ((8, 7, 5, 6), (3, 3), (1, 1), ((1, 1), (1, 1))),
    "3x3 even": ((8, 8, 4, 3), (3, 3), (1, 1), ((1, 1), (1, 1))),
    "3x3 valid": ((9, 8, 4, 3), (3, 3), (1, 1), ((0, 0), (0, 0))),
    "3x3 wide padding": ((5, 6, 3, 2), (3, 3), (1, 1), ((2, 2), (2, 2))),
    "3x3 stride 2": ((8, 8, 3, 4), (3, 3), (2, 2), ((1, 1), (1, 1))),
    "3x3 stride 2 odd": ((9, 7, 5, 6), (3, 3), (2, 2), ((1, 1), (1, 1))),
    "3x3 stride 2 same": ((8, 10, 3, 4), (3, 3), (2, 2), "SAME"),
    "3x3 stride 2, rows unused": ((8, 8, 3, 2), (3, 3), (2, 2), ((0, 0), (0, 0))),
    "3x3 stride 3": ((13, 12, 3, 2), (3, 3), (3, 3), ((0, 0), (2, 1))),
    "3x3 of 2x2 pixels": ((2, 2, 5, 6), (3, 3), (1, 1), ((1, 1), (1, 1))),
    "3x3 of one pixel": ((1, 1, 5, 6), (3, 3), (1, 1), ((1, 1), (1, 1))),
    "3x3 stride 2 of 2x1 pixels": ((2, 1, 3, 4), (3, 3), (2, 2), ((1, 1), (1, 1))),
    "7x7 stride 2": ((15, 16, 3, 4), (7, 7), (2, 2), ((3, 3), (3, 3))),
    "7x7": ((9, 10, 2, 3), (7, 7), (1, 1), "SAME"),
    "1x1": ((6, 5, 7, 3), (1, 1), (1, 1), ((0, 0), (0, 0))),
    "1x1 stride 2": ((9, 8, 4, 5), (1, 1), (2, 2), ((0, 0), (0, 0))),
    "1x1 stride 2 padded": ((6, 6, 4, 5), (1, 1), (2, 2), ((1, 0), (0, 1))),
    "2x3, strides 2 and 1": ((7, 8, 3, 4), (2, 3), (2, 1), ((0, 1), (1, 1))),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    (height, width, c_in, c_out), size, strides, padding = request.param
    if isinstance(padding, str):
        padding = tuple(lax.padtype_to_pads((height, width), size, strides, padding))
    rng = np.random.default_rng(3)
    images = rng.standard_normal((4, height, width, c_in)).astype(np.float32)
    kernel = rng.standard_normal((*size, c_in, c_out)).astype(np.float32)
    return images, kernel, strides, padding


def by_lax(images, kernel, strides, padding, groups=1):
    options = {"dimension_numbers": ("NHWC", "HWIO", "NHWC"), "feature_group_count": groups, "precision": "highest"}
    return lax.conv_general_dilated(images, kernel, strides, padding, **options)


def values_and_gradients(convolutions, images, kernel, *options):
    """Computes convolutions, and the gradients of each for a random cotangent, by one program."""

    def of_one(conv, images, kernel):
        values, pull = jax.vjp(lambda x, w: conv(x, w, *options), images, kernel)
        cotangent = np.random.default_rng(4).standard_normal(values.shape).astype(np.float32)
        return values, pull(cotangent)

    return jax.jit(lambda *arrays: [of_one(conv, *arrays) for conv in convolutions])(images, kernel)


def test_values_and_gradients_are_those_of_lax(case):
    (expected, expected_gradients), (found, gradients) = values_and_gradients((by_lax, conv2d), *case)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)
    for gradient, other in zip(gradients, expected_gradients):
        np.testing.assert_allclose(gradient, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [pytest.param(2, marks=pytest.mark.slow), 4])
def test_values_and_gradients_of_groups_are_those_of_lax_and_of_separate_convolutions(case, groups):
    images, kernel, strides, padding = case
    images, kernel = np.concatenate([images] * groups, -1), np.concatenate([kernel, *[2 * kernel] * (groups - 1)], -1)
    images = images + np.arange(images.shape[-1], dtype=np.float32) / 10  # no two channels are equal
    of_a_part = jax.jit(lambda x, w: by_lax(x, w, strides, padding))
    parts = zip(np.split(images, groups, -1), np.split(kernel, groups, -1))
    apart = np.concatenate([of_a_part(x, w) for x, w in parts], -1)
    (expected, expected_gradients), (found, gradients) = values_and_gradients(
        (by_lax, grouped_conv2d), images, kernel, strides, padding, groups
    )
    for values in (expected, found):
        np.testing.assert_allclose(values, apart, rtol=1e-4, atol=1e-4)
    for gradient, other in zip(gradients, expected_gradients):
        np.testing.assert_allclose(gradient, other, rtol=1e-4, atol=1e-3)


def test_values_and_gradients_of_one_kernel_a_channel_are_those_of_lax(case):
    images, kernel, strides, padding = case
    groups = images.shape[-1]
    kernel = np.random.default_rng(6).standard_normal((*kernel.shape[:2], 1, groups)).astype(np.float32)
    given = images, kernel, strides, padding, groups
    (expected, expected_gradients), (found, gradients) = values_and_gradients((by_lax, grouped_conv2d), *given)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)
    for gradient, other in zip(gradients, expected_gradients):
        np.testing.assert_allclose(gradient, other, rtol=1e-4, atol=1e-4)


def test_same_padding_is_tensorflows():
    """ceil(H / stride) results; zeros on both sides, an odd one at the end (tf.nn.convolution's documentation)."""
    for side, size, stride, before in ((8, 3, 2, 0), (7, 3, 2, 1), (8, 5, 2, 1), (15, 5, 2, 2), (6, 5, 1, 2)):
        layer = Conv(1, 1, size, stride=stride, padding="same", rng=np.random.default_rng(0))
        images = np.random.default_rng(1).random((1, side, side, 1), np.float32)
        wide = np.zeros((side + 2 * size, side + 2 * size))
        wide[before : before + side, before : before + side] = images[0, ..., 0]
        expected = [
            [(wide[i : i + size, j : j + size] * layer.kernel[..., 0, 0]).sum() for j in range(0, side, stride)]
            for i in range(0, side, stride)
        ]
        np.testing.assert_allclose(layer(images)[0, ..., 0], expected, rtol=1e-5, atol=1e-6)


def test_gradients_of_gradients_are_those_of_lax():
    shape, size, strides, padding = CASES["3x3 stride 2 odd"]
    rng = np.random.default_rng(5)
    images = rng.standard_normal((2, *shape[:3])).astype(np.float32)
    kernel = rng.standard_normal((*size, *shape[2:])).astype(np.float32)

    def penalty(conv):
        def loss(x, w):
            return (conv(x, w, strides, padding) ** 2).sum()

        return jax.jit(jax.grad(lambda w: (jax.grad(loss)(images, w) ** 2).mean()))(kernel)

    expected = penalty(by_lax)
    np.testing.assert_allclose(penalty(conv2d), expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_no_convolution_in_a_scanned_step_is_left_to_the_scalar_loop():
    """XLA runs a CPU convolution fast only where its dimensions are b01f_01io->b01f."""
    images, kernel = jnp.ones((4, 8, 8, 8)), jnp.ones((3, 3, 8, 8))

    def step(kernel, _):
        def loss(w):
            x = convolve(images, w, (1, 1), ((1, 1), (1, 1)), "cpu")
            return (convolve(x, w, (2, 2), ((1, 1), (1, 1)), "cpu") ** 2).sum()

        return kernel - jax.grad(loss)(kernel), None

    program = jax.jit(lambda w: lax.scan(step, w, None, 3)).lower(kernel).compile().as_text()
    labels = [line.split("dim_labels=")[1].split(",")[0] for line in program.splitlines() if " convolution(" in line]
    assert len(labels) == 5  # two forward, one input gradient, two weight gradients
    assert set(labels) == {"b01f_01io->b01f"}


def test_path_can_be_chosen(monkeypatch):
    images, kernel = jnp.ones((1, 4, 4, 2)), jnp.ones((3, 3, 2, 2))

    def uses_custom_vjp(path):
        program = jax.make_jaxpr(lambda x: convolve(x, kernel, (1, 1), ((1, 1), (1, 1)), path))(images)
        return "custom_vjp" in str(program)

    monkeypatch.delenv("JAXC_CONV", raising=False)
    assert uses_custom_vjp("cpu") and not uses_custom_vjp("xla")
    assert path_of("auto", jnp.float32) == ("cpu" if jax.default_backend() == "cpu" else "xla")
    assert path_of("auto", jnp.bfloat16) == "xla"
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(jax, "default_backend", lambda: "tpu")
        assert models.abstract("small_resnet", 2, dtype="float32").stem.conv == "xla"
    monkeypatch.setenv("JAXC_CONV", "xla")
    assert path_of("auto", jnp.float32) == "xla" and path_of("cpu", jnp.float32) == "cpu"
    groups = [convolve(jnp.ones((1, 4, 4, 4)), kernel, (1, 1), ((1, 1),) * 2, path, 2) for path in ("cpu", "xla")]
    np.testing.assert_allclose(*groups)
    refuses(lambda: models.abstract("small_resnet", 2, conv="fast"), "'fast'")


@pytest.mark.parametrize("groups", [1, 2])
def test_batch_norm_keeps_its_digits_far_from_zero(groups):
    """A float32 near 1000 is rounded to .00006, so their mean is known to about .001: .01 of the deviation of .1."""
    x = (1000 + 0.1 * maps(24, 24)).astype(np.float32)
    parts = x.astype(np.float64).reshape(groups, -1, 3)
    layer = BatchNorm(3, rng=None)
    layer.groups = groups
    graphdef, state = nnx.split(layer)

    def loss(x):
        y = nnx.merge(graphdef, state, copy=True)(x, train=True)
        return (y**3).sum(), y

    slope, y = jax.jit(jax.grad(loss, has_aux=True))(x)
    layer(jnp.asarray(x), train=True)
    np.testing.assert_allclose(layer.var[...], 0.9 + 0.1 * parts.var(1, ddof=1).mean(0), rtol=1e-5)
    hat = (parts - parts.mean(1, keepdims=True)) / np.sqrt(parts.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, hat.reshape(x.shape), atol=0.02)
    d = 3 * hat**2
    expected = d - d.mean(1, keepdims=True) - hat * (d * hat).mean(1, keepdims=True)
    expected = expected / np.sqrt(parts.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(slope, expected.reshape(x.shape), atol=0.02 * np.abs(expected).max())
