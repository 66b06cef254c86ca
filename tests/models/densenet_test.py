"""Memory-efficient DenseNets: the same numbers, running statistics moved once, less kept for the backward pass."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.models import tiny

IMAGES = np.random.default_rng(0).random((3, 16, 16, 3)).astype(np.float32)


def loss_of(monkeypatch, memory_efficient, train=True):
    """(params -> (loss, (features, statistics)), params) of the same network, either way."""
    model = tiny.build(monkeypatch, "cifar_densenet", 5, memory_efficient=memory_efficient)
    graphdef, params, rest = nnx.split(model, nnx.Param, ...)

    def loss(params):
        model = nnx.merge(graphdef, params, rest, copy=True)
        logits, features = model(jnp.asarray(IMAGES), train)
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
