"""Distances of single transforms to single corruptions, measured again and again with other images
and draws (`analysis.distances.experiments`).
"""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from analysis.distances.experiments import nested_distances
from evaluation.distances.centres import IMAGES, Measured
from evaluation.distances.transforms import Transform


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

    Each resampling takes max(images) training images without replacement and max(draws) draws of
    the corruption; smaller numbers take the first of both, so that the resamplings of any cell are
    independent of each other. a and c are shown to the same images.

    Args:
      measured: the network and where its images come from.
      transform: the distribution that a is drawn from.
      number: which of its draws a is, and which pair this is.
      corruption: the distribution of c's draws.
      resamplings: how many.
      images, draws: numbers of both.

    Returns:
      float64 [resamplings, len(images), len(draws)].
    """
    most = max(images)
    prefixes = np.stack([(np.arange(most) < size) / np.float32(size) for size in images]).astype(np.float32)
    name = f"pair {number}"
    rng = measured.generator(IMAGES, name)
    index = np.full(measured.extractor.mesh.shape["data"], number)  # one of them on each device
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
