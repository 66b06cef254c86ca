"""RoTTA: a slow teacher predicts, a student learns from a memory of balanced classes."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from evaluation.streams import networks
from evaluation.streams.networks import Statistics
from evaluation.streams.tent import Tent, where
from evaluation.streams.views import degrade


@dataclasses.dataclass(frozen=True)
class Rotta(Tent):
    """The teacher predicts a batch by its stored statistics; then its images go through the memory in order.

    An image of predicted class c and uncertainty u = -sum p ln(p + 1e-6) enters a memory of N places, N / C for a class:
    if c has fewer and there is room, it is added; if c has fewer and there is none, a victim is sought in the classes with
    the most images; else in c. The victim has the highest score 1 / (1 + e^(-age / N)) + u / ln C, and gives way if that
    is above the newcomer's. All ages rise by one after each image.

    After every `every` images both networks train on the memory: BatchNorm by (1 - alpha) stored + alpha batch, which it
    stores; loss = mean of w CE(softmax of the teacher, student of the augmented image), w = e^-A / (1 + e^-A), A = age /
    N; then teacher <- (1 - nu) teacher + nu student in scales and shifts.

    L. Yuan, B. Xie, S. Li, "Robust test-time adaptation in dynamic scenarios" (2023).
    """

    name: ClassVar[str] = "rotta"
    splits: ClassVar[bool] = False
    capacity: int = 64
    every: int = 64
    alpha: float = 0.05
    nu: float = 0.001
    views: Callable[[jax.Array, jax.Array], jax.Array] = dataclasses.field(default=degrade, metadata={"told": False})

    def init(self, graphdef, weights, start):
        state = super().init(graphdef, weights, start)
        moments = networks.moments_of(graphdef, weights)
        dtype = jax.tree.leaves(state["theta"])[0].dtype
        n = self.capacity
        memory = {
            "images": jnp.zeros((n, *start.shape[1:]), start.dtype),
            "label": jnp.zeros(n, jnp.int32),
            "age": jnp.zeros(n, dtype),
            "uncertainty": jnp.zeros(n, dtype),
            "held": jnp.zeros(n, bool),
        }
        more = {"teacher": state["theta"], "moments": moments, "teacher_moments": moments, "memory": memory}
        return state | more | {"seen": jnp.zeros((), jnp.int32)}

    def predict(self, graphdef, weights, state, images):
        return networks.forward(graphdef, weights, images, state["teacher"], state["teacher_moments"])[0]

    def step(self, graphdef, weights, state, images, key):
        logits = self.predict(graphdef, weights, state, images)
        log_p = jax.nn.log_softmax(logits)
        p = jnp.exp(log_p)
        uncertainty = -(p * jnp.log(p + 1e-6)).sum(-1)

        def one(carry, given):
            image, label, u, number = given
            memory = self.remember(carry["memory"], image, label, u, logits.shape[-1])
            carry = carry | {"memory": memory, "seen": carry["seen"] + 1}
            learn = carry["seen"] % self.every == 0
            step_key = jax.random.fold_in(key, number)
            return jax.lax.cond(
                learn, partial(self.learn, graphdef, weights), lambda state, _: state, carry, step_key
            ), None

        given = (images, logits.argmax(-1).astype(jnp.int32), uncertainty, jnp.arange(len(images)))
        return jax.lax.scan(one, state, given)[0], logits

    def remember(self, memory: Any, image: jax.Array, label: jax.Array, u: jax.Array, classes: int) -> Any:
        """Offers one image to the memory."""
        n, held = self.capacity, memory["held"]
        counts = jnp.zeros(classes, jnp.int32).at[memory["label"]].add(held.astype(jnp.int32))
        room, few = held.sum() < n, counts[label].astype(jnp.float32) < n / classes
        largest = counts[memory["label"]] == counts.max()
        candidates = held & jnp.where(few, largest, memory["label"] == label)
        scores = self.score(memory["age"], memory["uncertainty"], classes)
        scores = jnp.where(candidates, scores, -jnp.inf)
        victim = n - 1 - scores[::-1].argmax()  # the last of equal ones
        gives_way = scores[victim] > self.score(jnp.zeros_like(u), u, classes)
        place = jnp.where(few & room, (~held).argmax(), victim)
        enters = (few & room) | gives_way
        new = {"images": image, "label": label, "age": jnp.zeros_like(u), "uncertainty": u, "held": jnp.array(True)}
        entered = {name: array.at[place].set(new[name].astype(array.dtype)) for name, array in memory.items()}
        memory = where(enters, entered, memory)
        return memory | {"age": memory["age"] + 1}

    def score(self, age: jax.Array, u: jax.Array, classes: int) -> jax.Array:
        """Computes how dispensable images are."""
        return 1 / (1 + jnp.exp(-age / self.capacity)) + u / math.log(classes)

    def learn(self, graphdef: Any, weights: Any, state: Any, key: jax.Array) -> Any:
        """Trains the student on the memory, then moves the teacher."""
        memory, by = state["memory"], Statistics(1 - self.alpha)
        held, age = memory["held"], memory["age"] / self.capacity
        target, _, teacher_moments = networks.forward(
            graphdef, weights, memory["images"], state["teacher"], state["teacher_moments"], by, held
        )
        seen = self.views(key, memory["images"])
        weight = jnp.where(held, jnp.exp(-age) / (1 + jnp.exp(-age)), 0)

        def loss(theta):
            found, _, moments = networks.forward(graphdef, weights, seen, theta, state["moments"], by, held)
            entropy = -(jax.nn.softmax(target) * jax.nn.log_softmax(found)).sum(-1)
            return (weight * entropy).sum() / jnp.maximum(held.sum(), 1).astype(weight.dtype), moments

        gradient, moments = jax.grad(loss, has_aux=True)(state["theta"])
        after = self.descend(state, gradient)
        nu = self.nu
        teacher = jax.tree.map(lambda t, s: (1 - nu) * t + nu * s, state["teacher"], after["theta"])
        return after | {"teacher": teacher, "moments": moments, "teacher_moments": teacher_moments}
