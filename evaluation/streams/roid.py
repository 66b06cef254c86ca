"""ROID: certain and diverse samples count more, the source's weights pull back, answers follow the batch's classes."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from evaluation.streams import networks
from evaluation.streams.networks import BATCH
from evaluation.streams.tent import Tent, entropy
from evaluation.streams.views import augment


@dataclasses.dataclass(frozen=True)
class Roid(Tent):
    """One step on (1/B) sum over kept samples of w [SLR + SCE], then theta <- (1 - pull) theta + pull theta_source.

    d = 1 - cos(m, p), m the running mean of p (uniform at first, .9 m + .1 mean p after the batch); c = -H; both are
    brought to [0, 1] in the batch (0 where all are equal). Samples with d below its mean are dropped; w = e^(d c / tau),
    without gradient. SLR = -sum q ln(q / (1 - q) + 1e-5), q = min(p, .99). SCE = -1/2 sum p ln p' - 1/2 sum p' ln p, p' of
    the augmented kept samples, which are a batch of their own. The logits that it returns are those before the step times
    (pi + s) / (1 + s C), pi the mean p of the batch, s = max(1/B, 1/C) / max pi.

    R. A. Marsden, M. Doebler, B. Yang, "Universal test-time adaptation through weight ensembling, diversity weighting, and
    prior correction" (2024).
    """

    name: ClassVar[str] = "roid"
    tau: float = 1 / 3
    pull: float = 0.01
    views: Callable[[jax.Array, jax.Array], jax.Array] = dataclasses.field(default=augment, metadata={"told": False})

    def init(self, graphdef, weights, start):
        state = super().init(graphdef, weights, start)
        dtype = jax.tree.leaves(state["theta"])[0].dtype
        return state | {"source": state["theta"], "mean": jnp.full(start.classes, 1 / start.classes, dtype)}

    def step(self, graphdef, weights, state, images, key):
        seen = self.views(key, images)

        def loss(theta):
            logits = networks.forward(graphdef, weights, images, theta, statistics=BATCH)[0]
            weight, kept = jax.lax.stop_gradient(self.weigh(logits, state["mean"]))
            other = networks.forward(graphdef, weights, seen, theta, statistics=BATCH, counted=kept)[0]
            both = likelihood_ratio(logits) + symmetric(logits, other)
            return jnp.where(kept, weight * both, 0).sum() / len(images), logits

        gradient, logits = jax.grad(loss, has_aux=True)(state["theta"])
        after = self.descend(state, gradient)
        after["theta"] = jax.tree.map(lambda p, q: (1 - self.pull) * p + self.pull * q, after["theta"], state["source"])
        after["mean"] = 0.9 * state["mean"] + 0.1 * jax.nn.softmax(logits).mean(0)
        return after, corrected(logits)

    def weigh(self, logits: jax.Array, mean: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Computes w of every sample, and selects the kept samples: (float [N], bool [N])."""
        p = jax.nn.softmax(logits)
        norms = jnp.linalg.norm(p, axis=-1) * jnp.linalg.norm(mean)
        diverse = _unit(1 - (p * mean[None]).sum(-1) / jnp.maximum(norms, 1e-8))
        certain = _unit(-entropy(logits))
        return jnp.exp(diverse * certain / self.tau), diverse >= diverse.mean()

    def predict(self, graphdef, weights, state, images):
        return corrected(super().predict(graphdef, weights, state, images))


def _unit(values: jax.Array) -> jax.Array:
    span = values.max() - values.min()
    return jnp.where(span > 0, (values - values.min()) / jnp.where(span > 0, span, 1), 0)


def likelihood_ratio(logits: jax.Array) -> jax.Array:
    """SLR of `Roid`, [N]."""
    q = jnp.minimum(jax.nn.softmax(logits), 0.99)
    return -(q * jnp.log(q / (1 - q) + 1e-5)).sum(-1)


def symmetric(logits: jax.Array, other: jax.Array) -> jax.Array:
    """SCE of `Roid`, [N]."""
    first, second = jax.nn.log_softmax(logits), jax.nn.log_softmax(other)
    return -0.5 * (jnp.exp(first) * second).sum(-1) - 0.5 * (jnp.exp(second) * first).sum(-1)


def corrected(logits: jax.Array) -> Any:
    """Multiplies the logits by the prior of the batch; only their order has a meaning then."""
    number, classes = logits.shape
    prior = jax.nn.softmax(logits).mean(0)
    smooth = max(1 / number, 1 / classes) / prior.max()
    return logits * ((prior + smooth) / (1 + smooth * classes))[None]
