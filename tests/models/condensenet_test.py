"""CondenseNets: what training drops, the group lasso, and the converted form."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from models import condensenet
from models.condensenet import CondenseNet, convert
from models.layers import Conv, Options
from models.norms import BatchNorm
from tests.models.forward_test import randomised
from training import states, steps

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
    with pytest.raises(ValueError, match="groups of 2 that read 4 of 8 inputs, found 8; train the network"):
        convert(model)
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
