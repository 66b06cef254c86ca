"""A classifier as a function from images to logits or probabilities, and its per-image results."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core.batch import to_float
from corruptions.core.checks import FLOATS, one_of
from corruptions.core.dispatch import unmasked
from corruptions.core.errors import Refused, RefusedType
from corruptions.scoring import confidence

BYTES = {"float32": 4, "uint8": 1}
"""{dtype of the images for `predict`: bytes of a value}."""
OUTPUTS = ("logits", "probabilities")
Predict = Callable[[jax.Array], Any]
"""From images [batch_size, H, W, 3] to logits, or probabilities, [batch_size, classes]."""
_to_float = jax.jit(to_float)


class PerImage(NamedTuple):
    """The results of N images."""

    correct: np.ndarray  # bool [N], which are classified correctly
    confidence: np.ndarray  # `confidence.STORED` [N]
    classes: int  # that the classifier tells apart

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Joins the results of parts of the images."""
        correct, encoded = (np.concatenate(arrays) for arrays in list(zip(*parts, strict=True))[:2])
        return cls(correct, encoded, parts[0].classes)


@dataclasses.dataclass(frozen=True, eq=False)
class Classifier:
    """A classifier, for `corruptions.evaluate`. Raises ValueError for another dtype or kind of outputs.

    Attributes:
      predict: function from images [batch_size, H, W, 3], a JAX array, to logits or probabilities [batch_size, classes]: a
        NumPy or JAX array, or any that exports DLPack. It normalises the images itself.
      dtype: dtype of the images for `predict`: `float32`, in [0, 1], or `uint8`.
      outputs: what `predict` returns: `logits`, any real numbers, or `probabilities`, which sum to 1. The confidence of the
        answers follows from it.
      network: name of the classifier, compared with the stored one in place of asking `predict` again: for one that draws
        at random or adapts to its batches.
    """

    predict: Predict
    dtype: str = "float32"
    outputs: str = "logits"
    network: str | None = None

    def __post_init__(self) -> None:
        one_of("dtype", "dtype", self.dtype, BYTES)
        one_of("outputs", "outputs", self.outputs, OUTPUTS)

    def classify(
        self,
        show: Callable[[np.ndarray], Any],
        labels: np.ndarray,
        batch_size: int,
        update: Callable[[int], object] = lambda count: None,
    ) -> PerImage:
        """Classifies all images under one condition; ValueError for outputs that are not as described.

        Args:
          show: from the places of images [n] to these images, uint8 [n, H, W, 3].
          labels: integers [N].
          batch_size: images for `predict`; every batch has as many.
          update: called with the number of images of each batch, for a progress bar.
        """
        if not callable(self.predict):
            expected = f"predict, a function from images to {self.outputs}"
            hint = "corruptions.scoring.folder.read_wrong(path) reads a folder without it"
            raise RefusedType("predict", expected, type(self.predict).__name__, hint)
        parts = []
        for start in range(0, len(labels), batch_size):
            # Copies of the last image fill the last batch: a compiled `predict` sees one shape.
            rows = np.minimum(np.arange(start, start + batch_size), len(labels) - 1)
            of_batch = self._of_batch(show(rows), labels[rows].astype(np.int32))
            number = min(batch_size, len(labels) - start)
            parts.append(of_batch._replace(correct=of_batch.correct[:number], confidence=of_batch.confidence[:number]))
            update(number)
        return PerImage.joined(parts)

    def _of_batch(self, images: Any, labels: np.ndarray) -> PerImage:
        images = _to_float(images) if self.dtype == "float32" else jnp.asarray(images)
        scores = self._scores(self.predict(images), len(labels), int(labels.max()))
        predicted = scores.argmax(-1).astype(np.int32)
        if self.outputs == "logits":
            fields = confidence.encode(scores, labels, predicted, np.float32(1))
        else:
            confidence.check_probabilities(scores)
            fields = confidence.encode_probabilities(scores, labels, predicted)
        return PerImage(predicted == labels, confidence.pack(fields), scores.shape[1])

    def _scores(self, given: Any, number: int, largest: int) -> np.ndarray:
        """Converts what `predict` returned to a NumPy array [number, classes]; refuses anything else."""
        foreign = hasattr(given, "__dlpack__") and not isinstance(given, np.ndarray | jax.Array)
        scores = np.asarray(jax.dlpack.from_dlpack(given) if foreign else unmasked(given))
        if scores.ndim != 2 or scores.shape[0] != number or scores.dtype not in FLOATS:
            hint = "predict(images).astype(numpy.float32)" if scores.ndim == 2 and scores.dtype not in FLOATS else ""
            hint = "classes are not enough, give the score of each" if scores.shape == (number,) else hint
            expected = f"real {self.outputs} [{number}, classes] from predict"
            raise Refused("predict", expected, f"{scores.dtype}{list(scores.shape)}", hint)
        if scores.shape[1] <= max(largest, 1):
            expected = f"{self.outputs} of at least {max(largest, 1) + 1} classes for these labels"
            raise Refused("predict", expected, scores.shape[1])
        top = scores.max(-1)
        if not (top < np.inf).all() or (top == -np.inf).any():
            found = "NaN" if np.isnan(top).any() else "infinity"
            raise Refused("predict", f"{self.outputs} from predict", f"{found} among them")
        return scores
