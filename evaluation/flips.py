"""The best classes of trained networks on every frame of sequences."""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from analysis.answers import Key
from analysis.flips import BEST
from data.sequences import Sequences
from evaluation import correctness
from evaluation.correctness import Model, refuse_not_finite
from runtime import distributed
from runtime.progress import bar


def best_classes(
    models: Mapping[Key, Model], sequences: Sequences, batch_size: int, mesh: jax.sharding.Mesh
) -> dict[Key, np.ndarray]:
    """Shows all frames of one perturbation to every model.

    Args:
      models: {(name, seed): (graphdef, state)}.
      sequences: of the perturbation, frames of the models' size.
      batch_size: frames at once; whole sequences where one fits.
      mesh: devices, over which each batch is split.

    Returns:
      {(name, seed): int32 [sequences, frames, 5]}, classes of the largest logits, best first; of
      networks of fewer classes all.

    Raises:
      ValueError: a frame cannot be read, or a network's logits are not finite.
    """
    number, length = sequences.shape[:2]
    step, parts = max(1, batch_size // length), {key: [] for key in models}
    for start in bar("batch", range(0, number, step)):
        pixels = sequences.read(start, min(start + step, number))
        frames = pixels.reshape(-1, *pixels.shape[2:])
        batches = correctness.place_batches(jnp.asarray(frames), batch_size, 0, mesh)
        for key, (graphdef, state) in models.items():
            found = _best(graphdef, state.params, state.statistics, batches)
            logits, best = (distributed.fetch(x).reshape(-1, x.shape[-1])[: len(frames)] for x in found)
            refuse_not_finite(logits, sequences.name)
            parts[key].append(best.reshape(-1, length, best.shape[-1]))
    return {key: np.concatenate(found) for key, found in parts.items()}


@functools.partial(jax.jit, static_argnames=("graphdef",))
def _best(graphdef: nnx.GraphDef, params: Any, statistics: Any, images: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The largest logits, float32 [M, B, 5], and their classes, int32, of uint8 images [M, B, H, W,
    3]; of equal ones the lower class is first.
    """
    model = nnx.merge(graphdef, params, statistics, copy=True)

    def of_batch(batch):
        logits = model(batch, train=False)[0]
        return jax.lax.top_k(logits, min(BEST, logits.shape[-1]))

    return jax.lax.map(of_batch, images)
