"""Centres of corruptions from images that each have a draw of their own.

    fbar(c) = mean over i of phi(t_i(x_i)),   t_i drawn anew for each image x_i

costs one image through the network for each pair (x_i, t_i), where `evaluation.distances.centres` shows every
draw to all images. So the C-bar search on ImageNet takes 10,000 pairs (E. Mintun, A. Kirillov, S.
Xie 2021, supplement D).
"""

import functools
import math

import jax
import numpy as np
from flax import nnx

from data import Split
from evaluation.conditions import Condition, file_name
from evaluation.correctness import Model, place_batches, refuse_not_finite
from evaluation.distances import features
from evaluation.distances.centres import Measured
from evaluation.shown import Shown
from runtime import distributed


def centre(measured: Measured, condition: Condition) -> np.ndarray:
    """Measures the mean feature of the images of `measured` under a condition: float64 [D].

    Image i has the draw i of the condition's corruption, the same at every severity, whatever the
    batches are. `chunk` of the settings counts images here.
    """

    def measure():
        network, images = measured.extractor, np.asarray(measured.extractor.images)  # on the host
        split = Split(images, np.zeros(len(images), np.int32), np.arange(len(images), dtype=np.int32))
        size = measured.asked.chunk or features.fitting(math.prod(images.shape[1:]))
        seed, options = measured.asked.seed, measured.options
        shown = Shown(split, network.mesh, min(size, len(images)), seed, options, condition)
        return mean_feature((network.graphdef, network.state), shown)

    return measured.once(f"joint/{file_name(condition)}.npz", "centre", measure)


def mean_feature(model: Model, shown: Shown) -> np.ndarray:
    """Averages the features of the images shown, each once: float64 [D].

    Raises:
      ValueError: features that are not finite.
    """
    (graphdef, state), total = model, 0.0
    for images, _ in shown:
        batches = place_batches(images, shown.batch_size, 0, shown.mesh)
        rows = distributed.fetch(_features(graphdef, state.params, state.statistics, batches))
        rows = rows.reshape(-1, rows.shape[-1])[: len(images)]
        refuse_not_finite(rows, shown.condition.corruption)
        total = total + rows.sum(axis=0, dtype=np.float64)
    return total / len(shown)


@functools.partial(jax.jit, static_argnames=("graphdef",))
def _features(graphdef, params, statistics, images):
    """Features [M, B, D] of M batches of images uint8 [M, B, H, W, 3]."""
    model = nnx.merge(graphdef, params, statistics, copy=True)
    return jax.lax.map(lambda batch: model(batch, train=False)[1][features.FEATURE], images)
