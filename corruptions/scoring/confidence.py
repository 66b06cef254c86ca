"""The confidence of an answer in 14 bytes: enough for likelihood, calibration, scores and selective prediction.

`encode` takes logits, `encode_probabilities` probabilities; `pack` makes the stored array of their results, and `decode`
reads it. What needs whole vectors, such as another temperature or an ensemble, is computed before.

Equal confidences stay equal: whether two answers tie decides their rank, and a last bit decides on which side of the edge
of a bin an answer lies.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

STORED = np.dtype([("predicted", "<u2"), ("loss", "<u2"), ("rest", "<f8"), ("squares", "<u2")])
"""An answer: the predicted class; round(1024 l), l = -ln p of the label in nats, 65535 from 64 nats on; 1 - k, k the
probability of the prediction, or -k where k < 1/2, as 1 - k has fewer digits there; round(60000 sum_c p_c^2)."""
EARLIER = np.dtype([*((name, STORED[name]) for name in ("predicted", "loss")), ("rest", "<f4"), ("squares", "<u2")])
"""The same until version 0.2: 1 - k alone, as the sum of the other probabilities in float32."""
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
      top: k. Bins need it: below 1/2, 1 - k has too few digits.
    """

    predicted: np.ndarray
    correct: np.ndarray
    loss: np.ndarray
    rest: np.ndarray
    squares: np.ndarray
    clipped: np.ndarray
    top: np.ndarray

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
    scaled = logits.astype(jnp.float32) / temperature
    log_p = jax.nn.log_softmax(scaled)
    loss = -jnp.take_along_axis(log_p, labels[..., None], -1)[..., 0]
    # The odds against the prediction, by a sum that does not depend on the order of the classes:
    classes = jax.lax.broadcasted_iota(predicted.dtype, scaled.shape, scaled.ndim - 1)
    others = jnp.where(classes == predicted[..., None], -jnp.inf, scaled)
    second = jnp.maximum(others.max(-1), jnp.finfo(jnp.float32).min)
    odds = jnp.exp(second - scaled.max(-1)) * _sum(jnp.exp(others - second[..., None]))
    odds = jnp.where(jnp.isnan(loss), jnp.nan, odds)
    return _fields(jnp, predicted, loss, 1 / (1 + odds), odds / (1 + odds), jnp.exp(2 * log_p).sum(-1))


def encode_probabilities(probabilities: Any, labels: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, ...]:
    """Computes the fields of `STORED` for probabilities [..., C], without a temperature; see `encode`."""
    digits = float(jnp.finfo(probabilities.dtype).eps)
    p = np.asarray(probabilities, np.float64)
    of_label, top = (np.take_along_axis(p, classes[..., None], -1)[..., 0] for classes in (labels, predicted))
    # Of k alone, so that equal ones stay equal, but where k has too few digits:
    others = np.where(np.arange(p.shape[-1]) == predicted[..., None], 0, p).sum(-1).astype(np.float32)
    with np.errstate(divide="ignore"):
        loss = -np.log(of_label)
    return _fields(np, predicted, loss, top, np.where(1 - top > digits**0.5, 1 - top, others), (p**2).sum(-1))


def _sum(values):
    """Sums up to 65,535 values in [0, 1] along the last axis as integers, within 2^-31 of each."""
    high = jnp.floor(values * 2**15)
    low = jnp.round((values * 2**15 - high) * 2**15)
    high, low = (part.astype(jnp.int32).sum(-1).astype(jnp.float32) for part in (high, low))
    return high / 2**15 + low / 2**30


def _fields(xp, predicted, loss, top, rest, squares):
    code = lambda values: xp.clip(xp.round(values), 0, LARGEST_LOSS).astype(xp.uint16)  # noqa: E731
    rest = xp.where(top < 0.5, -top, rest)
    return predicted.astype(xp.uint16), code(_LOSS * loss), rest, code(_SQUARES * squares)


def pack(fields: tuple[Any, ...]) -> np.ndarray:
    """Makes the array `STORED` [N] of fields [N]."""
    stored = np.empty(np.shape(fields[0]), STORED)
    for name, values in zip(STORED.names or (), fields, strict=True):
        stored[name] = np.asarray(values)
    return stored


def decode(stored: np.ndarray, correct: np.ndarray) -> Confidence:
    """Reads an array `STORED` or `EARLIER` [N]; `correct`, bool [N], says which predictions are right."""
    predicted, loss, rest, squares = (stored[name] for name in STORED.names or ())
    clipped, rest = loss == LARGEST_LOSS, rest.astype(float)
    nats, below = np.where(clipped, 64.0, loss / _LOSS), rest < 0
    rest, top = np.where(below, 1 + rest, rest), np.where(below, -rest, 1 - rest)
    return Confidence(predicted.astype(int), correct, nats, rest, squares / _SQUARES, clipped, top)


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
