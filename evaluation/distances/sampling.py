"""Means over images with one draw each; pools of transforms; repeated measurements of pairs."""

import dataclasses
import functools
import math
from collections.abc import Sequence

import jax
import numpy as np
from flax import nnx

from analysis.distances.experiments import nested_distances
from corruptions.scoring.conditions import Condition
from data import Split
from evaluation import bound
from evaluation.correctness import Model, place_batches, refuse_not_finite
from evaluation.distances import features
from evaluation.distances.centres import IMAGES, Measured
from evaluation.distances.features import Transform
from evaluation.shown import Shown
from runtime import distributed
from runtime.log import bar


def centre(measured: Measured, condition: Condition) -> np.ndarray:
    """Measures the mean feature of the images of `measured` under a condition: float64 [D].

    Image i has the draw i of the condition's corruption, the same at every severity, whatever the batches are. `chunk`
    of the settings counts images here.
    """

    network, images = measured.extractor, np.asarray(measured.extractor.images)  # on the host
    split = Split(images, np.zeros(len(images), np.int32), np.arange(len(images), dtype=np.int32))
    size = measured.asked.chunk or features.fitting(math.prod(images.shape[1:]))
    seed, options, about = measured.asked.seed, measured.options, {"imports": measured.imports}
    shown = Shown(split, network.mesh, min(size, len(images)), seed, options, condition, about=about)

    def measure():
        return mean_feature((network.graphdef, network.state), shown)

    return measured.once(f"joint/{condition.stem}.npz", "centre", measure, bound.of_shown(shown))


def mean_feature(model: Model, shown: Shown) -> np.ndarray:
    """Averages the features of the images shown, each once: float64 [D]; ValueError: features that are not finite."""
    (graphdef, state), total = model, 0.0
    for images, _ in shown:
        batches = place_batches(images, shown.at_once, 0, shown.mesh)
        rows = distributed.fetch(_features(graphdef, state.params, state.statistics, batches))
        rows = rows.reshape(-1, rows.shape[-1])[: len(images)]
        refuse_not_finite(rows, shown.condition.corruption)
        total = total + rows.sum(axis=0, dtype=np.float64)
    return total / len(shown)


@functools.partial(jax.jit, static_argnames=("graphdef",))
def _features(graphdef, params, statistics, images):
    """Computes features [M, B, D] of M batches of images uint8 [M, B, H, W, 3]."""
    model = nnx.merge(graphdef, params, statistics, copy=True)
    return jax.lax.map(lambda batch: model(batch, train=False)[1][features.FEATURE], images)


# Distances of many transforms of one scheme, by number.

PART = 4096
"""Transforms whose distances are saved together."""


def pool_distances(measured: Measured, scheme: Transform, pool: int, centres: np.ndarray) -> np.ndarray:
    """Measures the distances [pool, m] of transforms of a scheme to the centres [m, D]."""
    key, made = measured.scheme_key(scheme), measured.part(scheme)

    def measure(first):
        number = min(PART, pool - first)
        chunks = measured.extractor.stream(scheme, key, number, first=first, description=scheme.name)
        return np.concatenate([np.linalg.norm(chunk[:, :1].astype(np.float64) - centres, axis=-1) for chunk in chunks])

    parts = bar("part", range(0, pool, PART), desc=scheme.name)
    return np.concatenate(
        [
            measured.once(f"pool/{first}.npz", "distances", functools.partial(measure, first), made, centres)
            for first in parts
        ]
    )


# Distances of single transforms with other images and draws.


def pair_distances(
    measured: Measured,
    transform: Transform,
    number: int,
    corruption: Transform,
    resamplings: int,
    images: Sequence[int],
    draws: Sequence[int],
) -> np.ndarray:
    """Measures |f(a) - fbar(c)| of one transform a and one corruption c in every resampling.

    Each resampling takes max(images) training images without replacement and max(draws) draws of the corruption;
    smaller numbers take the first of both, so that the resamplings of any cell are independent of each other. a and c
    are shown to the same images.

    Args:
      measured: the network and where its images come from.
      transform, number: the distribution of a, and the number of its draw, which is the number of the pair.
      corruption: the distribution of c's draws.
      resamplings: number of resamplings.
      images, draws: numbers of both.

    Returns:
      float64 [resamplings, len(images), len(draws)].
    """
    most = max(images)
    prefixes = np.stack([(np.arange(most) < size) / np.float32(size) for size in images]).astype(np.float32)
    name = f"pair {number}"
    rng = measured.generator(IMAGES, name)
    index = np.full(measured.extractor.mesh.shape["data"], number)  # a copy for each device
    params = measured.params(transform, index)
    distances = []
    for k in range(resamplings):
        rows = rng.choice(len(measured.split), most, replace=False)
        shown = measured.with_images(rows, prefixes)
        shown = dataclasses.replace(shown, chunk=min(shown.chunk, max(draws)))
        key = jax.random.fold_in(measured.key(name), k)
        drawn = list(shown.stream(corruption, key, max(draws), description=name))
        single = np.asarray(shown(transform.apply, params))[0]
        distances.append(nested_distances(single, np.concatenate(drawn), draws))
    return np.stack(distances)
