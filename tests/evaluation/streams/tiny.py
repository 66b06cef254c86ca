"""The network of `reference` as a Flax module, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from evaluation.streams.networks import Weights
from evaluation.streams.tent import Start
from models.norms import BatchNorm
from tests.evaluation.streams import reference


class Tiny(nnx.Module):
    def __init__(self, network, dtype=jnp.float64):
        weights, theta, moments = network
        rng = np.random.default_rng(0)
        for name, channels in reference.NORMS.items():
            layer = BatchNorm(channels, rng=rng, dtype=dtype)
            for field, value in (theta[name] | moments[name]).items():  # new ones: an assignment keeps their float32
                setattr(layer, field, type(getattr(layer, field))(jnp.asarray(value, dtype)))
            setattr(self, name, layer)
        for name, array in weights.items():
            setattr(self, name, nnx.Param(jnp.asarray(array, dtype)))

    def __call__(self, images, train, key=None):
        x = nnx.relu(self.first(images, train) @ self.kernel[...])
        penultimate = self.second(x, train).mean((1, 2))
        return penultimate @ self.head[...] + self.bias[...][None], {"penultimate": penultimate}


def split(network, dtype=jnp.float64):
    """(graphdef, Weights)."""
    graphdef, params, statistics = nnx.split(Tiny(network, dtype), nnx.Param, ...)
    return graphdef, Weights(params, statistics)


def batches(number=5, size=7, side=3, seed=1):
    """Batches that differ in mean and spread, as float64 images."""
    rng = np.random.default_rng(seed)
    return [
        rng.normal(0.3 * k, 1 + 0.3 * k, (size, side, side, 3)) + rng.normal(0, 0.5, (size, 1, 1, 3))
        for k in range(number)
    ]


def compare(method, network, given, expected, source=None, tolerance=1e-9, moved=0.0):
    """Compares the logits of every batch with the expected ones, and asks that the method's updates move the last batch's
    by more than `moved`; returns (logits, state).
    """
    logits, state = run(method, network, given, source=source)
    for found, one in zip(logits, expected, strict=True):
        np.testing.assert_allclose(found, one, rtol=tolerance, atol=tolerance)
    if moved:
        assert np.abs(logits[-1] - reference.Pass(network, given[-1], keep=0.0).logits).max() > moved
    return logits, state


def run(method, network, given, seed=0, source=None):
    """Logits of every batch, one step each, and the last state; in float64."""
    with jax.enable_x64(True):
        graphdef, weights = split(network)
        step = jax.jit(lambda state, x, key: method.step(graphdef, weights, state, x, key))
        start = Start(reference.CLASSES, given[0].shape, source, given[0].dtype)
        state, logits = method.init(graphdef, weights, start), []
        for number, x in enumerate(given):
            key = jax.random.fold_in(jax.random.key(seed), number)
            state, found = step(state, jnp.asarray(x), key)
            logits.append(np.asarray(found))
        return logits, jax.tree.map(np.asarray, state)
