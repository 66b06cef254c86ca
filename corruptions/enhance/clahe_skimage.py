"""The equalisation of scikit-image, `exposure.equalize_adapthist` with its defaults.

It differs from OpenCV's (`clahe`) in five ways: it takes the HSV value, stretched to 14 bits; a tile is an eighth of a
side, whatever is left over, with half a tile of reflection around the image; the limit is 1 % of a tile and holds after
the excess has been returned; it interpolates from centre to centre; at last it stretches the value to the whole range.
"""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.enhance.clahe import Neighbours, blend, cut, histograms, neighbours, with_value
from corruptions.primitives.color import value_and_chroma

CLIP, TILES, BINS = 0.01, 8, 256
_HIGHEST = 2**14 - 1


def equalize(image: jax.Array, *, clip: float = CLIP, tiles: int = TILES) -> jax.Array:
    """Equalises the HSV value of an image, uint8 [H, W, 3]; see `equalize_value`."""
    value, _ = value_and_chroma(image)
    equalized = _stretched(equalize_value(value[..., 0], clip, tiles).astype(jnp.float32), 1.0)
    return jnp.round(255 * with_value(image, equalized)).astype(jnp.uint8)


def equalize_value(value: jax.Array, clip: float = CLIP, number: int = TILES) -> jax.Array:
    """Equalises one channel, uint8 [H, W], before it is stretched to the whole range: int32 [H, W] in 0..16383.

    `clip` limits a bin, as a share of a tile's pixels; all of them where it is 0. There are at least `number` tiles
    along a side.
    """
    sides = [max(size // number, 1) for size in value.shape]
    levels = jnp.round(_stretched(257 * value.astype(jnp.float32), float(_HIGHEST))).astype(jnp.int32)
    around = [(k // 2, (k - n % k) % k + -(-k // 2)) for n, k in zip(value.shape, sides)]
    padded = jnp.pad(levels, around, mode="reflect") // (1 + (_HIGHEST + 1) // BINS)
    numbers = [n // k - 1 for n, k in zip(padded.shape, sides)]
    inner = padded[tuple(slice(k // 2, k // 2 + n * k) for n, k in zip(numbers, sides))]
    tiles = cut(inner, *numbers)
    area = tiles.shape[1]
    counts = clipped(histograms(tiles, BINS), max(int(clip * area), 1) if clip > 0 else area)
    running = jnp.cumsum(counts, axis=1).astype(jnp.uint32)  # times 16383 below 2^32 up to sides of 4,096 pixels
    tables = jnp.minimum(running * _HIGHEST // area, _HIGHEST).astype(jnp.int32).reshape(*numbers, BINS)
    down, right = (_neighbours(*axis) for axis in zip(value.shape, sides, numbers))
    bins = padded[tuple(slice(a, a + n) for (a, _), n in zip(around, value.shape))]
    return blend(tables, bins, down, right, 16).astype(jnp.int32)


def clipped(counts: jax.Array, limit: int) -> jax.Array:
    """Clips histograms, int32 [T, bins], and returns the excess to their bins, no bin beyond the limit.

    Every bin gets an equal part as far as the limit allows. The remainder goes one by one to bins below the limit: in
    turn from bin 0, 1, 2 .., with steps as long as the remainder allows.
    """
    return jax.vmap(lambda histogram: _clipped(histogram, limit))(counts)


def _clipped(counts, limit):
    bins = counts.shape[0]
    excess = jnp.maximum(counts - limit, 0).sum()
    counts = jnp.minimum(counts, limit)
    part = excess // bins
    filled = jnp.where(counts < limit - part, counts + part, counts)
    filled = jnp.where(filled >= limit - part, limit, filled)
    level = jnp.arange(bins)

    def give(state):
        counts, left, start = state
        below = counts < limit
        step = jnp.maximum(1, below.sum() // left)
        chosen = below & (level >= start) & ((level - start) % step == 0)
        return counts + chosen.astype(counts.dtype), left - chosen.sum(), (start + 1) % bins

    # All bins together hold more than a tile's pixels, so every turn of the loop returns some.
    state = filled, excess - (filled - counts).sum(), jnp.zeros_like(excess)
    return jax.lax.while_loop(lambda state: state[1] > 0, give, state)[0]


def _neighbours(size: int, side: int, number: int) -> Neighbours:
    """Finds the tiles around each of `size` pixels."""
    place = np.arange(size) + side // 2
    return neighbours(place // side, place % side / side, number)


def _stretched(channel, highest):
    """Stretches a channel to 0..highest; a constant one is clipped at `highest`."""
    low, high = channel.min(), channel.max()
    spread = jnp.where(high > low, high - low, 1.0)
    return jnp.where(high > low, (channel - low) / spread * highest, jnp.minimum(channel, highest))
