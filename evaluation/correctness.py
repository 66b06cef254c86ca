"""Which test images each model answers correctly, one corrupted test set per condition, the same for every model."""

import dataclasses
import functools
import zlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from evaluation.conditions import CLEAN, Condition
from runtime import distributed, meshes
from training import augmentation, stream


def corrupted_images(mesh, split, condition, seed, options=None):
    """The test images under a condition, uint8 [N, H, W, 3] on the device.

    Draws depend on (seed, corruption, severity, image), on nothing else: every model and every later run sees the
    same pixels.
    """
    if condition.corruption == CLEAN:
        return split.images
    key = jax.random.fold_in(jax.random.key(seed), zlib.crc32(condition.corruption.encode()))
    options = augmentation.with_levels(options or {}, condition.levels)
    index = jnp.asarray(split.index)
    return augmentation.corrupt_on_mesh(mesh, key, split.images, condition.corruption, condition.value, index, options)


@dataclasses.dataclass(frozen=True)
class Shown:
    """The test images under a condition, iterated in pieces on the device; arguments as in `answers`."""

    mesh: jax.sharding.Mesh
    split: Any
    condition: Condition
    seed: int
    options: Any
    batch_size: int

    def __iter__(self):
        for part in stream.pieces(self.split, self.batch_size, self.mesh):
            yield corrupted_images(self.mesh, part, self.condition, self.seed, self.options)


def answers(mesh, models, split, condition, seed, options, batch_size):
    """Which test images each model answers correctly under a condition: {key: bool numpy [N]}.

    A split that is not on the device is corrupted and shown in pieces; the answers are the same.

    Args:
      models: {key: (graphdef, state)}.
    """
    found = {key: [] for key in models}
    for part in stream.pieces(split, batch_size, mesh):
        images = corrupted_images(mesh, part, condition, seed, options)
        labels = jnp.asarray(part.labels)
        for key, model in models.items():
            found[key].append(correctness(mesh, *model, images, labels, batch_size))
    return {key: np.concatenate(parts) for key, parts in found.items()}


def correctness(mesh, graphdef, state, images, labels, batch_size):
    """Which of the images [N] the model answers correctly, bool numpy [N]; the last batch is padded, not dropped.

    `batch_size` is rounded up to a multiple of the devices; it only matters for speed and memory.
    """
    devices = mesh.shape["data"]
    batch_size += -batch_size % devices
    sharding = meshes.batch_sharding(mesh, axis=1)
    batches = meshes.place(pad_to_batches(images, batch_size, 0), sharding)
    answers = meshes.place(pad_to_batches(labels, batch_size, -1), sharding)
    correct = correct_answers(graphdef, state.params, state.statistics, batches, answers)
    return distributed.fetch(correct).reshape(-1)[: images.shape[0]]


@functools.partial(jax.jit, static_argnames=("graphdef",))
def correct_answers(graphdef, params, statistics, images, labels):
    """Which images are classified correctly.

    Args:
      images: uint8 [M, B, H, W, 3], padded to whole batches.
      labels: int32 [M, B], -1 where padded (never correct).

    Returns:
      bool [M, B].
    """
    model = nnx.merge(graphdef, params, statistics, copy=True)

    def batch_correct(batch):
        images, labels = batch
        logits, _ = model(images, train=False)
        return logits.argmax(-1) == labels

    return jax.lax.map(batch_correct, (images, labels))


def pad_to_batches(array, batch_size, fill):
    """[N, ...] to [ceil(N / B), B, ...], the tail filled with `fill`; nothing is dropped."""
    number = array.shape[0]
    padding = -number % batch_size
    array = jnp.pad(array, [(0, padding)] + [(0, 0)] * (array.ndim - 1), constant_values=fill)
    return array.reshape(-1, batch_size, *array.shape[1:])
