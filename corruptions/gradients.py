"""Gradients where a definition rounds: zero as they are, or those of the formula without rounding."""

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from corruptions.record import Applier, Corruption

STRAIGHT_THROUGH = "straight_through"


def chosen(corruption: "Corruption", gradient: str | None) -> "Corruption":
    """Returns the corruption with the derivative that is asked for.

    Args:
      corruption: gives the same images either way.
      gradient: None, the derivative of what is computed; or `straight_through`, that of the formula
        without rounding, by the image alone.

    Raises:
      ValueError: another word.
    """
    if gradient is None:
        return corruption
    if gradient != STRAIGHT_THROUGH:
        raise ValueError(f"expected gradient=None or {STRAIGHT_THROUGH!r}, found {gradient!r}")
    return corruption if corruption.straight_through is None else _straight_through(corruption)


@functools.lru_cache(maxsize=256)
def _straight_through(corruption):
    return dataclasses.replace(corruption, applier=corruption.straight_through)


def with_derivative(exact: "Applier", smooth: "Applier") -> "Applier":
    """Makes a function with the values of `exact` and the derivative of `smooth` by the image."""

    @jax.custom_jvp
    @functools.wraps(exact)
    def apply(image: jax.Array, params: Any) -> jax.Array:
        return exact(image, params)

    @apply.defjvp
    def derive(primals, tangents):
        image, params = primals
        return apply(image, params), jax.jvp(lambda x: smooth(x, params), (image,), tangents[:1])[1]

    return apply
