"""Filters that whiten small patches of training images: a first layer that need not be learned."""

from collections.abc import Sequence

import chex
import jax
import numpy as np

from runtime import distributed, meshes
from training.states import TrainState

_IMAGES = 1000  # a million patches at 32 pixels, for a 12 x 12 matrix
_EPSILON = 5e-4  # keeps directions without variance, which hold noise alone, from being blown up


def filters(
    images: np.ndarray, size: int, mean: Sequence[float], std: Sequence[float], epsilon: float = _EPSILON
) -> np.ndarray:
    """Computes whitening filters and their negatives, in the order of falling variance.

    With v_k, l_k the eigenvectors and eigenvalues of E[p p^T], p the flattened patches of the
    normalised images, the filters are v_k / sqrt(l_k + epsilon): their outputs are uncorrelated and
    of second moment l_k / (l_k + epsilon).

    Args:
      images: uint8 [N, H, W, 3].
      size: side of a patch, in pixels.
      mean, std: three floats each, of the input normalisation, on the scale of [0, 1].
      epsilon: keeps directions without variance from being blown up.

    Returns:
      float32 [size, size, 3, 6 size^2], a kernel for NHWC images.
    """
    scaled = (np.asarray(images, np.float64) / 255 - np.asarray(mean)) / np.asarray(std)
    patches = np.lib.stride_tricks.sliding_window_view(scaled, (size, size), axis=(1, 2))  # [N, h, w, 3, size, size]
    flat = np.moveaxis(patches, 3, -1).reshape(-1, 3 * size * size)
    values, vectors = np.linalg.eigh(flat.T @ flat / len(flat))
    kernel = (vectors / np.sqrt(values + epsilon))[:, ::-1].reshape(size, size, 3, -1)
    return np.concatenate([kernel, -kernel], axis=-1).astype(np.float32)


def fitted(state: TrainState, images: np.ndarray | jax.Array) -> TrainState:
    """Fits the variable `whitening` of a model, if it has one, to the first training images.

    Args:
      state: TrainState of a fresh model.
      images: uint8 [N, H, W, 3].
    """
    if "whitening" not in state.statistics:
        return state
    statistics = state.statistics
    normalize = statistics["normalize"]
    size = statistics["whitening"].shape[0]
    kernel = filters(distributed.fetch(images[:_IMAGES]), size, normalize["mean"][...], normalize["std"][...])

    def fill(path, leaf):
        if path[0].key != "whitening":
            return leaf
        chex.assert_shape(kernel, leaf.shape)
        return meshes.place_tree(kernel, leaf.sharding)

    return state._replace(statistics=jax.tree_util.tree_map_with_path(fill, statistics))
