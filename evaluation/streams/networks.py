"""A network whose normalisation layers are adapted: other statistics, other scales and shifts, in one forward pass.

theta     {layer: {"scale", "bias"}} of every BatchNorm, LayerNorm and GroupNorm, which adaptation trains
moments   {layer: {"mean", "var"}} of every BatchNorm: its stored statistics
"""

import functools
import re
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from models.norms import BatchNorm, GroupNorm, LayerNorm, channels_last, moments, wide
from training.states import TrainState

Tree = dict[str, dict[str, jax.Array]]
_LAST_STAGE = re.compile(r"^stages/3/")
_LAST_BLOCKS = re.compile(r"^(blocks/(9|10|11)/norm|norm$)")


class Statistics(NamedTuple):
    """The statistics of BatchNorm: keep x stored + (1 - keep) x batch, for mean and variance alike."""

    keep: float = 0.0  # share of the stored statistics
    unbiased: bool = False  # whether the batch's variance is divided by n - 1 instead of n
    # Share of the batch, with its unbiased variance, in the statistics that are stored after the pass; None stores the
    # statistics that normalised the batch.
    moves: float | None = None


BATCH = Statistics()
"""BN-1: the batch's own mean and biased variance."""


class _Mixing(BatchNorm):
    """BatchNorm by `Statistics`, which become its stored statistics. Gradients flow through the batch's part."""

    by = BATCH
    counted = None

    def __call__(self, x, train):
        del train
        axes, number = tuple(range(x.ndim - 1)), x.size // x.shape[-1]
        means = functools.partial(jnp.mean, axis=axes)
        if self.counted is not None:
            share = self.counted[...].reshape(-1, *(1,) * (x.ndim - 1)).astype(wide(x).dtype)
            number = jnp.maximum(share.sum(), 1) * (number // len(x))
            means = lambda values: (share * values).sum(axes) / number  # noqa: E731
        mean, var = moments(x, means, lambda values: channels_last(values, x.ndim))
        unbiased = var * (number / jnp.maximum(1, number - 1)).astype(var.dtype)
        old, keep = (self.mean[...], self.var[...]), self.by.keep
        used = keep * old[0] + (1 - keep) * mean, keep * old[1] + (1 - keep) * (unbiased if self.by.unbiased else var)
        after, moves = used, self.by.moves
        if moves is not None:
            after = (1 - moves) * old[0] + moves * mean, (1 - moves) * old[1] + moves * unbiased
        self.mean[...] = jax.lax.stop_gradient(after[0])
        self.var[...] = jax.lax.stop_gradient(after[1])
        return _normalised(wide(x), *used, self).astype(self.dtype)


class _Stored(BatchNorm):
    """BatchNorm by its stored statistics, in the precision of its input."""

    def __call__(self, x, train):
        del train
        values = wide(x)
        return _normalised(values, self.mean[...], self.var[...], self).astype(self.dtype)


def _normalised(x, mean, var, layer):
    factor = layer.scale[...] * jax.lax.rsqrt(var + layer.epsilon)
    shift = layer.bias[...] - mean * factor
    return x * channels_last(factor, x.ndim) + channels_last(shift, x.ndim)


class Weights(NamedTuple):
    """Arrays of a network that adaptation does not change."""

    params: Any
    statistics: Any

    @classmethod
    def of(cls, state: TrainState) -> "Weights":
        return cls(state.params, state.statistics)


def norms(model: nnx.Module) -> list[tuple[str, Any]]:
    """Lists (name, layer) of the normalisation layers of a model."""
    kinds = (BatchNorm, LayerNorm, GroupNorm)
    return [("/".join(map(str, path)), node) for path, node in nnx.iter_graph(model) if isinstance(node, kinds)]


def theta_of(graphdef: nnx.GraphDef, weights: Weights) -> Tree:
    """Reads scale and bias of every normalisation layer."""
    layers = norms(nnx.merge(graphdef, *weights, copy=True))
    return {name: {"scale": layer.scale[...], "bias": layer.bias[...]} for name, layer in layers}


def moments_of(graphdef: nnx.GraphDef, weights: Weights) -> Tree:
    """Reads the stored statistics of every BatchNorm; {} of a network that has none."""
    return _moments(norms(nnx.merge(graphdef, *weights, copy=True)))


def _moments(layers):
    return {
        name: {"mean": layer.mean[...], "var": layer.var[...]} for name, layer in layers if isinstance(layer, BatchNorm)
    }


def without_last(theta: Tree) -> Tree:
    """Leaves out the layers that SAR does not adapt: the fourth and last stage of a ResNet, blocks 9 to 11 and the last
    LayerNorm of a ViT of 12 blocks. Of other networks it adapts all.
    """
    if any(name.startswith("stages/4/") for name in theta):
        return theta
    last = _LAST_BLOCKS if "blocks/11/norm1" in theta else _LAST_STAGE
    return {name: layer for name, layer in theta.items() if not last.match(name)}


def forward(
    graphdef: nnx.GraphDef,
    weights: Weights,
    images: jax.Array,
    theta: Tree,
    moments: Tree | None = None,
    statistics: Statistics | None = None,
    counted: jax.Array | None = None,
) -> tuple[jax.Array, dict[str, jax.Array], Tree]:
    """Runs the network in evaluation mode.

    Args:
      graphdef, weights: the network.
      images: float or uint8 [N, H, W, 3].
      theta: scales and biases; layers that are not in it keep their own.
      moments: stored moments of BatchNorm; None takes the network's own.
      statistics: statistics of BatchNorm; None takes its `moments`.
      counted: bool [N], the images that count as the batch; None counts all.

    Returns:
      (logits [N, C], features, moments after the pass).
    """
    model = nnx.merge(graphdef, *weights, copy=True)
    layers = norms(model)
    for name, layer in layers:
        if name in theta:
            layer.scale[...] = theta[name]["scale"]
            layer.bias[...] = theta[name]["bias"]
        if isinstance(layer, BatchNorm):
            if moments is not None:
                layer.mean[...] = moments[name]["mean"]
                layer.var[...] = moments[name]["var"]
            layer.__class__ = _Stored if statistics is None else _Mixing  # in this copy only
            if statistics is not None:
                layer.by = statistics
                if counted is not None:
                    layer.counted = nnx.Variable(counted)
    logits, features = model(images, train=False)
    return logits, features, _moments(layers)
