"""Which images each model answers correctly; nothing is dropped, whatever the batch size.

`of_models` shows the same images to several models, `of_model` classifies images at hand, `correct_answers` is the
program that all models of an architecture share, compiled once for a shape.
"""

import functools
import pathlib
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from corruptions import enhance as enhancements
from evaluation.shown import Shown, ShownNatural, ShownStored
from runtime import artifacts, distributed, meshes
from training import augmentation
from training.states import TrainState

Model = tuple[nnx.GraphDef, TrainState]
"""A trained network, as `training.loop.read_back` returns it."""


def of_models(
    models: Mapping[Hashable, Model], shown: Shown | ShownStored | ShownNatural, enhance: str = ""
) -> dict[Hashable, np.ndarray]:
    """Asks every model about the same images: {key: bool [N], which it answers correctly}.

    `enhance` names an enhancement of `corruptions.enhance`; "" leaves the images as they are.
    """
    correct = {key: [] for key in models}
    of_pixels = enhance.partition(":")[0] in enhancements.of_pixels()
    of_answers = "" if of_pixels else enhance  # images are enhanced before the network, answers in its program
    for images, labels in shown:
        if of_pixels:
            images = augmentation.enhance_on_mesh(shown.mesh, enhance, images)
        for key, model in models.items():
            correct[key].append(of_model(model, images, labels, shown.batch_size, shown.mesh, shown.groups, of_answers))
    return {key: np.concatenate(parts) for key, parts in correct.items()}


def of_model(
    model: Model,
    images: jax.Array,
    labels: jax.Array,
    batch_size: int,
    mesh: jax.sharding.Mesh,
    groups: np.ndarray | None = None,
    enhance: str = "",
) -> np.ndarray:
    """Asks a model which images it answers correctly.

    Args:
      model: (graphdef, state).
      images: uint8 [N, H, W, 3].
      labels: int32 [N].
      batch_size: images at once, rounded up to a multiple of the devices; the last batch is padded.
      mesh: devices, over which each batch is split.
      groups, enhance: see `correct_answers`.

    Returns:
      bool [N], on the host.
    """
    graphdef, state = model
    batches = place_batches(images, batch_size, 0, mesh)
    answers = place_batches(labels, batch_size, -1, mesh)
    correct = correct_answers(graphdef, state.params, state.statistics, batches, answers, groups, enhance)
    return distributed.fetch(correct).reshape(-1)[: images.shape[0]]


@functools.partial(jax.jit, static_argnames=("graphdef", "enhance"))
def correct_answers(
    graphdef: nnx.GraphDef,
    params: Any,
    statistics: Any,
    images: jax.Array,
    labels: jax.Array,
    groups: jax.Array | None = None,
    enhance: str = "",
) -> jax.Array:
    """Classifies the images of M batches and compares with their labels.

    Args:
      graphdef, params, statistics: the network.
      images: uint8 [M, B, H, W, 3], padded to whole batches.
      labels: int32 [M, B], -1 where padded (never correct).
      groups: int32 [classes], the label that each class counts as; a class of -1 is never an answer. None counts each
        class as itself.
      enhance: enhancement of answers (`enhance.averaged`); images were enhanced before.

    Returns:
      bool [M, B].
    """
    chex.assert_rank([images, labels], [5, 2])
    chex.assert_equal_shape_prefix([images, labels], 2)
    model = nnx.merge(graphdef, params, statistics, copy=True)

    answers = enhancements.averaged(lambda images: model(images, train=False)[0], enhance)

    def batch_correct(batch):
        images, labels = batch
        scores = answers(images)
        if groups is None:
            return scores.argmax(-1) == labels
        return groups[jnp.where(groups >= 0, scores, -jnp.inf).argmax(-1)] == labels

    return jax.lax.map(batch_correct, (images, labels))


def place_batches(array: jax.Array, batch_size: int, fill: int, mesh: jax.sharding.Mesh) -> jax.Array:
    """Cuts [N, ...] into batches (`pad_to_batches`), of a size rounded up to a multiple of the devices, over which each
    batch is split.
    """
    batch_size += -batch_size % mesh.shape["data"]
    return meshes.place_tree(pad_to_batches(array, batch_size, fill), meshes.batch_sharding(mesh, axis=1))


def pad_to_batches(array: jax.Array, batch_size: int, fill: int) -> jax.Array:
    """Cuts [N, ...] into batches [ceil(N / B), B, ...], the last one filled up with `fill`."""
    number = array.shape[0]
    padding = -number % batch_size
    array = jnp.pad(array, [(0, padding)] + [(0, 0)] * (array.ndim - 1), constant_values=fill)
    return array.reshape(-1, batch_size, *array.shape[1:])


def refuse_not_finite(outputs: np.ndarray, name: str) -> None:
    """Refuses features or answers of a network that are NaN or infinite.

    Raises:
      ValueError: an output is not finite; the message names `name`, the corruption of the images.
    """
    if not np.isfinite(outputs).all():
        raise ValueError(
            f"expected finite outputs for images under {name}, found NaN or infinity: the network diverged, or its "
            "precision is too low for these images; train it again, or with config.model.dtype=float32"
        )


# Networks with several exits.


class ExitAnswers(NamedTuple):
    """The answers of a network to N images at E exits.

    Attributes:
      correct: bool [N, E].
      confidence: float32 [N, E], the largest of the probabilities.
    """

    correct: np.ndarray
    confidence: np.ndarray


def kept_exits(path: pathlib.Path, model: Model, digest: str, shown: Shown) -> ExitAnswers:
    """Answers as `of_exits` does, unless the file holds the answers of this model to these images; writes them there;
    `digest` is the digest of the model's state.

    Raises:
      DamagedFileError: the file cannot be read.
      ValueError: the network has one exit alone, or its logits are not finite.
    """
    record = shown.record
    made_from = {"model": digest, "shown": artifacts.digest(record.shown), "condition": record.stem}
    made_from["images"] = record.number
    if path.exists():
        arrays, before = artifacts.read(path, "remove it to measure this condition again")
        if before == made_from:
            return ExitAnswers(arrays["correct"], arrays["confidence"])
    answered = of_exits(model, shown)
    artifacts.write(path, answered._asdict(), made_from)
    return answered


def of_exits(model: Model, shown: Shown) -> ExitAnswers:
    """Shows images to a network and takes its answers at every exit.

    Raises:
      ValueError: it has one exit alone, or its logits are not finite.
    """
    (graphdef, state), parts = model, []
    for images, labels in shown:
        batches = (
            place_batches(images, shown.batch_size, 0, shown.mesh),
            place_batches(labels, shown.batch_size, -1, shown.mesh),
        )
        found = map(distributed.fetch, _exit_answers(graphdef, state.params, state.statistics, *batches))
        correct, confidence = (array.reshape(-1, array.shape[-1])[: len(labels)] for array in found)
        refuse_not_finite(confidence, shown.condition.corruption)  # NaN is above any threshold
        parts.append([correct, confidence])
    return ExitAnswers(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


@functools.partial(jax.jit, static_argnames=("graphdef",))
def _exit_answers(graphdef, params, statistics, images, labels):
    """(bool, float32) [M, B, E] of M batches of images uint8 [M, B, H, W, 3]."""
    model = nnx.merge(graphdef, params, statistics, copy=True)

    def of_batch(batch):
        images, labels = batch
        features = model(images, train=False)[1]
        if "exits" not in features:
            raise ValueError("expected a network with several exits, such as msdnet, found one exit")
        probabilities = jax.nn.softmax(features["exits"])
        return (probabilities.argmax(-1) == labels[None]).T, probabilities.max(-1).T

    return jax.lax.map(of_batch, (images, labels))
