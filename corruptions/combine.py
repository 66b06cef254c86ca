"""Corruptions made of others: one drawn for each image, or several one after the other."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import gradients, levels, registry
from corruptions.chunks import Branch, dealt
from corruptions.levels import Fraction, Levels
from corruptions.record import Corruption, Parameter, Params


def random_choice(
    members: str | Sequence[str | Corruption],
    weights: Sequence[float] | None = None,
    *,
    probability: float = 1.0,
    name: str | None = None,
) -> Corruption:
    """Makes the corruption that draws one of its members for each image.

    All members are in one program, compiled once, and each image goes through its own alone, in a
    batch too (`corrupt`, or one `jax.vmap`). Members have their default options.

    A severity is that of the members where all have the same; of a benchmark that selects levels,
    1, 2, ... are those; else it is a fraction f of each range, of `count` levels 1 + floor(f count).

    Args:
      members: a benchmark, or names and corruptions.
      weights: of each member, not negative; by default all alike.
      probability: of an image to be corrupted at all.
      name: PREFIX/NAME, under which `corruptions.register` makes it known; by default `choice/` and
        what it is made of.

    Returns:
      A corruption; uint8 batches are truncated where all members truncate, else rounded to nearest.

    Raises:
      ValueError: an unknown name, no members, or weights or a probability that are not as
        described.
    """
    benchmark = members if isinstance(members, str) else None
    found = tuple(map(registry.get, registry.names(benchmark) if benchmark else members))
    if weights is not None and len(weights) != len(found):
        raise ValueError(f"expected a weight for each of {len(found)} members, found {len(weights)}")
    shares = tuple(map(float, [1.0] * len(found) if weights is None else weights))
    if found and not (all(share >= 0 for share in shares) and 0 < sum(shares) < np.inf):
        raise ValueError(f"expected weights that are not negative, one of them positive, found {weights}")
    label = benchmark or "+".join(member.name for member in found)
    selected = tuple(registry.selected_levels(member, benchmark) if benchmark else None for member in found)
    return _choice(_checked(found, probability), shares, selected, probability, name or f"choice/{label}")


def compose(*parts: str | Corruption, probability: float = 1.0, name: str | None = None) -> Corruption:
    """Makes the corruption that applies its parts one after the other, without rounding between.

    All parts have one severity, drawn or given, which is understood as in `random_choice`; the
    other draws are independent.

    Args:
      *parts: names and corruptions; the first comes first.
      probability: of an image to be corrupted at all.
      name: PREFIX/NAME, under which `corruptions.register` makes it known; by default `compose/`
        and what it is made of.

    Returns:
      A corruption; uint8 batches are truncated where all parts truncate, else rounded to nearest.

    Raises:
      ValueError: an unknown name, no parts, or a probability that is not as described.
    """
    found = _checked(tuple(map(registry.get, parts)), probability)
    return _composition(found, probability, name or f"compose/{'+'.join(part.name for part in found)}")


def _checked(found: tuple[Corruption, ...], probability: float) -> tuple[Corruption, ...]:
    if not found:
        raise ValueError("expected at least one corruption, found none")
    if not 0 <= probability <= 1:
        raise ValueError(f"expected a probability in [0, 1], found {probability}")
    return found


# Kept, so that a corruption made anew for each batch is one corruption and one compile.
@functools.lru_cache(maxsize=256)
def _choice(
    members: tuple[Corruption, ...],
    shares: tuple[float, ...],
    selected: tuple[tuple[int, ...] | None, ...],
    probability: float,
    name: str,
) -> Corruption:
    scale = _scale(members, selected)
    bounds = probability * np.cumsum(shares) / np.sum(shares)
    # Rounding errors leave no gap between the last member and what is certain to be corrupted.
    bounds[np.flatnonzero(shares)[-1] :] = 2.0 if probability == 1 else probability

    def branches(gradient):
        return [_branch(m, scale, steps, gradient) for m, steps in zip(members, selected, strict=True)]

    docs = (
        "Applies the member that was drawn to the image, or none. Reverse-mode derivatives are of batches only "
        "(`corrupt`).",
        "Draws `which` of the members, one more than there are for none; their own draws follow from `key`, at "
        "`severity`.",
    )
    return _made(name, "choice", members, scale, "which", bounds, branches, docs)


@functools.lru_cache(maxsize=256)
def _composition(parts: tuple[Corruption, ...], probability: float, name: str) -> Corruption:
    scale = _scale(parts, (None,) * len(parts))

    def branches(gradient):
        applied = [_branch(part, scale, None, gradient) for part in parts]

        def all_parts(key, severity, image):
            for part, own in zip(applied, jax.random.split(key, len(applied)), strict=True):
                image = part(own, severity, image)
            return image

        return [all_parts]

    docs = (
        "Applies all parts one after the other, or none. With a probability below 1, reverse-mode derivatives are of "
        "batches only (`corrupt`).",
        "Draws whether the image is `skipped`, 0 or 1; the parts' draws follow from `key`, at `severity`.",
    )
    return _made(name, "composition", parts, scale, "skipped", (probability,), branches, docs)


def _made(name, family, members, scale, drawn, bounds, branches, docs):
    """A corruption that draws the number `drawn` of a branch, the first whose bound is above a
    uniform number, and applies that branch.
    """
    prefix, found, own = name.partition("/")
    if not (prefix and found and own):
        raise ValueError(f"expected name='PREFIX/NAME', found {name!r}")

    def sample(key, shape, severity):
        del shape
        drawn_key, key = jax.random.split(key)
        number = jnp.searchsorted(jnp.asarray(bounds, jnp.float32), jax.random.uniform(drawn_key), side="right")
        return {drawn: number.astype(jnp.int32), "key": key, "severity": severity}

    def applier(gradient):
        possible = branches(gradient)
        certain = len(bounds) == 1 and bounds[0] >= 1
        deal = (lambda number, *rows: possible[0](*rows)) if certain else dealt(possible)

        def apply(image: jax.Array, params: Params) -> jax.Array:
            return deal(params[drawn], params["key"], params["severity"], image)

        return apply

    apply, straight = applier(None), applier(gradients.STRAIGHT_THROUGH)
    apply.__doc__, sample.__doc__ = docs
    rounding = "truncate" if all(member.rounding == "truncate" for member in members) else "nearest"
    listed = ", ".join(member.qualified_name for member in members)
    parameters = (Parameter("members", "corruptions", listed),)
    said = {attribute: _contained(members, attribute) for attribute in ("mixes", "moves")}
    return Corruption(
        own, prefix, family, sample, apply, scale, rounding, parameters, straight_through=straight, **said
    )


def _contained(members, attribute):
    """What the first member has there in words, as words on what is made of the members."""
    return next((f"contains {m.qualified_name}, which {w}" for m in members if (w := getattr(m, attribute))), "")


def _scale(members, selected):
    """The severities of a combination: those of its members where they are the same."""
    scales = {m.scale if steps is None else Levels(len(steps)) for m, steps in zip(members, selected, strict=True)}
    return scales.pop() if len(scales) == 1 else Fraction()


def _branch(
    member: Corruption, scale: Levels | Fraction, selected: tuple[int, ...] | None, gradient: str | None
) -> Branch:
    """Makes `(key, severity, image) -> image` of a corruption, `severity` being one of `scale`."""
    count = member.scale.count if isinstance(member.scale, Levels) else 0
    steps = len(selected) if selected else count

    def own(severity: jax.Array) -> jax.Array:
        if isinstance(scale, Fraction) and steps:
            severity = jnp.clip(jnp.floor(severity * steps) + 1, 1, steps)
        return levels.lookup(selected, severity) if selected else severity

    def branch(key: jax.Array, severity: jax.Array, image: jax.Array) -> jax.Array:
        options: dict[str, Any] = {"interpolate": True} if count else {}
        return member.apply(image, member.sample(key, image.shape, own(severity), **options), gradient=gradient)

    return branch
