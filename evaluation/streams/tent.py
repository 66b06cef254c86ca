"""The base class of all methods, the methods that change statistics, and TENT.

A `Method` makes a state, and maps (state, batch) to (state, logits). `prediction` says whether the logits were computed
before or after the step. Losses take nats; p is the softmax of the logits, H its entropy.
"""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from evaluation.streams import networks
from evaluation.streams.networks import BATCH, Statistics, Tree, Weights

BEFORE, AFTER, NONE = "before the update", "after the update", "no update"


class Start(NamedTuple):
    """The input of a method before the first batch."""

    classes: int  # C, number of logits
    shape: tuple[int, ...]  # (B, H, W, 3) of a batch
    source: jax.Array | None = None  # clean batches [M, B, H, W, 3]; None for methods that need none
    dtype: Any = np.uint8  # dtype of the images


@dataclasses.dataclass(frozen=True)
class Method:
    """The trained network, unchanged; base class of the other methods."""

    name: ClassVar[str] = "source"  # name of the method
    prediction: ClassVar[str] = NONE  # when the logits are computed
    needs_batch_norm: ClassVar[bool] = False  # whether a network without BatchNorm is refused
    needs_source: ClassVar[bool] = False  # whether the state is made with clean images
    statistics: ClassVar[Statistics | None] = None  # statistics by which BatchNorm normalises
    splits: ClassVar[bool] = True  # whether the cores of a CPU share a batch; else one device takes it whole

    def init(self, graphdef: nnx.GraphDef, weights: Weights, start: Start) -> Any:
        """Makes the state before the first batch."""
        return {}

    def step(
        self, graphdef: nnx.GraphDef, weights: Weights, state: Any, images: jax.Array, key: jax.Array
    ) -> tuple[Any, jax.Array]:
        """Predicts a batch [N, H, W, 3] and adapts to it: (state, logits [N, C])."""
        return state, self.predict(graphdef, weights, state, images)

    def predict(self, graphdef: nnx.GraphDef, weights: Weights, state: Any, images: jax.Array) -> jax.Array:
        """Predicts a batch by the network as last adapted, and adapts nothing."""
        theta = state.get("theta", {})
        return networks.forward(graphdef, weights, images, theta, statistics=self.statistics)[0]

    @property
    def settings(self) -> str:
        """Describes the hyper-parameters, for tables."""
        told = [field.name for field in dataclasses.fields(self) if field.metadata.get("told", True)]
        values = {name: getattr(self, name) for name in told}
        return ", ".join(v.label if isinstance(v, Descent) else f"{name} {v:g}" for name, v in values.items())

    def check(self, graphdef: nnx.GraphDef, weights: Weights) -> None:
        """Refuses (ValueError) a network without the layers that the method needs."""
        if self.needs_batch_norm and not networks.moments_of(graphdef, weights):
            raise ValueError(
                f"expected a network with BatchNorm for {self.name}, found none; tent, eta, sar and roid adapt LayerNorm "
                "and GroupNorm"
            )


@dataclasses.dataclass(frozen=True)
class BatchStatistics(Method):
    """BN-1: every BatchNorm by the mean and biased variance of the batch."""

    name: ClassVar[str] = "bn1"
    needs_batch_norm: ClassVar[bool] = True
    statistics: ClassVar[Statistics] = BATCH


@dataclasses.dataclass(frozen=True)
class MixedStatistics(Method):
    """BN-alpha: mean = (1 - a) source + a batch, and so the variance, the batch's divided by n - 1."""

    name: ClassVar[str] = "bn_alpha"
    needs_batch_norm: ClassVar[bool] = True
    alpha: float = 0.1

    def predict(self, graphdef, weights, state, images):
        return networks.forward(graphdef, weights, images, {}, statistics=Statistics(1 - self.alpha, True))[0]


@dataclasses.dataclass(frozen=True)
class MovingStatistics(Method):
    """BN-EMA: one pass moves the stored statistics by `momentum` towards the batch's, normalising by the batch; a second
    pass predicts by the stored ones.
    """

    name: ClassVar[str] = "bn_ema"
    prediction: ClassVar[str] = AFTER
    needs_batch_norm: ClassVar[bool] = True
    momentum: float = 0.1

    def init(self, graphdef, weights, start):
        return {"moments": networks.moments_of(graphdef, weights)}

    def step(self, graphdef, weights, state, images, key):
        by = Statistics(moves=self.momentum)
        _, _, moved = networks.forward(graphdef, weights, images, {}, state["moments"], by)
        return {"moments": moved}, self.predict(graphdef, weights, {"moments": moved}, images)

    def predict(self, graphdef, weights, state, images):
        return networks.forward(graphdef, weights, images, {}, state["moments"])[0]


class Descent(NamedTuple):
    """An optimiser of theta."""

    # `adam` (betas .9 and .999, epsilon 1e-8), `sgd` (momentum .9: b <- .9 b + g, step -rate b) or `nesterov`
    # (step -rate (g + .9 b)); no weight decay
    kind: str
    rate: float  # learning rate

    @property
    def label(self) -> str:
        words = {"adam": "Adam", "sgd": "SGD .9", "nesterov": "SGD .9 Nesterov"}
        return f"{words[self.kind]} {self.rate:g}"

    def _rule(self) -> optax.GradientTransformation:
        if self.kind == "adam":
            return optax.adam(self.rate)
        return optax.sgd(self.rate, momentum=0.9, nesterov=self.kind == "nesterov")

    def init(self, theta: Tree) -> Any:
        """Makes the state before the first step."""
        return self._rule().init(theta)

    def step(self, theta: Tree, gradient: Tree, state: Any) -> tuple[Tree, Any]:
        """Takes a step: (theta, state)."""
        with jax.numpy_dtype_promotion("standard"):  # Adam of optax raises a float to the number of steps
            updates, state = self._rule().update(gradient, state)
        return optax.apply_updates(theta, updates), state


@dataclasses.dataclass(frozen=True)
class Tent(Method):
    """One step of `optimizer` on the mean entropy of the batch, for scales and shifts of the normalisation layers."""

    name: ClassVar[str] = "tent"
    prediction: ClassVar[str] = BEFORE
    statistics: ClassVar[Statistics] = BATCH
    optimizer: Descent

    def init(self, graphdef, weights, start):
        theta = self.trained(graphdef, weights)
        return {"theta": theta, "optimizer": self.optimizer.init(theta)}

    def trained(self, graphdef: nnx.GraphDef, weights: Weights) -> Tree:
        """Reads the arrays that the method trains."""
        return networks.theta_of(graphdef, weights)

    def step(self, graphdef, weights, state, images, key):
        def loss(theta):
            logits = networks.forward(graphdef, weights, images, theta, statistics=BATCH)[0]
            return entropy(logits).mean(), logits

        gradient, logits = jax.grad(loss, has_aux=True)(state["theta"])
        return self.descend(state, gradient), logits

    def descend(self, state: Any, gradient: Tree) -> Any:
        """Moves theta by the optimiser."""
        theta, optimizer = self.optimizer.step(state["theta"], gradient, state["optimizer"])
        return state | {"theta": theta, "optimizer": optimizer}


def entropy(logits: jax.Array) -> jax.Array:
    """H = -sum p ln p, [..., C] -> [...]."""
    log_p = jax.nn.log_softmax(logits)
    return -(jnp.exp(log_p) * log_p).sum(-1)


def mean_over(values: jax.Array, chosen: jax.Array) -> jax.Array:
    """Computes the mean of values [N, ...] over the rows where bool [N] `chosen` is true; 0 where none is."""
    rows = chosen.reshape(-1, *(1,) * (values.ndim - 1))
    return jnp.where(rows, values, 0).sum(0) / jnp.maximum(chosen.sum(), 1).astype(values.dtype)


def where(condition: jax.Array, first: Any, second: Any) -> Any:
    """Chooses one of two equal trees."""
    return jax.tree.map(lambda one, other: jnp.where(condition, one, other), first, second)
