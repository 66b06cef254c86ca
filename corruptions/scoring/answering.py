"""Asks any classifier which images it answers correctly; no image is dropped, whatever the batch size."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.batch import to_float
from corruptions.checks import image_shape
from corruptions.keys import image_index, integers, seed_key

DTYPES = ("float32", "uint8")
Predict = Callable[[jax.Array], Any]
"""From images [batch_size, H, W, 3] to logits [batch_size, classes]."""
_to_float = jax.jit(to_float)


def checked(
    images: Any, labels: Any, index: Any, seed: int, dtype: str, batch_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Checks the arguments of `evaluate`; returns labels and index, integers [N]; the default index is
    0 .. N - 1.

    Raises:
      ValueError, TypeError: names what was expected and what was found.
    """
    labels = np.asarray(labels)
    index = np.arange(len(labels)) if index is None else np.asarray(integers(index))
    kind = getattr(images, "dtype", type(images).__name__)
    if np.ndim(images) != 4 or np.shape(images)[-1] != 3 or kind != np.uint8:
        raise TypeError(f"expected images uint8[N, H, W, 3], found {kind}{list(np.shape(images))}")
    image_shape(images.shape[1:])
    number = len(images)
    if number == 0:
        raise ValueError("expected at least one image, found none")
    for name, array in (("labels", labels), ("index", index)):
        if array.shape != (number,) or array.dtype.kind not in "iu":
            raise ValueError(f"expected {name} of integers [{number}], found {array.dtype}{list(array.shape)}")
    if labels.min() < 0:
        raise ValueError(f"expected labels from 0 up, found {labels.min()}")
    if dtype not in DTYPES:
        raise ValueError(f"expected dtype among {', '.join(DTYPES)}, found {dtype!r}")
    if batch_size < 1:
        raise ValueError(f"expected batch_size of at least 1, found {batch_size}")
    image_index(index, number)  # refuses a wrong index
    seed_key(seed)  # refuses a wrong seed
    return labels, index


def correct(
    predict: Predict,
    show: Callable[[np.ndarray], Any],
    labels: np.ndarray,
    batch_size: int,
    dtype: str,
    update: Callable[[int], object] = lambda count: None,
) -> np.ndarray:
    """Asks a classifier about all images under one condition.

    Args:
      predict: the classifier.
      show: from the places of images [n] to these images, uint8 [n, H, W, 3].
      labels: integers [N].
      batch_size: images for `predict`; every batch has as many.
      dtype: of the images for `predict`.
      update: called with the number of images of each batch, for a progress bar.

    Returns:
      bool [N], which images are answered correctly.
    """
    right = []
    for start in range(0, len(labels), batch_size):
        # Copies of the last image fill the last batch: a compiled `predict` sees one shape.
        rows = np.minimum(np.arange(start, start + batch_size), len(labels) - 1)
        images = show(rows)
        images = _to_float(images) if dtype == "float32" else jnp.asarray(images)
        logits = _logits(predict(images), batch_size, int(labels[rows].max()))
        number = min(batch_size, len(labels) - start)
        right.append((logits.argmax(-1) == labels[rows])[:number])
        update(number)
    return np.concatenate(right)


def _logits(answer: Any, number: int, largest: int) -> np.ndarray:
    """Converts the answer of `predict` to a NumPy array [number, classes]; refuses anything else."""
    foreign = hasattr(answer, "__dlpack__") and not isinstance(answer, np.ndarray | jax.Array)
    logits = np.asarray(jax.dlpack.from_dlpack(answer) if foreign else answer)
    if logits.ndim != 2 or logits.shape[0] != number or logits.dtype.kind not in "fV":
        raise ValueError(
            f"expected real logits [{number}, classes] from predict, found {logits.dtype}{list(logits.shape)}"
        )
    if logits.shape[1] <= largest:
        raise ValueError(f"expected logits of at least {largest + 1} classes for these labels, found {logits.shape[1]}")
    if np.isnan(logits).any():
        raise ValueError("expected logits from predict, found NaN among them")
    return logits
