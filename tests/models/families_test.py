"""What is special to a family: the groups that CondenseNets learn, DenseNets in little memory, the fast network's start."""

import functools
import itertools
import math
import operator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import models
from models import condensenet
from models.condensenet import CondenseNet, convert
from models.layers import Conv, Options
from models.norms import BatchNorm
from tests.models import tiny
from tests.models.forward_test import randomised
from tests.models.reference import conv, max_pool
from tests.refusing import refuses
from training import states, steps
from training.states import whitening_filters

RNG = np.random.default_rng(0)


def small_conv(c_in, c_out, groups):
    rng = np.random.default_rng(1)
    conv = partial(Conv, rng=rng, dtype=jnp.float32)
    return condensenet.LearnedConv(c_in, c_out, groups, conv=conv, norm=partial(BatchNorm, rng=rng))


def small(groups=2, **changed):
    given = {"groups": groups, "converted": False, "stages": ((2, 4),), "head_share": 1}
    return CondenseNet(5, Options(np.random.default_rng(1), jnp.float32), **given | changed)


def dropped(kernel, mask, number):
    """Drops from each group the `number` remaining inputs with the smallest sums of |w|, one by one."""
    mask = mask.copy()
    for group in range(mask.shape[1]):
        sums = np.abs(kernel[:, group :: mask.shape[1]]).sum(1)
        for _ in range(number):
            left = np.flatnonzero(mask[:, group])
            mask[left[sums[left].argmin()], group] = 0
    return mask


def test_each_group_drops_its_smallest_inputs_when_they_are_due():
    """Four groups of eight inputs: three times two of them, at a sixth, a third and a half."""
    module, expected = small_conv(8, 12, 4), np.ones((8, 4), np.float32)
    graphdef, state = nnx.split(module)

    @jax.jit
    def condensed(state, step):
        module = nnx.merge(graphdef, state)
        condensenet.condense(module, step, 60)
        return nnx.state(module)

    for step, number in ((0, 0), (9, 0), (10, 2), (11, 0), (20, 2), (29, 0), (30, 2), (59, 0)):
        state["conv"]["kernel"][...] = jnp.asarray(RNG.normal(size=(1, 1, 8, 12)), jnp.float32)
        expected = dropped(np.asarray(state["conv"]["kernel"][...])[0, 0], expected, number)
        state = condensed(state, jnp.int32(step))
        np.testing.assert_array_equal(state["mask"][...], expected, err_msg=str(step))
    assert (expected.sum(0) == 2).all()


def test_the_lasso_sums_norms_over_groups_until_all_is_dropped():
    module = small_conv(4, 6, 2)
    module.mask[...] = jnp.asarray([[1, 1], [0, 1], [1, 0], [1, 1]], jnp.float32)
    kernel = np.asarray(module.conv.kernel[...], np.float64)[0, 0]
    norms = [[np.sqrt((kernel[i, g::2] ** 2).sum()) for g in range(2)] for i in range(4)]
    np.testing.assert_allclose(module.lasso(), (np.array(norms) * np.asarray(module.mask[...])).sum(), rtol=1e-5)
    module.mask[...] = jnp.asarray([[1, 1], [0, 1], [1, 0], [0, 0]], jnp.float32)
    assert condensenet.group_lasso(module) == 0


def test_the_converted_network_computes_what_the_trained_one_does():
    model = randomised(small())
    refuses(lambda: convert(model), "8; train the network")
    condensenet.condense(model, 1, 2)
    images = jnp.asarray(RNG.random((2, 8, 8, 3)), jnp.float32)
    forward = nnx.jit(lambda model, images: model(images, train=False))
    (expected, features), (found, _) = forward(model, images), forward(convert(model, 1), images)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * float(jnp.abs(expected).max()))
    pruned = convert(model)
    kept = np.sort(np.asarray(pruned.head_read.index[...]))
    kernel = np.asarray(model.head.kernel[...])
    assert kept.shape == (8,) and set(kept) == set(np.abs(kernel).sum(1).argsort()[-8:])
    answers = features["penultimate"][:, kept] @ kernel[kept] + np.asarray(model.head.bias[...])[None]
    read = features["penultimate"][:, pruned.head_read.index[...]]
    np.testing.assert_allclose(
        read @ pruned.head.kernel[...] + pruned.head.bias[...][None], answers, rtol=1e-4, atol=1e-4
    )


@pytest.mark.slow
def test_training_condenses_and_lowers_the_loss():
    """On images whose brightest colour is the label: after half of the steps the groups have dropped
    what they drop, and the lasso is part of the loss until then."""
    labels, number = jnp.arange(15) % 3, 40
    images = jnp.asarray(0.6 * RNG.random((15, 16, 16, 3)), jnp.float32)
    images = images.at[jnp.arange(15), :, :, labels].add(0.4)
    graphdef, params, rest = nnx.split(small(groups=4), nnx.Param, ...)
    assert condensenet.has_masks(rest) and not condensenet.has_masks(params)
    optimizer = optax.sgd(0.2)
    state = states.initial_state(params, rest, optimizer)
    block = jax.jit(steps.train_block, static_argnums=(0, 1), static_argnames=("condense_steps",))
    many = jnp.stack([images] * number), jnp.stack([labels] * number)
    after, metrics = block(graphdef, optimizer, state, *many, jax.random.key(0), condense_steps=number)
    masks = [variable[...] for path, variable in nnx.to_flat_state(after.statistics) if path[-1] == "mask"]
    assert len(masks) == 2 and all((mask.sum(0) == len(mask) // 4).all() for mask in masks if mask.shape[1:] == (4,))
    _, plain = block(graphdef, optimizer, state, *many, jax.random.key(0))
    lasso = condensenet.LASSO * condensenet.group_lasso(nnx.merge(graphdef, params, rest))
    np.testing.assert_allclose(metrics["loss"][0] - plain["loss"][0], lasso, rtol=0.05)
    assert metrics["loss"][-1] < 0.8 * metrics["loss"][0] and np.isfinite(metrics["loss"]).all()


# DenseNets: the same numbers, running statistics moved once, less kept for the backward pass.
SQUARES = RNG.random((3, 16, 16, 3)).astype(np.float32)


def loss_of(monkeypatch, memory_efficient, train=True):
    """(params -> (loss, (features, statistics)), params) of the same network, either way."""
    model = tiny.build(monkeypatch, "cifar_densenet", 5, memory_efficient=memory_efficient)
    graphdef, params, rest = nnx.split(model, nnx.Param, ...)

    def loss(params):
        model = nnx.merge(graphdef, params, rest, copy=True)
        logits, features = model(jnp.asarray(SQUARES), train)
        return (jax.nn.log_softmax(logits)[:, 2] ** 2).mean(), (features, nnx.split(model, nnx.Param, ...)[2])

    return loss, params


@pytest.mark.parametrize("train", [False, True])
def test_outputs_gradients_and_statistics_are_equal(train, monkeypatch):
    results = []
    for memory_efficient in (False, True):
        loss, params = loss_of(monkeypatch, memory_efficient, train)
        results.append(jax.jit(jax.value_and_grad(loss, has_aux=True))(params))
    (_, (_, plain)), _ = results[0]
    (_, (_, efficient)), gradients = results[1]
    assert jax.tree.structure(plain) == jax.tree.structure(efficient)
    largest = max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(gradients))
    for one, other in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5 * largest)
    moved = [path for path, leaf in nnx.to_flat_state(efficient) if path[-1] == "mean" and np.abs(leaf[...]).max() > 0]
    assert len(moved) == (22 if train else 1)  # stem 1, layers 8 x 2, transitions 3, last 1; and the input's mean


def kept_bytes(loss, params):
    """Size of what the backward pass reads, without parameters, as JAX would keep it."""
    pull = jax.eval_shape(lambda p: jax.vjp(lambda q: loss(q)[0], p)[1], params)
    return sum(
        leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(pull) if leaf.ndim == 4 and leaf.shape[0] == 3
    )


def test_what_is_kept_for_the_backward_pass_grows_with_the_layers_not_with_their_square(monkeypatch):
    network, kept = tiny.NETWORKS["cifar_densenet"][0], {}
    for layers in (6, 12):
        deeper = partial(network, block_sizes=(layers, 1, 1, 1))
        monkeypatch.setitem(tiny.NETWORKS, "cifar_densenet", (deeper, 16))
        for efficient in (False, True):
            kept[layers, efficient] = kept_bytes(*loss_of(monkeypatch, efficient))
    assert kept[12, True] < 2 * kept[6, True]
    assert kept[12, False] > 2.4 * kept[6, False]
    assert kept[12, True] < 0.4 * kept[12, False]


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
    geometry = {"stride": 2, "padding": 1} if name == "fast_cifar_cpu" else {"padding": 0}
    x = gelu(conv(x, leaf("whitening"), **geometry) + leaf("whitening_bias"))
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
    kernel = whitening_filters(smooth, 2, 12, mean, std, epsilon=0.0)
    assert kernel.shape == (2, 2, 3, 24)
    np.testing.assert_array_equal(kernel[..., :12], -kernel[..., 12:])
    out = conv((smooth / 255.0 - mean) / std, kernel[..., :12].astype(np.float64), padding=0).reshape(-1, 12)
    np.testing.assert_allclose(out.T @ out / len(out), np.eye(12), atol=1e-4)
    shrunk = whitening_filters(smooth, 2, 12, mean, std, epsilon=0.1)
    ratio = np.linalg.norm(shrunk.reshape(12, 24), axis=0) / np.linalg.norm(kernel.reshape(12, 24), axis=0)
    assert np.all(ratio < 1) and ratio[0] > ratio[11]  # strongest direction first, and least affected
