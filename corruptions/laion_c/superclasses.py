"""The 16 classes of LAION-C: their members in ImageNet-1k, and their scores from logits of 1,000 classes."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from corruptions.core import checks
from corruptions.core.errors import Refused, RefusedType


def _numbers(text: str) -> tuple[int, ...]:
    """Reads `8 10-12`: 8, 10, 11, 12."""
    ends = (part.partition("-") for part in text.split())
    return tuple(k for first, _, last in ends for k in range(int(first), int(last or first) + 1))


_MEMBERS = {
    "fruit": "948-951 953 954",
    "fish": "0-4 147 148 393-397",
    "tools": "491 499 587 596 740 784 792",
    "instruments": "401 402 420 432 546 558 566 579 593 594 776 881 889",
    "ball": "429 430 768 805 852 890",
    "primate": "365-382",
    "snakes": "52-55 57-68",
    "timekeeping": "409 530 531 826 835 892",
    "chair": "423 559 703 765 831 857",
    "butterfly": "321-326",
    "boat": "472 510 554 576 625 814 914",
    "cat": "281-286",
    "bottle": "440 720 737 898 899 901 907",
    "car_truck": "436 511 555 569 656 675 717 734 817 864 867",
    "bird": "8 10-16 18-20 22-24 80-83 87-96 98-100 127-133 135-145",
    "dog": "152-191 193-203 205-226 228-241 243-250 252-257 259 261-263 265-268",
}
SUPERCLASSES: Mapping[str, Sequence[int]] = MappingProxyType({name: _numbers(text) for name, text in _MEMBERS.items()})
"""{class of LAION-C: numbers of its classes among ImageNet's 1,000}: 285 of them. Source: the released mapping."""


def superclass_scores(
    logits: ArrayLike, reduce: Literal["mean", "sum"] = "mean", classes: Mapping[str, Sequence[int]] = SUPERCLASSES
) -> jax.Array:
    """Scores the classes of LAION-C: the mean or the sum of the probabilities of each one's members.

    The probabilities are the softmax over all classes of the network; classes without a superclass count for none. The answer is
    the largest score: `corruptions.evaluate(lambda x: superclass_scores(predict(x)), images, superclass_labels(labels), ...)`.

    Args:
      logits: [N, K].
      reduce: `mean`, as LAION-C reports, which puts classes with many members at a disadvantage (a dog is one of 109); or `sum`.
      classes: {name: numbers of its members}, in the order of the scores.

    Returns:
      float32 [N, 16], in [0, 1].

    Raises:
      TypeError: logits of other things than real numbers.
      ValueError: another word than `mean` or `sum`, a class without members, or a number that is not below K.
    """
    if reduce not in ("mean", "sum"):
        raise Refused("reduce", "reduce='mean' or 'sum'", repr(reduce))
    given = checks.array(logits, "logits", "iuf")
    if not given.ndim:
        raise RefusedType("logits", "logits [number, classes]", f"the number {given}")
    number = given.shape[-1]
    if empty := [name for name, members in classes.items() if not len(members)]:
        raise Refused("classes", "members of every class", f"none of {', '.join(empty)}")
    if outside := sorted({k for members in classes.values() for k in members if not 0 <= k < number}):
        expected = f"logits of all classes that a superclass holds, up to {outside[-1]}"
        raise Refused("logits", expected, f"{number} logits")
    shares = np.zeros((number, len(classes)), np.float32)
    for column, members in enumerate(classes.values()):
        shares[list(members), column] = 1 / len(members) if reduce == "mean" else 1
    probabilities = jax.nn.softmax(jnp.asarray(given, jnp.float32), axis=-1)
    return jnp.matmul(probabilities, shares, precision=jax.lax.Precision.HIGHEST)


def superclass_labels(labels: ArrayLike, classes: Mapping[str, Sequence[int]] = SUPERCLASSES) -> np.ndarray:
    """Numbers the superclass of each label: int32 [N], -1 where it has none. Such images are to be left out."""
    given = checks.array(labels, "labels", "biuf")
    if np.dtype(given.dtype).kind not in "iu" and given.size:
        hint = "labels.astype(int) of whole numbers"
        raise RefusedType("labels", "labels of integers", f"dtype {given.dtype}", hint)
    numbers = {k: place for place, members in enumerate(classes.values()) for k in members}
    return np.array([numbers.get(int(label), -1) for label in np.ravel(given)], np.int32)
