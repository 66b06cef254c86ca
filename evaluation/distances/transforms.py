"""Distributions of transforms whose features are measured: schemes, corruptions, and none.

Each is two halves, `sample` (all the randomness) and `apply` (none), so that the very same
transform can be applied to many images.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

import corruptions
from corruptions import augment
from corruptions.batch import from_float, to_float
from corruptions.registry import with_levels
from evaluation.conditions import RANDOM, list_conditions
from training.augmentation import STANDARD
from training.names import SUBSETS


@dataclasses.dataclass(frozen=True, eq=False)
class Transform:
    """A distribution of transforms; those with the same two functions share compiled programs.

    Attributes:
      name: for people and files.
      sample: `(key, shape, argument) -> params`.
      apply: `(image, params) -> image`; float32 [H, W, 3] in [0, 1].
      argument: pytree of arrays, or None.
      random: False when all samples are the same.
    """

    name: str
    sample: Callable[..., Any]
    apply: Callable[..., jax.Array]
    argument: Any = None
    random: bool = True


IDENTITY = Transform(STANDARD, lambda key, shape, argument: jnp.zeros(()), lambda image, params: image, random=False)


def of_corruption(
    name: str, severity: int | float | None = None, options: Mapping[str, Any] | None = None
) -> Transform:
    """Makes the distribution of a corruption, its results brought to 8 bits as stored images are.

    Args:
      name: of the corruption.
      severity: level or fraction, which the caller has checked; None draws one for each transform.
      options: static options of the corruption.

    Raises:
      ValueError: an unknown name.
    """
    corruption = corruptions.get(name)
    halves = _corruption_halves(corruption, tuple(sorted((options or {}).items())))
    severity = None if severity is None else jnp.asarray(severity, jnp.float32)
    return Transform(corruption.qualified_name, *halves, severity)


def of_scheme(name: str) -> Transform:
    """Makes the distribution of a scheme; values between 8-bit levels stay, as in training.

    Raises:
      ValueError: an unknown name.
    """
    scheme = augment.get(name)
    sample = _scheme_sample(scheme.sampler, tuple(sorted(scheme.defaults.items())))
    return Transform(scheme.name, sample, scheme.applier, scheme.choices, random=bool(scheme.operations))


def find(names: Iterable[str], options: Mapping[str, Mapping[str, Any]] | None = None) -> list[Transform]:
    """Finds the distributions called `names`, each once.

    Args:
      names: `standard` (images as they are), schemes, `augmix=*`, corruptions and benchmarks (their
        members); corruptions at severities drawn for each transform.
      options: corruption -> its static options.

    Raises:
      ValueError: an unknown name, or none.
    """
    by_name = {}
    for name in names:
        if name == STANDARD:
            by_name[name] = IDENTITY
        elif name == SUBSETS:
            by_name |= {subset: of_scheme(subset) for subset in augment.subsets()}
        elif augment.known(name):
            scheme = of_scheme(name)
            by_name[scheme.name] = scheme
        else:
            by_name |= _corruptions_called(name, options or {})
    if not by_name:
        raise ValueError("expected at least one scheme, found none")
    return list(by_name.values())


def _corruptions_called(name: str, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Transform]:
    """{name: distribution} of a corruption, or of a benchmark's members, at random severities."""
    try:
        conditions = list_conditions((name,), RANDOM)[1:]
    except ValueError as error:
        raise ValueError(f"{error}; schemes: {', '.join(augment.names())}, augmix=..., op=...") from None
    return {
        condition.corruption: of_corruption(
            condition.corruption,
            options=with_levels(options.get(condition.corruption, {}), condition.levels),
        )
        for condition in conditions
    }


@functools.cache
def _corruption_halves(corruption: corruptions.Corruption, options: tuple[tuple[str, Any], ...]) -> tuple:
    options = dict(options)

    def sample(key, shape, severity):
        # Levels are traced here, and then real numbers.
        traced = {"interpolate": True} if severity is not None and "interpolate" in corruption.options else {}
        return corruption.sample(key, shape, severity, **(options | traced))

    def apply(image, params):
        return to_float(from_float(corruption.apply(image, params), jnp.uint8, corruption.rounding))

    return sample, apply


@functools.cache
def _scheme_sample(sampler: Callable[..., Any], options: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    return functools.partial(sampler, **dict(options))
