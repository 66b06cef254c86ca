"""The CPU convolution against `lax.conv_general_dilated`: values and both gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import models
from models.conv_cpu import conv2d, grouped_conv2d
from models.layers import convolve, path_of

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


def reference(images, kernel, strides, padding, groups=1):
    options = {"dimension_numbers": ("NHWC", "HWIO", "NHWC"), "feature_group_count": groups, "precision": "highest"}
    return lax.conv_general_dilated(images, kernel, strides, padding, **options)


def values_and_gradients(conv, images, kernel, *options):
    """Computes a convolution, and its gradients for a random cotangent, by one program."""

    @jax.jit
    def program(images, kernel):
        values, pull = jax.vjp(lambda x, w: conv(x, w, *options), images, kernel)
        cotangent = np.random.default_rng(4).standard_normal(values.shape).astype(np.float32)
        return values, pull(cotangent)

    return program(images, kernel)


def test_values_and_gradients_are_those_of_lax(case):
    expected, expected_gradients = values_and_gradients(reference, *case)
    found, gradients = values_and_gradients(conv2d, *case)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)
    for gradient, other in zip(gradients, expected_gradients):
        np.testing.assert_allclose(gradient, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [pytest.param(2, marks=pytest.mark.slow), 4])
def test_values_and_gradients_of_groups_are_those_of_lax_and_of_separate_convolutions(case, groups):
    images, kernel, strides, padding = case
    images, kernel = np.concatenate([images] * groups, -1), np.concatenate([kernel, *[2 * kernel] * (groups - 1)], -1)
    images = images + np.arange(images.shape[-1], dtype=np.float32) / 10  # no two channels are equal
    of_a_part = jax.jit(lambda x, w: reference(x, w, strides, padding))
    parts = zip(np.split(images, groups, -1), np.split(kernel, groups, -1))
    apart = np.concatenate([of_a_part(x, w) for x, w in parts], -1)
    (expected, expected_gradients), (found, gradients) = (
        values_and_gradients(conv, images, kernel, strides, padding, groups) for conv in (reference, grouped_conv2d)
    )
    for values in (expected, found):
        np.testing.assert_allclose(values, apart, rtol=1e-4, atol=1e-4)
    for gradient, other in zip(gradients, expected_gradients):
        np.testing.assert_allclose(gradient, other, rtol=1e-4, atol=1e-3)


def test_gradients_of_gradients_are_those_of_lax():
    shape, size, strides, padding = CASES["3x3 stride 2 odd"]
    rng = np.random.default_rng(5)
    images = rng.standard_normal((2, *shape[:3])).astype(np.float32)
    kernel = rng.standard_normal((*size, *shape[2:])).astype(np.float32)

    def penalty(conv):
        def loss(x, w):
            return (conv(x, w, strides, padding) ** 2).sum()

        return jax.jit(jax.grad(lambda w: (jax.grad(loss)(images, w) ** 2).mean()))(kernel)

    expected = penalty(reference)
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
    with pytest.raises(ValueError, match="expected conv 'auto', 'cpu' or 'xla', found 'fast'"):
        models.abstract("small_resnet", 2, conv="fast")
