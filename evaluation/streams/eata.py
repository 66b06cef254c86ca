"""ETA, EATA and SAR: entropy of the samples that seem reliable."""

import dataclasses
import functools
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import nnx

from evaluation.streams import networks
from evaluation.streams.networks import BATCH, Tree, Weights
from evaluation.streams.tent import Tent, entropy, mean_over, where


@dataclasses.dataclass(frozen=True)
class Eta(Tent):
    """ETA: entropy of the samples that are reliable, H < margin ln C, and new, |cos(p, m)| < d, weighed by
    e^(margin ln C - H) without gradient; no step where there is none.

    m is the running mean of the p of selected samples: their mean in the first batch, then .9 m + .1 of their mean; in the
    first batch every sample is new. S. Niu et al., "Efficient test-time model adaptation without forgetting" (2022).
    """

    name: ClassVar[str] = "eta"
    margin: float = 0.4
    similarity: float = 0.4

    def init(self, graphdef, weights, start):
        state = super().init(graphdef, weights, start)
        dtype = jax.tree.leaves(state["theta"])[0].dtype
        return state | {"mean": jnp.zeros(start.classes, dtype), "known": jnp.array(False)}

    def step(self, graphdef, weights, state, images, key):
        def loss(theta):
            logits = networks.forward(graphdef, weights, images, theta, statistics=BATCH)[0]
            h = entropy(logits)
            chosen = jax.lax.stop_gradient(self.chosen(logits, h, state))
            weight = jnp.exp(self.margin * math.log(logits.shape[-1]) - jax.lax.stop_gradient(h))
            return mean_over(weight * h, chosen) + self.penalty(theta, state), (logits, chosen)

        gradient, (logits, chosen) = jax.grad(loss, has_aux=True)(state["theta"])
        p = jax.nn.softmax(logits)
        mean = mean_over(p, chosen)
        after = self.descend(state, gradient)
        after["mean"] = jnp.where(state["known"], 0.9 * state["mean"] + 0.1 * mean, mean)
        after["known"] = jnp.array(True)
        return where(chosen.any(), after, state), logits

    def chosen(self, logits: jax.Array, h: jax.Array, state: Any) -> jax.Array:
        """Selects reliable and new samples, bool [N]."""
        p = jax.nn.softmax(logits)
        norms = jnp.linalg.norm(p, axis=-1) * jnp.linalg.norm(state["mean"])
        cosine = (p * state["mean"][None]).sum(-1) / jnp.maximum(norms, 1e-8)
        reliable = h < self.margin * math.log(logits.shape[-1])
        return reliable & ((jnp.abs(cosine) < self.similarity) | ~state["known"])

    def penalty(self, theta: Tree, state: Any) -> jax.Array | float:
        """Returns 0; EATA adds a penalty."""
        return 0.0


@dataclasses.dataclass(frozen=True)
class Eata(Eta):
    """ETA with the penalty alpha sum F (theta - theta_source)^2.

    F is the mean over batches of clean images of the squared gradient of the batch-mean cross-entropy to the argmax, which
    `fisher` computes before the stream.
    """

    name: ClassVar[str] = "eata"
    needs_source: ClassVar[bool] = True
    weight: float = 1.0

    def init(self, graphdef, weights, start):
        state = super().init(graphdef, weights, start)
        if start.source is None or not len(start.source):
            raise ValueError("expected a batch of training images or more for eata, found none")
        return state | {"fisher": fisher(graphdef, weights, start.source), "source": state["theta"]}

    def penalty(self, theta, state):
        parts = jax.tree.map(lambda f, p, q: (f * (p - q) ** 2).sum(), state["fisher"], theta, state["source"])
        return self.weight * sum(jax.tree.leaves(parts))


@functools.partial(jax.jit, static_argnames=("graphdef",))
def fisher(graphdef: nnx.GraphDef, weights: Weights, images: jax.Array) -> Tree:
    """Computes F of `Eata` from batches of clean images [M, B, H, W, 3]."""

    def loss(theta, batch):
        logits = networks.forward(graphdef, weights, batch, theta, statistics=BATCH)[0]
        return -jax.nn.log_softmax(logits).max(-1).mean()

    theta = networks.theta_of(graphdef, weights)
    squares = jax.lax.map(lambda batch: jax.tree.map(jnp.square, jax.grad(loss)(theta, batch)), images)
    return jax.tree.map(lambda square: square.mean(0), squares)


@dataclasses.dataclass(frozen=True)
class Sar(Tent):
    """SAR: a sharpness-aware step on the entropy of reliable samples, and a reset where it has become too small.

    g is the gradient of the mean H over samples with H < margin ln C, theta' = theta + rho g / (|g| + 1e-12). The samples
    whose H is below the margin at theta' too give the gradient that SGD applies to theta, and e <- .9 e + .1 their mean H.
    If e is then below `least`, theta and momentum return to the source's and e is unset. Without a reliable sample nothing
    moves; the released code lets momentum move theta, and takes the old e back after a reset. The last blocks are not
    adapted (`networks.without_last`). S. Niu et al., "Towards stable test-time adaptation in dynamic wild world" (2023).
    """

    name: ClassVar[str] = "sar"
    margin: float = 0.4
    rho: float = 0.05
    least: float = 0.2

    def trained(self, graphdef, weights):
        return networks.without_last(networks.theta_of(graphdef, weights))

    def init(self, graphdef, weights, start):
        state = super().init(graphdef, weights, start)
        dtype = jax.tree.leaves(state["theta"])[0].dtype
        return state | {"source": state["theta"], "level": jnp.full((), jnp.nan, dtype)}

    def step(self, graphdef, weights, state, images, key):
        def forward(theta):
            logits = networks.forward(graphdef, weights, images, theta, statistics=BATCH)[0]
            return logits, entropy(logits), self.margin * math.log(logits.shape[-1])

        def first(theta):
            logits, h, bound = forward(theta)
            return mean_over(h, h < bound), (logits, h < bound)

        gradient, (logits, reliable) = jax.grad(first, has_aux=True)(state["theta"])
        norm = jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(gradient)))
        sharp = jax.tree.map(lambda p, g: p + self.rho * g / (norm + 1e-12), state["theta"], gradient)

        def second(theta):
            _, h, bound = forward(theta)
            kept = reliable & (h < bound)
            return mean_over(h, kept), kept.any()

        (loss, some), gradient = jax.value_and_grad(second, has_aux=True)(sharp)
        after = self.descend(state, gradient)
        after["level"] = jnp.where(jnp.isnan(state["level"]), loss, 0.9 * state["level"] + 0.1 * loss)
        fresh = state | {"theta": state["source"], "optimizer": self.optimizer.init(state["source"])}
        fresh["level"] = jnp.full_like(state["level"], jnp.nan)
        after = where(after["level"] < self.least, fresh, after)
        return where(some, after, state), logits
