"""Chamfer distance: how far the nearest edge is, by king's and knight's moves."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import staging, tables

# Costs of the moves of the 5x5 mask that is closest to Euclidean distance (G. Borgefors, "Distance
# transformations in digital images", 1986): along an axis, along a diagonal, knight's move.
_COSTS = (np.float32(1.0), np.float32(1.4), np.float32(2.1969))

# Inside, costs are integers, 160 000 to one unit of length; a diagonal has one less than its share.
# Published distances are running sums in float32, where (rarely) 10 diagonals come out below 14
# axis moves: the one keeps that.
_UNIT = 160_000
_CODES = (_UNIT, 14 * _UNIT // 10 - 1, 21969 * (_UNIT // 10_000))

# A shortest path has two kinds of moves at most, a of one and b of the other. These strides can be
# dealt to both so that each gets its sum, for every a and b within distance 20: seven passes do
# what takes 20 with single moves.
_STRIDES = (1, 1, 1, 2, 3, 4, 7)
_REACH = 20


def chamfer_distance(edges: jax.Array) -> jax.Array:
    """Computes the distance to the nearest pixel of `edges`, capped at 20.

    The smallest sum of costs over paths of king's moves (1 along an axis, 1.4 along a diagonal) and
    knight's moves (2.1969), added up in float32 move by move: the 5x5 distance transform of OpenCV,
    truncated.

    Args:
      edges: bool [H, W].

    Returns:
      float32 [H, W], 0 on edges, 20 where no edge is nearer than that.
    """
    far = _REACH * _UNIT

    def extend(stride, distance):
        margin = 2 * stride
        padded = jnp.pad(distance, margin, constant_values=far)
        height, width = distance.shape
        for (dy, dx), code in _MOVES:
            top, left = margin + stride * dy, margin + stride * dx
            distance = jnp.minimum(distance, padded[top : top + height, left : left + width] + stride * code)
        return distance

    # A loop, though it is short: unrolled, the compiler would fuse the passes and redo each for all
    # moves of the next. Each stride has slices of its own: at a traced place they would be gathers
    # in a batch, on a TPU one image after the other.
    strides = sorted(set(_STRIDES))
    passes = [functools.partial(extend, stride) for stride in strides]

    def in_a_loop(distance):
        numbers = jnp.array([strides.index(stride) for stride in _STRIDES])
        return jax.lax.scan(
            lambda distance, number: (jax.lax.switch(number, passes, distance), None), distance, numbers
        )[0]

    def in_turn(distance):
        # A GPU's loop copies what it carries; what is staged is not fused there.
        for stride in _STRIDES:
            distance = staging.stage(extend(stride, distance))
        return distance

    start = jnp.where(edges, 0, far).astype(jnp.int32)
    distance = jax.lax.platform_dependent(start, cuda=in_turn, default=in_a_loop)
    modulus, table = _float_sums()
    # Of each image's own draws: a TPU's compiler takes twenty times as long where a batch shares a table.
    table = jnp.where(jnp.any(edges), table, np.float32(_REACH))
    return tables.look_up(table, distance % modulus)


_MOVES = tuple(
    ((dy, dx), _CODES[{1: 0, 2: 1, 5: 2}[dy * dy + dx * dx]])
    for dy in range(-2, 3)
    for dx in range(-2, 3)
    if dy * dy + dx * dx in (1, 2, 5)
)


@functools.cache
def _float_sums():
    """(modulus, table): `table[code % modulus]` is the distance with that integer code."""
    sums = {}  # of (moves by kind) -> smallest float32 sum over the orders of the moves
    reachable = {(0, 0, 0): np.float32(0)}
    while reachable:
        sums.update(reachable)
        step = {}
        for moves, total in reachable.items():
            for kind, cost in enumerate(_COSTS):
                more = tuple(m + (k == kind) for k, m in enumerate(moves))
                if total + cost < _REACH and not (more[0] and more[1]):  # axis and diagonal make a knight's move
                    step[more] = min(step.get(more, np.float32(_REACH)), total + cost)
        reachable = step
    codes = {sum(m * c for m, c in zip(moves, _CODES, strict=True)): total for moves, total in sums.items()}
    codes[_REACH * _UNIT] = np.float32(_REACH)
    modulus = next(m for m in range(len(codes), 100_000) if len({code % m for code in codes}) == len(codes))
    table = np.zeros(modulus, np.float32)
    for code, total in codes.items():
        table[code % modulus] = total
    return modulus, table
