"""Canny edges of an 8-bit image, in integers."""

import jax
import jax.numpy as jnp

from corruptions.primitives import borders, staging

# tan(22.5 degrees) in 15-bit fixed point, as OpenCV has it.
_TANGENT = 13573


def canny(levels: jax.Array, low: int, high: int) -> jax.Array:
    """Finds the edges of an image of levels 0..255, bit for bit as `cv2.Canny(levels, low, high)`.

    1. Gradient g = (gx, gy) by 3x3 Sobel filters, the edge pixels repeated outwards; magnitude
       |gx| + |gy|, taken as 0 outside the image.
    2. A pixel is kept where the magnitude exceeds `low` and is a maximum along the gradient's
       direction, rounded to a multiple of 45 degrees; of two equal neighbours along a row or column
       the first is kept, along a diagonal none.
    3. Hysteresis: kept pixels above `high`, and all kept pixels connected to them through kept
       pixels (8 neighbours).

    Args:
      levels: int32 [H, W].
      low, high: thresholds of the magnitude (0..2040).

    Returns:
      bool [H, W].
    """
    padded = borders.extended(levels, 1, (0, 1), "edge")
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
    """Returns the pixels of `kept` that are connected to `seeds` through `kept` (8 neighbours),
    bool [H, W] all three.
    """
    # 32 pixels of a row make a word; growing a word takes a few shifts, so that the loop costs next
    # to nothing.
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
    return _unpack(words, kept.shape[1])


def _pack(mask):
    """bool [H, W] to uint32 [H, ceil(W / 32)], the leftmost pixel in the lowest bit."""
    height, width = mask.shape
    padded = jnp.pad(mask, ((0, 0), (0, -width % 32))).reshape(height, -1, 32)
    return jnp.sum(padded.astype(jnp.uint32) << jnp.arange(32, dtype=jnp.uint32)[None, None], axis=-1, dtype=jnp.uint32)


def _unpack(words, width):
    bits = (words[..., None] >> jnp.arange(32, dtype=jnp.uint32)[None, None]) & 1
    return bits.reshape(words.shape[0], -1)[:, :width].astype(bool)
