"""The confidence of an answer in ten bytes: enough for likelihood, calibration, scores and selective prediction.

`encode` takes logits, `encode_probabilities` probabilities; `pack` makes the stored array of their results, and `decode`
reads it. What needs whole vectors, such as another temperature or an ensemble, is computed before.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

STORED = np.dtype([("predicted", "<u2"), ("loss", "<u2"), ("rest", "<f4"), ("squares", "<u2")])
"""An answer: the predicted class; round(1024 l), l = -ln p of the label in nats, 65535 from 64 nats on; 1 - k, k the
probability of the prediction, as the sum of the other probabilities; round(60000 sum_c p_c^2)."""
LARGEST_LOSS = 65535
_LOSS, _SQUARES = 1024, 60000
_TOLERANCE = 1e-3  # tolerance of the sum of probabilities: float16 has three digits


class Confidence(NamedTuple):
    """The confidence of N answers in float64, as `decode` gives it.

    Attributes:
      predicted: int [N], classes.
      correct: bool [N], whether they are the labels.
      loss: -ln p of the label, nats, within 2^-11; 64 stands for 64 or more.
      rest: 1 - k, k the probability of the prediction. Ranks need it: near 1, k has too few digits.
      squares: sum over the classes of p^2, within 1e-5.
      clipped: bool [N], where the loss is 64 nats or more.
    """

    predicted: np.ndarray
    correct: np.ndarray
    loss: np.ndarray
    rest: np.ndarray
    squares: np.ndarray
    clipped: np.ndarray

    @property
    def top(self) -> np.ndarray:
        """k, the probability of the prediction, [N]."""
        return 1 - self.rest

    @property
    def brier(self) -> np.ndarray:
        """1 - 2 p_y + sum_c p_c^2, [N]; p_y is k where the prediction is right."""
        return 1 - 2 * np.where(self.correct, self.top, np.exp(-self.loss)) + self.squares


@jax.jit
def encode(logits: jax.Array, labels: jax.Array, predicted: jax.Array, temperature: jax.Array) -> tuple[Any, ...]:
    """Computes the fields of `STORED` for p = softmax(logits / temperature): [...], `rest` NaN where p is not
    defined.

    `logits` are real [..., C], -inf is probability 0; `labels` int [...], below C, a negative one, of an image that
    fills a batch, gets some loss; `predicted` int [...], the class with the largest logit; `temperature` float32,
    above 0.
    """
    scaled = jax.nn.log_softmax(logits.astype(jnp.float32) / temperature)
    return _fields(jnp.exp(scaled), -_of_class(scaled, labels), predicted)


@jax.jit
def encode_probabilities(probabilities: jax.Array, labels: jax.Array, predicted: jax.Array) -> tuple[Any, ...]:
    """Computes the fields of `STORED` for probabilities [..., C], without a temperature; see `encode`."""
    probabilities = probabilities.astype(jnp.float32)
    return _fields(probabilities, -jnp.log(_of_class(probabilities, labels)), predicted)


def _of_class(values, classes):
    return jnp.take_along_axis(values, classes[..., None], -1)[..., 0]


def _fields(probabilities, loss, predicted):
    classes = jax.lax.broadcasted_iota(predicted.dtype, probabilities.shape, probabilities.ndim - 1)
    code = functools.partial(jnp.clip, min=0, max=LARGEST_LOSS)
    return (
        predicted.astype(jnp.uint16),
        code(jnp.round(_LOSS * loss)).astype(jnp.uint16),
        jnp.where(classes == predicted[..., None], 0, probabilities).sum(-1),
        code(jnp.round(_SQUARES * (probabilities**2).sum(-1))).astype(jnp.uint16),
    )


def pack(fields: tuple[Any, ...]) -> np.ndarray:
    """Makes the array `STORED` [N] of fields [N]."""
    stored = np.empty(np.shape(fields[0]), STORED)
    for name, values in zip(STORED.names or (), fields, strict=True):
        stored[name] = np.asarray(values)
    return stored


def decode(stored: np.ndarray, correct: np.ndarray) -> Confidence:
    """Reads an array `STORED` [N]; `correct`, bool [N], says which predictions are right."""
    predicted, loss, rest, squares = (stored[name] for name in ("predicted", "loss", "rest", "squares"))
    clipped = loss == LARGEST_LOSS
    nats = np.where(clipped, 64.0, loss / _LOSS)
    return Confidence(predicted.astype(int), correct, nats, rest.astype(float), squares / _SQUARES, clipped)


def check_probabilities(probabilities: np.ndarray) -> None:
    """Refuses arrays that are not probabilities [N, C]: values outside [0, 1], or a sum that is not 1 within .001."""
    low, high = float(probabilities.min()), float(probabilities.max())
    if low < 0 or high > 1 + _TOLERANCE:
        raise ValueError(
            f"expected probabilities in [0, 1] from predict, found {low:.4g}..{high:.4g}; logits need outputs='logits'"
        )
    sums = probabilities.astype(np.float64).sum(-1)
    wrong = int(np.abs(sums - 1).argmax())
    if abs(sums[wrong] - 1) > _TOLERANCE:
        raise ValueError(
            f"expected probabilities that sum to 1 from predict, found the sum {sums[wrong]:.6g} for image {wrong} of a "
            "batch; logits need outputs='logits'"
        )
