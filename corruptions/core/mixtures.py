"""Corruptions made of other corruptions: one drawn for each image, or several in turn."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core import registry
from corruptions.core.corruption import STRAIGHT_THROUGH, Corruption, Parameter, Params
from corruptions.core.errors import Refused
from corruptions.core.severity import Fraction, Levels, lookup
from corruptions.primitives import staging

# A branch corrupts one image: (key, severity, image) -> image.
Branch = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]

# Images of a kind go through their corruption in chunks. With four times as many chunks as kinds, an eighth of the work
# is padding.
_CHUNKS_PER_KIND = 4
# A TPU pays for 8 images even when a chunk has fewer. ImageNet-C's 15 take 3.0 times as long per image in chunks of 4
# as in 128, 1.2 times in chunks of 8 (a v5e by its compiler's model, 224x224).
_LEAST_OF_TPU = 8


def random_choice(
    members: str | Sequence[str | Corruption],
    weights: Sequence[float] | None = None,
    *,
    probability: float = 1.0,
    name: str | None = None,
) -> Corruption:
    """Makes the corruption that draws one of its members for each image.

    All members are in one program, compiled once, and each image goes through its own alone, in a batch too (`corrupt`,
    or one `jax.vmap`). Members have their default options.

    A severity has the meaning it has for the members, if they all share one. With a benchmark that selects levels, 1,
    2, ... are the selected ones. Otherwise a severity is a fraction f of each range; of `count` levels it takes 1 +
    floor(f count).

    Args:
      members: a benchmark, or names and corruptions.
      weights: a weight for each member, not negative; by default all equal.
      probability: probability that an image is corrupted at all.
      name: PREFIX/NAME, for `corruptions.register`; by default `choice/` and the members' names.

    Returns:
      A corruption; uint8 batches are truncated where all members truncate, else rounded to nearest.

    Raises:
      ValueError: an unknown name, no members, or weights or a probability that are not as described.
    """
    benchmark = members if isinstance(members, str) else None
    found = tuple(map(registry.get, registry.names(benchmark) if benchmark else members))
    if weights is not None and len(weights) != len(found):
        raise Refused("weights", f"a weight for each of {len(found)} members", len(weights))
    shares = tuple(map(float, [1.0] * len(found) if weights is None else weights))
    if found and not (all(share >= 0 for share in shares) and 0 < sum(shares) < np.inf):
        raise Refused("weights", "weights that are not negative, one of them positive", weights)
    label = benchmark or "+".join(member.name for member in found)
    selected = tuple(registry.selected_levels(member, benchmark) if benchmark else None for member in found)
    return _choice(_checked(found, probability), shares, selected, probability, name or f"choice/{label}")


def compose(*parts: str | Corruption, probability: float = 1.0, name: str | None = None) -> Corruption:
    """Makes the corruption that applies its parts one after the other, without rounding between.

    All parts have one severity, drawn or explicit, with the meaning described at `random_choice`; their other draws are
    independent.

    Args:
      *parts: names and corruptions; the first comes first.
      probability: probability that an image is corrupted at all.
      name: PREFIX/NAME, for `corruptions.register`; by default `compose/` and the parts' names.

    Returns:
      A corruption; uint8 batches are truncated where all parts truncate, else rounded to nearest.

    Raises:
      ValueError: an unknown name, no parts, or a probability that is not as described.
    """
    found = _checked(tuple(map(registry.get, parts)), probability)
    return _composition(found, probability, name or f"compose/{'+'.join(part.name for part in found)}")


def _checked(found: tuple[Corruption, ...], probability: float) -> tuple[Corruption, ...]:
    if not found:
        raise Refused("members", "at least one corruption", "none")
    if ranged := [member for member in found if member.value_range is not None]:
        raise Refused("members", "members of images in [0, 1]", repr(ranged[0]), "get(made of them, value_range=...)")
    if not 0 <= probability <= 1:
        raise Refused("probability", "a probability in [0, 1]", probability)
    return found


# Cached, so that equal corruptions made for every batch are the same object and compile once.
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
    # Close the gap that rounding errors may leave between the last member's bound and the probability.
    bounds[np.flatnonzero(shares)[-1] :] = 2.0 if probability == 1 else probability

    def branches(gradient):
        return [_branch(m, scale, steps, gradient) for m, steps in zip(members, selected, strict=True)]

    docs = (
        "Applies the drawn member to the image, or none. Reverse-mode derivatives are of batches only (`corrupt`).",
        "Draws the number `which` of a member, or the number of members for none; their own draws follow from `key`, at "
        "`severity`.",
    )
    remade = lambda others: _choice(others, shares, selected, probability, name)  # noqa: E731
    return _made(name, "choice", members, scale, "which", bounds, branches, docs, remade)


@functools.lru_cache(maxsize=256)
def _composition(parts: tuple[Corruption, ...], probability: float, name: str) -> Corruption:
    scale = _scale(parts, (None,) * len(parts))

    def branches(gradient):
        applied = [_branch(part, scale, None, gradient) for part in parts]

        def all_parts(key, severity, image):
            for part, own_key in zip(applied, jax.random.split(key, len(applied)), strict=True):
                image = part(own_key, severity, image)
            return image

        return [all_parts]

    docs = (
        "Applies all parts one after the other, or none. With a probability below 1, reverse-mode derivatives are of "
        "batches only (`corrupt`).",
        "Draws whether the image is `skipped`, 0 or 1; the parts' draws follow from `key`, at `severity`.",
    )
    remade = lambda others: _composition(others, probability, name)  # noqa: E731
    return _made(name, "composition", parts, scale, "skipped", (probability,), branches, docs, remade)


def _made(name, family, members, scale, drawn, bounds, branches, docs, remade):
    """Makes a corruption that draws the number `drawn` of a branch, the first whose bound is above a uniform number,
    and applies that branch.
    """
    prefix, found, own = name.partition("/")
    if not (prefix and found and own):
        raise Refused("name", "name='PREFIX/NAME'", repr(name))

    def sample(key, shape, severity):
        del shape
        drawn_key, key = jax.random.split(key)
        number = jnp.searchsorted(jnp.asarray(bounds, jnp.float32), _fine_uniform(drawn_key), side="right")
        return {drawn: number.astype(jnp.int32), "key": key, "severity": severity}

    def applier(gradient):
        possible = branches(gradient)
        certain = len(bounds) == 1 and bounds[0] >= 1
        choose = (lambda number, *rows: possible[0](*rows)) if certain else chosen(possible)

        def apply(image: jax.Array, params: Params) -> jax.Array:
            return choose(params[drawn], params["key"], params["severity"], image)

        return apply

    apply, straight_through = applier(None), applier(STRAIGHT_THROUGH)
    apply.__doc__, sample.__doc__ = docs
    return Corruption(
        own,
        prefix,
        family,
        sample,
        apply,
        scale,
        "truncate" if all(member.rounding == "truncate" for member in members) else "nearest",
        (Parameter("members", "corruptions", ", ".join(member.qualified_name for member in members)),),
        mixes=_first_words(members, "mixes"),
        straight_through=straight_through,
        moves=_first_words(members, "moves"),
        members=members,
        remade=remade,
    )


def _fine_uniform(key):
    """Draws from U[0, 1) as `jax.random.uniform`, whose numbers are multiples of 2^-23; those below 2^-12, on which small
    probabilities hang, are followed by 23 more bits.
    """
    coarse = jax.random.uniform(key)
    fine = coarse + jax.random.uniform(jax.random.fold_in(key, 1)) * jnp.float32(2.0**-23)
    return jnp.where(coarse < 2.0**-12, fine, coarse)


def _first_words(members, attribute):
    """Returns the words of the first member that has some, as words on the corruption made of the members."""
    return next((f"contains {m.qualified_name}, which {w}" for m in members if (w := getattr(m, attribute))), "")


def _scale(members, selected):
    """Returns the scale that all members share, else `Fraction`."""
    scales = {m.scale if steps is None else Levels(len(steps)) for m, steps in zip(members, selected, strict=True)}
    if len(scales) == 1:
        return scales.pop()
    kinds = {}  # the first member of each
    for member, steps in zip(members, selected, strict=True):
        kinds.setdefault(len(steps or ()) or getattr(member.scale, "count", 0), member.qualified_name)
    return Fraction(", ".join(f"{name} 1..{count}" if count else f"{name} in [0, 1]" for count, name in kinds.items()))


def _branch(
    member: Corruption, scale: Levels | Fraction, selected: tuple[int, ...] | None, gradient: str | None
) -> Branch:
    """Makes `(key, severity, image) -> image` of a corruption, for severities of `scale`."""
    count = member.scale.count if isinstance(member.scale, Levels) else 0
    steps = len(selected) if selected else count

    def own_severity(severity: jax.Array) -> jax.Array:
        if isinstance(scale, Fraction) and steps:
            severity = jnp.clip(jnp.floor(severity * steps) + 1, 1, steps)
        return lookup(selected, severity) if selected else severity

    def branch(key: jax.Array, severity: jax.Array, image: jax.Array) -> jax.Array:
        options: dict[str, Any] = {"interpolate": True} if count else {}
        params = member.sample(key, image.shape, own_severity(severity), **options)
        return member.apply(image, params, gradient=gradient)

    return branch


def chosen(branches: Sequence[Branch]) -> Callable[..., jax.Array]:
    """Makes `(which, key, severity, image) -> image`, which applies `branches[which]`, or nothing where there is no
    such branch. Under `vmap` each image goes only through its own branch.
    """
    none: Branch = lambda key, severity, image: image  # noqa: E731

    @jax.custom_batching.custom_vmap
    def choose(which, key, severity, image):
        return jax.lax.switch(which, (*branches, none), key, severity, image)

    @choose.def_vmap
    def choose_in_batch(number, batched, which, *rows):
        axes = tuple(0 if split else None for split in batched[1:])
        mapped = [jax.vmap(branch, axes, axis_size=number) for branch in (*branches, none)]
        if not batched[0]:
            return jax.lax.switch(which, mapped, *rows), True
        key, severity, images = (
            row if split else jnp.broadcast_to(row, (number, *row.shape)) for row, split in zip(rows, batched[1:])
        )
        return _by_branch(branches, which, key, severity, images), True

    return choose


def _by_branch(branches, which, *rows):
    """Applies to each image the branch `which`, to chunks of images that share it.

    XLA has no branch for each row of an array: under `vmap` a switch computes all of them on all images. So images are
    sorted by branch, and a loop runs over chunks of one branch each.
    """
    number, kinds = which.shape[0], len(branches)
    if number == 0:
        return rows[-1]
    if jax.export.is_symbolic_dim(number):
        size = of_tpu = 1
    else:
        size = max(1, number // (_CHUNKS_PER_KIND * kinds))
        of_tpu = max(1, size // _LEAST_OF_TPU) * _LEAST_OF_TPU if number >= 2 * kinds else size
    by_chunks, by_chunks_of_tpu = (functools.partial(_by_chunks, branches, n) for n in (size, of_tpu))
    if size == of_tpu:  # traced once
        return by_chunks(which, *rows)
    return staging.by_platform(which, *rows, tpu=by_chunks_of_tpu, default=by_chunks)


def _by_chunks(branches, size, which, key, severity, images):
    """Applies to each image the branch `which`, in chunks of `size` images."""
    number, kinds = which.shape[0], len(branches)
    order = jnp.argsort(which)
    count = jnp.bincount(which, length=kinds + 1)[:kinds]
    chunks, stop = -(-count // size), jnp.cumsum(count)
    begin, last_chunk = stop - count, jnp.cumsum(chunks)
    first_chunk = last_chunk - chunks

    def of_chunk(turn):
        kind = jnp.searchsorted(last_chunk, turn, side="right")
        start = begin[kind] + (turn - first_chunk[kind]) * size
        # The last chunk of a kind is filled up with its last image.
        place = order[jnp.minimum(start + jnp.arange(size), stop[kind] - 1)]
        own = (key[place], severity[place], images[place])
        return jax.lax.switch(kind, [*map(jax.vmap, branches), lambda k, s, x: x], *own)

    corrupted = jax.lax.map(of_chunk, jnp.arange(number // size + kinds)).reshape(-1, *images.shape[1:])
    kind = jnp.minimum(which, kinds - 1)
    place = first_chunk[kind] * size + jnp.argsort(order) - begin[kind]
    drew_one = (which < kinds).reshape(-1, *[1] * (images.ndim - 1))
    return jnp.where(drew_one, corrupted[jnp.where(which < kinds, place, 0)], images)
