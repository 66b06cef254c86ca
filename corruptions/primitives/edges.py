"""Edges and relief of an 8-bit image, in integers: Canny edges, chamfer distance, histogram equalisation."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import filters, staging

# tan(22.5 degrees) in 15-bit fixed point, as OpenCV has it.
_TANGENT = 13573


def canny(levels: jax.Array, low: int, high: int) -> jax.Array:
    """Finds the edges of levels 0..255, int32 [H, W], bit for bit as `cv2.Canny(levels, low, high)`: bool [H, W].

    1. Gradient g = (gx, gy) by 3x3 Sobel filters, the edge pixels repeated outwards; magnitude |gx| + |gy|, 0..2040,
       taken as 0 outside the image.
    2. A pixel is kept where the magnitude exceeds `low` and is a maximum along the gradient's direction, rounded to a
       multiple of 45 degrees; of two equal neighbours along a row or column the first is kept, along a diagonal none.
    3. Hysteresis: kept pixels above `high`, and all kept pixels connected to them through kept pixels (8 neighbours).
    """
    padded = filters.extended(levels, 1, (0, 1), "edge")
    across = padded[:, 2:] - padded[:, :-2]
    along = padded[2:] - padded[:-2]
    gx = across[:-2] + 2 * across[1:-1] + across[2:]
    gy = along[:, :-2] + 2 * along[:, 1:-1] + along[:, 2:]
    magnitude = staging.stage(jnp.abs(gx) + jnp.abs(gy))
    kept = _is_maximum(gx, gy, magnitude) & (magnitude > low)
    return hysteresis(kept & (magnitude > high), kept)


def _is_maximum(gx, gy, magnitude):
    height, width = magnitude.shape
    padded = jnp.pad(magnitude, 1)

    def at(dy, dx):
        return padded[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]

    slope, flat = jnp.abs(gy) << 15, jnp.abs(gx) * _TANGENT
    horizontal = slope < flat
    vertical = slope > flat + (jnp.abs(gx) << 16)
    same_sign = (gx ^ gy) >= 0
    before = jnp.where(
        horizontal, at(0, -1), jnp.where(vertical, at(-1, 0), jnp.where(same_sign, at(-1, -1), at(-1, 1)))
    )
    after = jnp.where(horizontal, at(0, 1), jnp.where(vertical, at(1, 0), jnp.where(same_sign, at(1, 1), at(1, -1))))
    return (magnitude > before) & ((magnitude > after) | ((magnitude == after) & (horizontal | vertical)))


def hysteresis(seeds: jax.Array, kept: jax.Array) -> jax.Array:
    """Returns the pixels of `kept` connected to `seeds` through `kept` (8 neighbours), bool [H, W] all three."""
    # 32 pixels of a row make a word, and a word grows by a few shifts: the loop costs almost nothing.
    kept_words = _pack(kept)

    def grow(words):
        vertical = jnp.pad(words, ((1, 1), (0, 0)))
        vertical = vertical[:-2] | vertical[1:-1] | vertical[2:]
        beside = jnp.pad(vertical, ((0, 0), (1, 1)))
        left, right = (vertical << 1) | (beside[:, :-2] >> 31), (vertical >> 1) | (beside[:, 2:] << 31)
        return (vertical | left | right) & kept_words

    def grow_twice(state):
        words, _ = state
        grown = grow(grow(words))
        return grown, jnp.any(grown != words)

    words, _ = jax.lax.while_loop(lambda state: state[1], grow_twice, (_pack(seeds), jnp.any(seeds)))
    bits = (words[..., None] >> jnp.arange(32, dtype=jnp.uint32)[None, None]) & 1
    return bits.reshape(len(words), -1)[:, : kept.shape[1]].astype(bool)


def _pack(mask):
    """Packs bool [H, W] into uint32 [H, ceil(W / 32)], the leftmost pixel in the lowest bit."""
    height, width = mask.shape
    padded = jnp.pad(mask, ((0, 0), (0, -width % 32))).reshape(height, -1, 32)
    return jnp.sum(padded.astype(jnp.uint32) << jnp.arange(32, dtype=jnp.uint32)[None, None], axis=-1, dtype=jnp.uint32)


# Costs of the moves of the 5x5 mask that is closest to Euclidean distance (G. Borgefors, "Distance transformations in
# digital images", 1986): along an axis, along a diagonal, knight's move.
_COSTS = (np.float32(1.0), np.float32(1.4), np.float32(2.1969))

# Costs here are integers, 160 000 to one unit of length; a diagonal costs one less than its share. Published distances
# are running sums in float32, where (rarely) 10 diagonals come out below 14 axis moves: the one less keeps that.
_UNIT = 160_000
_CODES = (_UNIT, 14 * _UNIT // 10 - 1, 21969 * (_UNIT // 10_000))

# A shortest path has at most two kinds of moves, a of one and b of the other. For every a and b within distance 20
# these strides can be divided into two groups of sums a and b: seven passes replace 20 of single moves.
_STRIDES = (1, 1, 1, 2, 3, 4, 7)
_REACH = 20


def chamfer_distance(edges: jax.Array) -> jax.Array:
    """Computes the distance to the nearest pixel of `edges`, bool [H, W]: float32 [H, W], 20 where none is nearer.

    It is the smallest sum of costs over paths of king's moves (1 along an axis, 1.4 along a diagonal) and knight's
    moves (2.1969), added up in float32 move by move: the 5x5 distance transform of OpenCV, truncated.
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

    distance = jnp.where(edges, 0, far).astype(jnp.int32)
    for stride in _STRIDES:
        # Staged: fused, a pass would be computed again for every move of the next one.
        distance = staging.stage(extend(stride, distance))
    modulus, table = _float_sums()
    # Make the table depend on the image: a table shared by the batch compiles 20 times slower on a TPU.
    table = jnp.where(jnp.any(edges), table, np.float32(_REACH))
    return staging.look_up(table, distance % modulus)


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


def equalize(levels: jax.Array, bins: int) -> jax.Array:
    """Spreads the levels so that their cumulative histogram becomes straight, as `cv2.equalizeHist`: int32 in 0..255.

    The lowest level present goes to 0, any other level i to rint(n_i * 255 / (n - n_0)), with n_0 the number of
    pixels at the lowest level, n_i the number above it and at most at i, n all pixels. A constant image is unchanged.
    Levels are int32 [H, W] in 0..bins-1, H below 2^16 and bins at most 256; the cost is proportional to `bins`.
    """
    total = levels.size
    up_to = _counts(levels.astype(jnp.uint8), bins)
    lowest = jnp.min(levels)
    below = jnp.min(jnp.where(up_to > 0, up_to, total))
    scale = jnp.float32(255) / jnp.maximum(total - below, 1).astype(jnp.float32)
    table = jnp.round((up_to - below).astype(jnp.float32) * scale).astype(jnp.int32)
    return jnp.where(below == total, lowest, staging.look_up(table, levels))


def _counts(levels, bins):
    """Counts the levels, uint8 [H, W], up to 0, 1, ..., bins - 1: int32 [bins].

    Compares and sums level by level (no scatter), in short words and over long rows, for vector units; in slices, as
    a CPU would write all comparisons to memory before it sums them.
    """
    number = max(n for n in range(1, 17) if levels.size % n == 0)
    bound, slices = jnp.arange(bins, dtype=jnp.uint8)[:, None], levels.reshape(number, -1)
    few = sum((slices[k][None] <= bound).astype(jnp.uint8) for k in range(number))
    return jnp.sum(few, axis=1, dtype=jnp.int32)
