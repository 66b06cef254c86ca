"""Every method with its published settings in the scan over a stream: state and types go round, on uint8 images."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import models
from evaluation.streams import methods, run
from evaluation.streams.networks import Weights
from evaluation.streams.tent import Start

SHAPE = (2, 4, 16, 16, 3)  # two batches of four images
WITHOUT_BATCH_NORM = ("source", "tent", "lame", "eta", "eata", "sar", "rotta", "roid")


@functools.cache
def network(name):
    options = {"image_size": 16} if "vit" in name else {}
    graphdef, params, statistics = nnx.split(models.build(name, 5, **options), nnx.Param, ...)
    return graphdef, Weights(params, statistics)


def scan(name, method, images, weights):
    graphdef, _ = network(name)
    source = images if method.needs_source else None
    first = method.init(graphdef, weights, Start(5, SHAPE[1:], source))
    flags = jnp.array([2, 1]), jnp.array([True, False])
    return run._scan(graphdef, method, False, weights, first, first, images, *flags, jax.random.key(0), np.int32(0))


CASES = [("small_resnet", name) for name in methods.names()] + [("small_vit", name) for name in WITHOUT_BATCH_NORM]

QUICK = (
    *[("small_resnet", name) for name in ("eata", "rotta", "roid")],
    ("small_vit", "sar"),
)  # of every kind of state


@pytest.mark.parametrize(
    "net, name", [pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in CASES]
)
def test_the_state_goes_round(net, name):
    images = jax.ShapeDtypeStruct(SHAPE, np.uint8)
    method = methods.make(name, 4, 16, 5)
    state, answers, finite = jax.eval_shape(functools.partial(scan, net, method), images, network(net)[1])
    assert answers.shape == SHAPE[:2] and answers.dtype == np.int32 and finite.shape == (2,)
    assert ("theta" in state) == (name not in ("source", "bn1", "bn_alpha", "bn_ema", "lame"))


@pytest.mark.slow
@pytest.mark.parametrize("net, name", CASES)
def test_answers_are_finite_and_the_state_moves(net, name):
    images = jnp.asarray(np.random.default_rng(0).integers(0, 256, SHAPE), jnp.uint8)
    method = methods.make(name, 4, 16, 5)
    state, answers, finite = scan(net, method, images, network(net)[1])
    assert finite.all() and answers.min() >= 0 and answers.max() < 5
    if name in ("tent", "roid", "bn_ema"):
        first = method.init(network(net)[0], network(net)[1], Start(5, SHAPE[1:], None))
        moved = jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), state, first)
        assert max(jax.tree.leaves(moved)) > 0
