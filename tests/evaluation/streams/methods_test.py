"""Every update against NumPy with gradients by hand, in float64, at rates that move the logits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import models
from evaluation.streams import methods, networks, tent
from tests.evaluation.streams import reference, tiny

NETWORK = reference.drawn()
BATCHES = tiny.batches()
RATE = 0.1


def assert_same(method, expected, given=BATCHES, moved=0.05):
    """The same logits in float64, and at the end far from those without the method's updates."""
    logits, state = tiny.run(method, NETWORK, given)
    expected = list(expected)
    for found, one in zip(logits, expected, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-9, atol=1e-9)
    if moved:
        plain = reference.Pass(NETWORK, given[-1], keep=0.0).logits
        assert np.abs(logits[-1] - plain).max() > moved
    return state


def test_source_uses_the_stored_statistics():
    assert_same(tent.Method(), [reference.Pass(NETWORK, x).logits for x in BATCHES])


def test_bn1_uses_the_batch():
    assert_same(tent.BatchStatistics(), [reference.Pass(NETWORK, x, keep=0.0).logits for x in BATCHES], moved=0)


@pytest.mark.parametrize("alpha", [0.1, 0.7, 1.0])
def test_bn_alpha_mixes_with_the_unbiased_variance(alpha):
    expected = [reference.Pass(NETWORK, x, keep=1 - alpha, unbiased=True).logits for x in BATCHES]
    assert_same(tent.MixedStatistics(alpha), expected, moved=0)


def test_bn_alpha_of_0_is_the_source():
    expected = [reference.Pass(NETWORK, x).logits for x in BATCHES]
    assert_same(tent.MixedStatistics(0.0), expected, moved=0)


def test_bn_ema_moves_the_stored_statistics_then_predicts():
    state = assert_same(tent.MovingStatistics(), reference.bn_ema(NETWORK, BATCHES))
    assert np.abs(state["moments"]["first"]["mean"] - NETWORK[2]["first"]["mean"]).max() > 0.05


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (tent.Descent("adam", RATE), lambda: reference.Adam(RATE)),
        (tent.Descent("nesterov", RATE), lambda: reference.Sgd(RATE, True)),
        (tent.Descent("sgd", RATE), lambda: reference.Sgd(RATE, False)),
    ],
)
def test_tent_steps_on_the_mean_entropy_after_it_predicts(ours, theirs):
    assert_same(tent.Tent(ours), reference.tent(NETWORK, BATCHES, theirs()))


def test_tent_without_a_rate_is_bn1_and_its_first_batch_is_always():
    logits, _ = tiny.run(tent.Tent(tent.Descent("adam", 0.0)), NETWORK, BATCHES)
    for found, x in zip(logits, BATCHES, strict=True):
        np.testing.assert_allclose(found, reference.Pass(NETWORK, x, keep=0.0).logits, rtol=1e-10)


def test_entropy_and_its_gradient():
    """The sheet's logits give a gradient; equal logits of all classes give none."""
    with jax.enable_x64(True):
        z = jnp.array([2.0, 1.0, 0.0])
        value, slope = jax.value_and_grad(tent.entropy)(z)
        assert abs(float(value) - 0.832396) < 1e-6
        np.testing.assert_allclose(slope, [-0.282587, 0.140770, 0.141817], atol=1e-6)
        value, slope = jax.value_and_grad(tent.entropy)(jnp.full(5, 3.0))
        assert abs(float(value) - np.log(5)) < 1e-12
        np.testing.assert_allclose(slope, 0, atol=1e-12)


@pytest.mark.parametrize("name", ["bn1", "bn_alpha", "bn_ema"])
def test_a_network_without_batch_norm_is_refused_where_it_is_needed(name):

    graphdef, params, statistics = nnx.split(models.build("small_vit", 3), nnx.Param, ...)
    weights = networks.Weights(params, statistics)
    with pytest.raises(ValueError, match=f"expected a network with BatchNorm for {name}, found none; tent"):
        methods.make(name, 8, 32, 3).check(graphdef, weights)
    methods.make("tent", 8, 32, 3).check(graphdef, weights)
    theta = networks.theta_of(graphdef, weights)
    assert len(theta) == 9 and "blocks/3/norm2" in theta


def test_published_settings_follow_the_size_and_an_unknown_method_is_named():
    with pytest.raises(ValueError, match=r"expected a method among source, .* found 'tnet'; did you mean 'tent'"):
        methods.make("tnet", 200, 32, 10)
    theta = {"a": {"scale": jnp.ones(1), "bias": jnp.zeros(1)}}
    gradient = jax.tree.map(jnp.ones_like, theta)
    for side, batch, first in ((32, 200, 0.001), (224, 64, 0.00025 * 1.9), (224, 1, 0.00025 * 2 / 64 * 1.9)):
        optimizer = methods.make("tent", batch, side, 10).optimizer
        moved, _ = optimizer.step(theta, gradient, optimizer.init(theta))
        np.testing.assert_allclose(moved["a"]["bias"], -first, rtol=1e-5)
