"""Copies of pixels in raster order, as ImageNet-C's glass blur makes them, without a loop over pixels."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from corruptions.primitives import staging

# A chain of copies of length 2^6 has probability 0.45^64 at the largest reach.
_DOUBLINGS = 6


def sources(shifts: jax.Array, passes: jax.Array, reach: jax.Array, sides: Sequence[Any]) -> jax.Array:
    """Composes passes of copies, each on the result of the one before: int32 [H W], the index y W + x of each source.

    Of the shifts dy and dx, int32 [P, 2, H, W], the first `passes` count, which may be traced; see `copied_from`.
    """

    def one_pass(shifts):
        return copied_from(shifts, reach, sides).ravel()

    def by_need(shifts):
        # Skips passes that no image of a batch has. Not a loop: a slice at a traced place is ten times as slow on a CPU.
        index, most = one_pass(shifts[0]), staging.largest(passes)
        for i in range(1, shifts.shape[0]):

            def one_more(index, i=i):
                return jnp.where(i < passes, look_up(index, one_pass(shifts[i])), index)

            index = jax.lax.cond(i < most, one_more, lambda index: index, index)
        return index

    def at_once(shifts):
        # Each pass of a GPU draws its shifts itself; a loop would read them from memory.
        wanted = (jnp.where(i < passes, part, 0) for i, part in enumerate(shifts))
        return functools.reduce(look_up, map(one_pass, wanted))

    return staging.by_platform(shifts, cuda=at_once, default=by_need)


def copied_from(shifts: jax.Array, reach: jax.Array, sides: Sequence[Any]) -> jax.Array:
    """Finds where each pixel's value comes from in one pass of copies.

    The original visits rows H - d, ..., d + 1 and in each the columns W - d, ..., d + 1 (d the reach), and means to
    swap the pixel with its neighbour at (+dy, +dx), dy and dx in -d..d-1. Its array views copy instead: the pixel
    takes the neighbour's current value, the neighbour keeps its own. A neighbour visited before (inside the loop's
    region and later in raster order) therefore gives the value it has taken itself, any other neighbour its old
    value. Each pixel is thus a pointer; pointers to visited pixels are followed by doubling.

    Args:
      shifts: int32 [2, H, W], dy and dx of each pixel.
      reach: d, int32, may be traced.
      sides: own height and width of a padded image, may be traced; else (H, W).

    Returns the index y W + x of each source in the pass's input, int32 [H, W].
    """
    height, width = shifts.shape[1:]
    y, x = jnp.arange(height)[:, None], jnp.arange(width)[None, :]

    def visited(y, x):
        return (y > reach) & (y <= sides[0] - reach) & (x > reach) & (x <= sides[1] - reach)

    position = y * width + x
    dy, dx = jnp.where(visited(y, x), shifts, 0)
    source = position + dy * width + dx
    follow = visited(y + dy, x + dx) & (source > position)
    arrays = source.ravel(), follow.ravel(), jnp.asarray(reach, jnp.int32)
    return staging.by_platform(*arrays, cuda=_followed_in_short_words, default=_followed).reshape(height, width)


def _followed(source, follow, reach):
    """Follows pointers, int32 [n], where `follow`, until none of the batch is left to follow.

    At once if the reach is 1: then no pixel is visited before its neighbours.
    """

    def doubled(pointer):
        return jnp.where(pointer & 1, look_up(pointer, pointer >> 1), pointer)

    def twice(state):
        pointer = jax.lax.fori_loop(0, 2, lambda _, pointer: doubled(pointer), state[0])
        return pointer, staging.largest(jnp.sum(pointer & 1, dtype=jnp.int32))

    # The lowest bit tells whether to follow the pointer further.
    pointer = 2 * source + follow.astype(jnp.int32)
    return jax.lax.while_loop(lambda state: state[1] > 0, twice, (pointer, staging.largest(reach - 1)))[0] >> 1


def _followed_in_short_words(source, follow, reach):
    """Follows pointers on a GPU, which memory limits: two bytes per pointer if they suffice, and no loop, which
    would copy its carry.
    """
    del reach
    short = jnp.uint16 if source.size <= 2**16 else source.dtype
    # A finished pointer points to itself, so no flag is needed.
    end = staging.stage(jnp.where(follow, source, jnp.arange(source.size)).astype(short))
    for _ in range(_DOUBLINGS):
        end = staging.stage(look_up(end, end))
    return look_up(source, end)


def look_up(values: jax.Array, index: jax.Array) -> jax.Array:
    """Reads values [n, ...] at indices in 0..n-1."""
    return values.at[index].get(mode="promise_in_bounds")
