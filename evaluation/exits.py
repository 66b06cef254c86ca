"""What a network with several exits answers at each of them, and how sure it is."""

import functools
import pathlib
from typing import NamedTuple

import jax
import numpy as np
from flax import nnx

from evaluation.correctness import Model, place_batches, refuse_not_finite
from evaluation.shown import Shown
from runtime import artifacts, distributed


class Answered(NamedTuple):
    """The answers of a network to N images at E exits.

    Attributes:
      correct: bool [N, E].
      confidence: float32 [N, E], the largest of the probabilities.
    """

    correct: np.ndarray
    confidence: np.ndarray


def kept(path: pathlib.Path, model: Model, digest: str, shown: Shown) -> Answered:
    """Answers as `of_model` does, unless the file holds the answers of this model to these images;
    writes them there; `digest` is that of the model's state.

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
            return Answered(arrays["correct"], arrays["confidence"])
    answered = of_model(model, shown)
    artifacts.write(path, answered._asdict(), made_from)
    return answered


def of_model(model: Model, shown: Shown) -> Answered:
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
        found = map(distributed.fetch, _answers(graphdef, state.params, state.statistics, *batches))
        correct, confidence = (array.reshape(-1, array.shape[-1])[: len(labels)] for array in found)
        refuse_not_finite(confidence, shown.condition.corruption)  # NaN is above any threshold
        parts.append([correct, confidence])
    return Answered(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


@functools.partial(jax.jit, static_argnames=("graphdef",))
def _answers(graphdef, params, statistics, images, labels):
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
