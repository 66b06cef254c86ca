"""LAME: answers of a batch smoothed over neighbours in feature space; the network stays as it was trained."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from evaluation.streams import networks
from evaluation.streams.tent import Method


@dataclasses.dataclass(frozen=True)
class Lame(Method):
    """Y_0 = p; Y <- softmax(ln(p + 1e-10) + W Y) by rows, until the energy changes by at most 1e-8 relative, or 100 times.

    W_ij = exp(-|z_i - z_j|^2 / (2 s^2)) of the normalised features z, diagonal 1; s is the mean distance to the
    `neighbours`-th nearest, itself counted. Energy: sum of -Y ln p - Y W Y + Y ln Y. The logits are ln Y.
    M. Boudiaf et al., "Parameter-free online test-time adaptation" (2022), from its definition.
    """

    name: ClassVar[str] = "lame"
    splits: ClassVar[bool] = False
    neighbours: int = 5
    iterations: int = 100

    def step(self, graphdef, weights, state, images, key):
        logits, features, _ = networks.forward(graphdef, weights, images, {})
        z = features["penultimate"]
        return state, smoothed(logits, affinity(z, self.neighbours), self.iterations)


def affinity(features: jax.Array, neighbours: int) -> jax.Array:
    """Computes W of `Lame`, [N, N] of features [N, D]; equal features, for which s is 0, have W 1 among themselves."""
    z = features / jnp.maximum(jnp.linalg.norm(features, axis=-1, keepdims=True), 1e-12)
    squares = jnp.maximum(((z[:, None] - z[None]) ** 2).sum(-1), 0)
    nearest = jnp.sqrt(jnp.sort(squares, axis=-1)[:, min(neighbours, len(z)) - 1])
    scale = 2 * nearest.mean() ** 2
    return jnp.where(squares > 0, jnp.exp(-squares / jnp.where(scale > 0, scale, 1)), jnp.ones_like(squares))


def smoothed(logits: jax.Array, w: jax.Array, iterations: int) -> jax.Array:
    """Iterates Y of `Lame` and returns ln Y, [N, C]."""
    p = jax.nn.softmax(logits)
    prior = jnp.log(p + 1e-10)

    def energy(log_y):
        y = jnp.exp(log_y)
        return (-y * prior - y * (w @ y) + y * log_y).sum()

    def one(_, carry):
        log_y, before, going = carry
        new = jax.nn.log_softmax(prior + w @ jnp.exp(log_y))
        after = energy(new)
        log_y = jnp.where(going, new, log_y)
        return log_y, jnp.where(going, after, before), going & (jnp.abs(after - before) > 1e-8 * jnp.abs(before))

    first = jax.nn.log_softmax(logits)
    return jax.lax.fori_loop(0, iterations, one, (first, energy(first), jnp.array(True)))[0]
