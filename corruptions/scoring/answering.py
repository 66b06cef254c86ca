"""Which images a classifier answers correctly under each condition; nothing is dropped, whatever
the batch size.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.batch import to_float
from corruptions.checks import image_shape
from corruptions.keys import image_index, integers, seed_key
from corruptions.scoring.conditions import Condition
from corruptions.write import progress as bars

DTYPES = ("float32", "uint8")
Predict = Callable[[jax.Array], Any]
"""From images [batch_size, H, W, 3] to logits [batch_size, classes]."""
Show = Callable[[Condition, np.ndarray], Any]
"""From a condition and the places of images [n] to these images, uint8 [n, H, W, 3]."""
_to_float = jax.jit(to_float)


class Kept(Protocol):
    """Where answers are kept, each condition as soon as it is finished."""

    def read(self, condition: Condition) -> np.ndarray | None:
        """Reads which images were answered correctly, bool [N]; None of what was not evaluated."""

    def write(self, condition: Condition, correct: np.ndarray) -> None:
        """Writes what `read` gives from then on."""


def checked(
    images: Any, labels: Any, index: Any, seed: int, dtype: str, batch_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Gives labels and index as integers [N], where all of these can be evaluated; no index is 0 .. N - 1.

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
    image_index(index, number)  # which refuses what is none, as the next does
    seed_key(seed)
    return labels, index


def answers(
    predict: Predict,
    show: Show,
    labels: np.ndarray,
    conditions: Iterable[Condition],
    *,
    batch_size: int,
    dtype: str,
    progress: bool | None,
    kept: Kept | None = None,
) -> dict[Condition, np.ndarray]:
    """Asks a classifier under every condition, but for the answers that are kept already.

    Args:
      predict: the classifier.
      show: the images under a condition.
      labels: integers [N].
      conditions: which; each finished one is kept before the next begins.
      batch_size: images for `predict`, always as many.
      dtype: of the images for `predict`.
      progress: see `corruptions.write.progress.bar`.
      kept: earlier answers.

    Returns:
      {condition: bool [N], which images are answered correctly}.
    """
    known = {condition: kept.read(condition) if kept else None for condition in conditions}
    missing = [condition for condition, correct in known.items() if correct is None]
    with bars.bar(len(missing) * len(labels), "evaluating", progress) as bar:
        for condition in missing:
            bar.set_description(str(condition))
            known[condition] = correct = _correct(
                predict, functools.partial(show, condition), labels, batch_size, dtype, bar
            )
            if kept:
                kept.write(condition, correct)
    return {condition: correct for condition, correct in known.items() if correct is not None}


def _correct(predict, show, labels, size, dtype, bar):
    """Which of the images shown `predict`, given whole batches, answers correctly: bool [N]."""
    correct = []
    for start in range(0, len(labels), size):
        # Copies of the last image fill the last batch: a compiled `predict` sees one shape.
        rows = np.minimum(np.arange(start, start + size), len(labels) - 1)
        images = show(rows)
        images = _to_float(images) if dtype == "float32" else jnp.asarray(images)
        logits = _logits(predict(images), size, int(labels[rows].max()))
        number = min(size, len(labels) - start)
        correct.append((logits.argmax(-1) == labels[rows])[:number])
        bar.update(number)
    return np.concatenate(correct)


def _logits(answer: Any, number: int, largest: int) -> np.ndarray:
    """What `predict` gave as a NumPy array [number, classes], refused when it is something else."""
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
