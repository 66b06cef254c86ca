"""Networks as evaluation takes them: (graphdef, state) of any module, and two whose answers are known."""

import jax.numpy as jnp
from flax import nnx

from training.states import TrainState


class Table(nnx.Module):
    """Logits of a table [values, classes], for the value of the first pixel of an image."""

    def __init__(self, table):
        self.table = nnx.Param(jnp.asarray(table, jnp.float32))

    def __call__(self, images, train):
        return self.table[...][images[:, 0, 0, 0].astype(jnp.int32)], {}


class Known(nnx.Module):
    """Exit k is right about images whose first pixel is below 10 k, and as sure as `logit` says."""

    def __init__(self, several):
        self.logit, self.several = nnx.Param(jnp.float32(2)), several

    def __call__(self, images, train, key=None):
        level = images[:, 0, 0, 0].astype(jnp.float32)
        sure = [jnp.where(level < 10 * k, self.logit[...], 0.0) for k in (1, 2, 3)]
        exits = [jnp.stack([value, jnp.ones_like(value)], -1) for value in sure]
        return exits[-1], {"exits": jnp.stack(exits)} if self.several else {}


def split(model):
    """(graphdef, state) of a module, before any step."""
    graphdef, params, statistics = nnx.split(model, nnx.Param, ...)
    return graphdef, TrainState(jnp.zeros((), jnp.int32), params, statistics, ())


def merge(graphdef, state):
    """The module of such a pair."""
    return nnx.merge(graphdef, state.params, state.statistics)
