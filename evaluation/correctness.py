"""The answers of models to images, and their confidence; no image is dropped, whatever the batch size.

`ask` shows the same images to several models and ensembles, `of_models` and `of_model` take only correctness.
`network_logits` is the program that all models of an architecture share, compiled once for a shape.
"""

import functools
import pathlib
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from analysis.answers import PLAIN, SCALED, Answered
from corruptions import enhance as enhancements
from corruptions import laion_c
from corruptions.scoring import confidence
from evaluation import bound
from evaluation.shown import Images, Shown, Superclasses
from runtime import artifacts, distributed, meshes
from training import augmentation, memory
from training.study import Model


class Ensemble(NamedTuple):
    """Networks whose probabilities are averaged; a network that is also a model itself is asked once."""

    members: tuple[Model, ...]


def of_models(models: Mapping[Hashable, Model], shown: Images, enhance: str = "") -> dict[Hashable, np.ndarray]:
    """Asks every model about the same images, as `ask`: {key: bool [N], which it answers correctly}."""
    return {key: answered.correct for key, answered in ask(models, shown, enhance).items()}


def ask(
    models: Mapping[Hashable, Model | Ensemble],
    shown: Images,
    enhance: str = "",
    temperatures: Mapping[Hashable, float] | None = None,
) -> dict[Hashable, Answered]:
    """Asks every model about the same images.

    Args:
      models: {key: network or ensemble}.
      shown: images that all of them see.
      enhance: enhancement of `corruptions.enhance`; "" does not change the images.
      temperatures: {key: T}: these models have the confidence of softmax(logits / T) too, the set `scaled`.

    Raises:
      ValueError: a network's outputs are not finite; names the corruption.
    """
    temperatures, parts = temperatures or {}, {key: [] for key in models}
    grouped = () if shown.groups is None else (shown.groups, int(np.max(shown.groups)) + 1)
    for key, logits, labels, number in logits_of(models, shown, enhance):
        sets = {PLAIN: 1.0} | ({SCALED: temperatures[key]} if key in temperatures else {})
        correct, fields = _encoded(logits, labels, np.array([*sets.values()], np.float32), *grouped)
        correct, *fields = (_flat(field)[..., :number] for field in (correct, *fields))
        stored = confidence.pack(fields)
        refuse_not_finite(stored["rest"], shown.condition.corruption)
        parts[key].append(Answered(correct, dict(zip(sets, stored, strict=True))))
    return {
        key: Answered(
            np.concatenate([part.correct for part in of_model]),
            {name: np.concatenate([part.confidence[name] for part in of_model]) for name in of_model[0].confidence},
        )
        for key, of_model in parts.items()
    }


def logits_of(
    models: Mapping[Hashable, Model | Ensemble], shown: Images, enhance: str = ""
) -> Iterator[tuple[Hashable, jax.Array, jax.Array, int]]:
    """Yields per chunk of images: (key of a model, logits [M, B, C], labels [M, B], number of images). M * B is at least this
    number; entries past it are padding.

    The logits of an ensemble are the logarithms of its mean probabilities, and the logits of superclasses are the
    logarithms of their scores.
    """
    of_pixels = enhance.partition(":")[0] in enhancements.of_pixels()
    of_answers = "" if of_pixels else enhance  # images are enhanced before the network runs, answers in its program
    ensembles = any(isinstance(model, Ensemble) for model in models.values())
    memory.check_images(shown.at_once, shown.image_shape, shown.mesh)
    checked: set[nnx.GraphDef] = set()
    for images, labels in shown:
        if of_pixels:
            images = augmentation.enhance_on_mesh(shown.mesh, enhance, images)
        batches = place_batches(images, shown.at_once, 0, shown.mesh)
        targets = place_batches(labels, shown.at_once, -1, shown.mesh)
        known: dict[int, jax.Array] = {}
        for key, model in models.items():
            networks = model.members if isinstance(model, Ensemble) else (model,)
            for graphdef, state in networks:
                if graphdef not in checked:
                    _check_memory(graphdef, state, batches, shown.mesh, of_answers)
                    checked.add(graphdef)
                if id(state) not in known:
                    known[id(state)] = network_logits(graphdef, state.params, state.statistics, batches, of_answers)
            every = [known[id(state)] for _, state in networks]
            logits = every[0] if len(every) == 1 else _log_of_mean(every)
            logits = _of_superclasses(logits, shown.superclasses) if shown.superclasses else logits
            yield key, logits, targets, len(labels)
            if not ensembles:
                known.clear()


def of_model(
    model: Model, images: jax.Array, labels: jax.Array, batch_size: int, mesh: jax.sharding.Mesh
) -> np.ndarray:
    """Asks a model which of the images uint8 [N, H, W, 3] it answers correctly, given int32 [N] labels: bool [N].

    Each batch is split over the devices of the mesh. Its size is rounded up to a multiple of them; the last batch is
    padded.
    """
    chex.assert_equal_shape_prefix([images, labels], 1)
    graphdef, state = model
    batch_size = min(batch_size, max(1, len(images)))
    batches, targets = place_batches(images, batch_size, 0, mesh), place_batches(labels, batch_size, -1, mesh)
    _check_memory(graphdef, state, batches, mesh)
    logits = network_logits(graphdef, state.params, state.statistics, batches)
    return _flat(_encoded(logits, targets, np.ones(1, np.float32))[0])[: len(images)]


@functools.partial(jax.jit, static_argnames=("graphdef", "enhance"))
def network_logits(
    graphdef: nnx.GraphDef, params: Any, statistics: Any, images: jax.Array, enhance: str = ""
) -> jax.Array:
    """Classifies the images of M batches: logits, float32 [M, B, C].

    Args:
      graphdef, params, statistics: the network.
      images: uint8 [M, B, H, W, 3], padded to whole batches.
      enhance: enhancement of answers (`enhance.averaged`), of whose probabilities the logarithms are returned; images
        were enhanced before.
    """
    chex.assert_rank(images, 5)
    model = nnx.merge(graphdef, params, statistics, copy=True)
    answers = enhancements.averaged(lambda images: model(images, train=False)[0], enhance)

    def of_batch(images):
        scores = answers(images).astype(jnp.float32)
        return jnp.log(jnp.maximum(scores, jnp.finfo(jnp.float32).tiny)) if enhance else scores

    return jax.lax.map(of_batch, images)


_lower = network_logits.lower


def _check_memory(graphdef, state, batches, mesh, enhance=""):
    """Refuses (SettingsError) batches that a network has no room to classify; its program is compiled once, for this too."""
    memory.check_evaluation(
        mesh, lambda sized: _lower(graphdef, state.params, state.statistics, sized, enhance), batches
    )


@jax.jit
def _log_of_mean(logits):
    """ln of the mean over networks of softmax(logits), from a list of [M, B, C]."""
    return jax.nn.logsumexp(jax.nn.log_softmax(jnp.stack(logits)), axis=0) - np.float32(np.log(len(logits)))


@functools.partial(jax.jit, static_argnames=("superclasses",))
def _of_superclasses(logits, superclasses: Superclasses):
    """Computes ln of the scores of superclasses, [M, B, superclasses], from the logits of their classes [M, B, C]."""
    scores = laion_c.superclass_scores(logits, superclasses.reduce, dict(enumerate(superclasses.members)))
    return jnp.log(jnp.maximum(scores, jnp.finfo(jnp.float32).tiny))


@functools.partial(jax.jit, static_argnames=("number",))
def _encoded(logits, labels, temperatures, groups=None, number=0):
    """Compares answers with labels [M, B] and encodes their confidence.

    Args:
      logits: [M, B, C].
      labels: int32 [M, B], -1 where padded (never correct).
      temperatures: float32 [S].
      groups: int32 [C], the label that each class counts as; a class of -1 is never an answer. A label has the score of
        its best class. None counts each class as itself.
      number: number of labels, with groups.

    Returns:
      (bool [M, B], fields of `confidence.STORED` [S, M, B]).
    """
    if groups is None:
        predicted = logits.argmax(-1)
    else:
        predicted = groups[jnp.where(groups >= 0, logits, -jnp.inf).argmax(-1)]
        place = jnp.where(groups >= 0, groups, number)
        of_labels = jax.ops.segment_max(jnp.moveaxis(logits, -1, 0), place, num_segments=number + 1)
        logits = jnp.moveaxis(of_labels[:number], 0, -1)
    fields = jax.vmap(lambda temperature: confidence.encode(logits, labels, predicted, temperature))(temperatures)
    return predicted == labels, fields


def _flat(array):
    """Brings an array to the host and joins its batches: [..., M, B] to [..., M * B]."""
    host = distributed.fetch(array)
    return host.reshape(*host.shape[:-2], -1)


def place_batches(array: jax.Array, batch_size: int, fill: int, mesh: jax.sharding.Mesh) -> jax.Array:
    """Cuts [N, ...] into batches [ceil(N / B), B, ...], the last one filled up with `fill`.

    B is `batch_size` rounded up to a multiple of the devices, over which each batch is split.
    """
    batch_size += -batch_size % mesh.shape["data"]
    array = jnp.pad(array, [(0, -len(array) % batch_size)] + [(0, 0)] * (array.ndim - 1), constant_values=fill)
    batches = array.reshape(-1, batch_size, *array.shape[1:])
    return meshes.place_tree(batches, meshes.batch_sharding(mesh, axis=1))


def refuse_not_finite(outputs: np.ndarray, name: str) -> None:
    """Refuses (ValueError) features or answers of a network that are NaN or infinite; names the images' corruption."""
    if not np.isfinite(outputs).all():
        raise ValueError(
            f"expected finite outputs for images under {name}, found NaN or infinity: the network diverged, or its "
            "precision is too low for these images; train it again, or with config.model.dtype=float32"
        )


# Networks with several exits.


class ExitAnswers(NamedTuple):
    """The answers of a network to N images at E exits."""

    correct: np.ndarray  # bool [N, E]
    confidence: np.ndarray  # float32 [N, E], the largest of the probabilities


def kept_exits(path: pathlib.Path, model: Model, digest: str, shown: Shown) -> ExitAnswers:
    """Reads the answers of a model, whose state has the `digest`, to these images from a file; without it, answers as
    `of_exits` does and writes the file.

    Raises:
      DamagedFileError: the file cannot be read.
      ValueError: see `of_exits`.
    """
    record = shown.record
    made_from = {"model": digest, "shown": artifacts.digest(record.shown), "condition": record.stem}
    made_from["images"] = record.number
    remedy = "remove it to measure this condition again"

    def measure():
        return of_exits(model, shown)._asdict()

    return ExitAnswers(**bound.kept(path, made_from, measure, remedy, bound.of_shown(shown)))


def of_exits(model: Model, shown: Shown) -> ExitAnswers:
    """Shows images to a network and takes its answers at every exit.

    Raises:
      ValueError: it has only one exit, or its logits are not finite.
    """
    (graphdef, state), parts = model, []
    for images, labels in shown:
        batches = place_batches(images, shown.at_once, 0, shown.mesh)
        targets = place_batches(labels, shown.at_once, -1, shown.mesh)
        found = map(distributed.fetch, _exit_answers(graphdef, state.params, state.statistics, batches, targets))
        correct, confidence = (array.reshape(-1, array.shape[-1])[: len(labels)] for array in found)
        refuse_not_finite(confidence, shown.condition.corruption)  # NaN is above any threshold
        parts.append([correct, confidence])
    return ExitAnswers(*map(np.concatenate, zip(*parts, strict=True)))


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
