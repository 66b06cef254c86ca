"""Operations on each level by itself: posterize, solarize, invert, equalize, autocontrast.

Bit for bit what Pillow's `ImageOps` does.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.augment.packed import CHANNELS, join, split

_LEVELS = 256


def posterize(words: jax.Array, bits: jax.Array) -> jax.Array:
    """Keeps the `bits` highest of the 8 bits of every channel; bits a whole float32 in 1..8."""
    dropped = 8 - bits.astype(jnp.uint32)
    kept = (jnp.uint32(255) << dropped) & 255
    return words & (kept | kept << 8 | kept << 16)


def solarize(words: jax.Array, threshold: jax.Array) -> jax.Array:
    """Turns levels v from the threshold on into 255 - v; a threshold of 0 inverts the image."""
    # dm_pix.solarize gives the same levels, but of three float32 channels, not of packed words.
    flipped = [jnp.where(c.astype(jnp.float32) >= threshold, 255, 0) for c in split(words)]
    return words ^ join(flipped)


def histogram(words: jax.Array) -> jax.Array:
    """Counts the pixels at each level, int32 [3, 256]."""
    bins = jnp.concatenate([c.reshape(-1) + _LEVELS * i for i, c in enumerate(split(words))])
    counts = jnp.zeros(CHANNELS * _LEVELS, jnp.int32).at[bins].add(1, mode="promise_in_bounds")
    return counts.reshape(CHANNELS, _LEVELS)


def look_up(words: jax.Array, table: jax.Array) -> jax.Array:
    """Replaces level v of channel c by table[c, v], int32 [3, 256]."""
    flat = table.reshape(-1)
    return join([flat.at[c + _LEVELS * i].get(mode="promise_in_bounds") for i, c in enumerate(split(words))])


def equalize_table(counts: jax.Array) -> jax.Array:
    """Makes the table of `ImageOps.equalize`: [3, 256] counts to levels.

    Level i becomes min(255, (q // 2 + n_i) // q), n_i the number of pixels below i and q = m // 255
    with m the number of pixels below the highest level present. q = 0 leaves the channel as it is.
    """
    highest = _highest(counts)
    below = jnp.cumsum(counts, axis=1) - counts
    step = jnp.take_along_axis(below, highest[:, None], axis=1) // 255
    table = jax.lax.div(step // 2 + below, jnp.broadcast_to(jnp.maximum(step, 1), below.shape))
    return jnp.where(step == 0, jnp.arange(_LEVELS), jnp.minimum(table, 255))


def autocontrast_table(counts: jax.Array) -> jax.Array:
    """Makes the table of `ImageOps.autocontrast`: [3, 256] counts to levels.

    The levels present, lo..hi, spread to 0..255: i becomes floor((i - lo) 255 / (hi - lo)), one
    less where Pillow's float64 arithmetic falls just short of a whole number. One level present
    leaves the channel as it is.
    """
    low, high = jnp.argmax(counts > 0, axis=1), _highest(counts)
    level = jnp.arange(_LEVELS)[None, :]
    above = jnp.clip(level - low[:, None], 0, 255)
    span = jnp.broadcast_to(jnp.maximum(high - low, 1)[:, None], above.shape)
    table = jnp.minimum(jax.lax.div(255 * above, span), 255)
    index, bits = (jnp.asarray(a) for a in _shortfalls())
    words = jnp.repeat(bits[index[low * _LEVELS + high]], 32, axis=1)
    table -= ((words >> (level % 32).astype(jnp.uint32)) & 1).astype(jnp.int32)
    return jnp.where((high > low)[:, None], table, level)


def _highest(counts):
    return _LEVELS - 1 - jnp.argmax(counts[:, ::-1] > 0, axis=1)


@functools.cache
def _shortfalls():
    """Where int(i * scale + offset) is one too small: scale 255 / (hi - lo), offset -lo * scale.

    In float64 it is for 12 094 of the triples (lo, hi, i), at one i or more of every fifth (lo,
    hi), mostly at hi itself.

    Returns:
      (uint16 [65536], index of a row for 256 lo + hi; uint32 [rows, 8], 256 bits each, one for
      every i).
    """
    levels = np.arange(_LEVELS)
    index = np.zeros((_LEVELS, _LEVELS), np.uint16)
    rows = [np.zeros(_LEVELS, bool)]
    for low in range(_LEVELS - 1):
        high = np.arange(low + 1, _LEVELS)[:, None]
        scale = 255.0 / (high - low)
        computed = np.trunc(levels * scale + -low * scale)
        short = (computed < (levels - low) * 255 // (high - low)) & (levels >= low) & (levels <= high)
        rounded_down = np.flatnonzero(short.any(axis=1))
        index[low, high[rounded_down, 0]] = len(rows) + np.arange(len(rounded_down))
        rows.extend(short[rounded_down])
    bits = np.packbits(np.stack(rows), axis=1, bitorder="little").view("<u4")
    return index.reshape(-1), bits.astype(np.uint32)
