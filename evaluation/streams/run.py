"""A method on a stream: one compiled scan over batches, answers kept when the stream has ended.

Nothing of an unfinished stream is kept: a killed command shows it again, with the same numbers.
"""

import functools
import math
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import Mesh

from evaluation.correctness import refuse_not_finite
from evaluation.streams.networks import Weights
from evaluation.streams.tent import Method, Start
from runtime import meshes

REMEDY = "remove it to show this stream again"
_BYTES = 2**27  # bytes of images in one program's argument
_IMAGES = 1000  # images in it, or 50 batches if these are more
_TIMED = 20  # batches that a measured cost averages
_SAME = 1.05  # a cost below this counts as 1


class Plan(NamedTuple):
    """The actions of a method at each batch of a stream."""

    batch: int  # images in a batch; the last one may have fewer
    resets: np.ndarray  # bool [batches], the method returns to its start before this batch
    adapts: np.ndarray  # bool [batches], the method adapts to this batch; else it only predicts


def plan(length: int, shifts: np.ndarray, batch: int, reset: str = "never", every: int = 1) -> Plan:
    """Plans the batches of a stream.

    Args:
      length, batch: images of the stream and of a batch.
      shifts: times at which the condition changes.
      reset: `never`; `shift`: at the first batch that begins under another condition; `batch`: before every one
        (episodic); or a number N, every N batches.
      every: adapt to every `every`-th batch, see `skipping`.

    Raises:
      ValueError: an unknown policy, or a batch or number below 1.
    """
    if batch < 1 or every < 1:
        raise ValueError(f"expected a batch and a period of at least 1, found {batch} and {every}")
    number = -(-length // batch)
    starts = np.arange(number) * batch
    if reset == "never":
        resets = np.zeros(number, bool)
    elif reset == "batch":
        resets = np.ones(number, bool)
    elif reset == "shift":
        segment = np.searchsorted(shifts, starts, side="right")
        resets = np.append(True, segment[1:] != segment[:-1])
    elif reset.isdecimal() and int(reset) > 0:
        resets = np.arange(number) % int(reset) == 0
    else:
        raise ValueError(f"expected the reset policy never, shift, batch or a number of batches, found {reset!r}")
    return Plan(batch, resets, np.arange(number) % every == 0)


def skipping(cost: float, eta: float) -> int:
    """Computes how often a method adapts if the stream does not wait: to every max(1, ceil(eta C))-th batch.

    Args:
      cost: C, the method's time on a batch divided by the plain network's; below 1.05 it counts as 1.
      eta: speed of the stream in [0, 1]: 1 reveals a batch in each plain forward pass, 0 waits for the method.

    Raises:
      ValueError: eta outside [0, 1]. M. Alfarra et al., "Evaluation of test-time adaptation under computational time
        constraints" (2024).
    """
    if not 0 <= eta <= 1:
        raise ValueError(f"expected eta in [0, 1], found {eta}")
    cost = 1.0 if cost < _SAME else cost
    return max(1, math.ceil(eta * cost))


def predictions(
    graphdef: nnx.GraphDef,
    weights: Weights,
    method: Method,
    images: Callable[[int], Iterable[jax.Array]],
    of: Plan,
    start: Start,
) -> np.ndarray:
    """Shows a stream to a method and takes the predicted class of each image, int32 [T].

    Args:
      graphdef, weights, method: the network as it was trained, and how it adapts.
      images: n -> the images of the stream in order, uint8 [n, H, W, 3], n at a time.
      of, start: plan of the stream, and the method's input before the first batch.

    Raises:
      ValueError: the network lacks layers that the method needs, or its answers are not finite.
    """
    method.check(graphdef, weights)
    number = len(of.resets)
    batch_bytes = max(1, of.batch * math.prod(start.shape[1:]))
    together = max(1, min(number, max(50, _IMAGES // of.batch), _BYTES // batch_bytes))
    mesh = _mesh(method, of.batch)
    fixed = weights, method.init(graphdef, weights, start), jax.random.key(0)
    weights, first, root = meshes.place_tree(fixed, meshes.replicated(mesh))
    state, found, done = first, [], 0
    for piece in images(together * of.batch):
        whole = len(piece) // of.batch
        parts = [(piece[: whole * of.batch], whole, of.batch, together)] if whole else []
        if rest := len(piece) - whole * of.batch:
            parts.append((piece[whole * of.batch :], 1, rest, 1))
        for part, count, size, room in parts:
            part = part.reshape(count, size, *part.shape[1:])
            # A piece that is not full takes the same program, which skips the missing steps.
            part = _placed(jnp.pad(part, [(0, room - count)] + [(0, 0)] * 4), mesh, 1)
            span = slice(done, done + count)
            does = np.pad(np.where(of.adapts[span], 2, 1), (0, room - count))
            resets = np.pad(of.resets[span], (0, room - count))
            only = bool(of.adapts.all())
            state, answers, finite = _scan(
                graphdef, method, only, weights, first, state, part, does, resets, root, np.int32(done)
            )
            refuse_not_finite(np.where(np.asarray(finite)[:count], 0.0, np.nan), f"{method.name} on a stream")
            found.append(np.asarray(answers)[:count].reshape(-1))
            done += count
    return np.concatenate(found).astype(np.int32)


def _mesh(method, batch):
    """The devices that share a batch: on a CPU the most cores that divide it, because XLA runs most of a step with the
    statistics of a batch on one core; elsewhere one.
    """
    devices = jax.local_devices()
    shared = method.splits and devices[0].platform == "cpu"
    number = max(d for d in range(1, len(devices) + 1) if batch % d == 0) if shared else 1
    return Mesh(np.asarray(devices[:number]).reshape(1, -1), ("model", "data"))


def _placed(images, mesh, axis):
    """Splits `axis` of images over a mesh; images that do not split evenly go to each device whole."""
    even = images.shape[axis] % mesh.size == 0
    return jax.device_put(images, meshes.batch_sharding(mesh, axis) if even else meshes.replicated(mesh))


@functools.partial(jax.jit, static_argnames=("graphdef", "method", "only"))
def _scan(graphdef, method, only, weights, first, state, images, does, resets, root, begin):
    """Steps over images [K, B, ...]; `does`: 0 nothing, 1 predict, 2 predict and adapt. `only`: never 1."""
    classes = jax.eval_shape(lambda: method.predict(graphdef, weights, first, images[0])).shape[-1]

    def one(carry, given):
        state, number = carry
        batch, what, reset = given
        state = jax.tree.map(lambda new, old: jnp.where(reset, new, old), first, state)
        key = jax.random.fold_in(root, number)

        def nothing(state):
            return state, jnp.zeros((len(batch), classes))

        def still(state):
            return state, method.predict(graphdef, weights, state, batch).astype(jnp.zeros(0).dtype)

        def adapt(state):
            state, logits = method.step(graphdef, weights, state, batch, key)
            return state, logits.astype(jnp.zeros(0).dtype)

        branches = (nothing, adapt) if only else (nothing, still, adapt)
        state, logits = jax.lax.switch(jnp.minimum(what, len(branches) - 1), branches, state)
        return (state, number + 1), (logits.argmax(-1).astype(jnp.int32), jnp.isfinite(logits).all())

    (state, _), (answers, finite) = jax.lax.scan(one, (state, begin), (images, does, resets))
    return state, answers, finite


def cost(graphdef: nnx.GraphDef, weights: Weights, method: Method, images: jax.Array, start: Start) -> float:
    """Measures C on this device: median time of the method's step divided by the plain network's, 20 batches each."""
    plain = _seconds(graphdef, weights, Method(), images, start)
    return _seconds(graphdef, weights, method, images, start) / plain


def _seconds(graphdef, weights, method, images, start):
    mesh, seconds = _mesh(method, len(images)), []
    fixed = weights, method.init(graphdef, weights, start), jax.random.key(0)
    weights, state, key = meshes.place_tree(fixed, meshes.replicated(mesh))
    images = _placed(images, mesh, 0)
    for _ in range(_TIMED + 1):
        begin = time.perf_counter()
        state, _ = jax.block_until_ready(_step(graphdef, method, weights, state, images, key))
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds[1:]))  # the first one compiles


@functools.partial(jax.jit, static_argnames=("graphdef", "method"))
def _step(graphdef, method, weights, state, images, key):
    return method.step(graphdef, weights, state, images, key)
