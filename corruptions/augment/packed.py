"""An 8-bit RGB image as one 32-bit word per pixel: what all operations of the schemes work on.

A pixel is R + 2^8 G + 2^16 B. One read then brings all channels of a neighbour, a third of a warp's
price.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from corruptions.primitives import color

CHANNELS = 3


def nearest(image: jax.Array) -> jax.Array:
    """Rounds float32 [H, W, 3] in [0, 1] to the nearest 8-bit levels, halves up; int32."""
    return (color.to_levels(image) + 0.5).astype(jnp.int32)


def pack(image: jax.Array) -> jax.Array:
    """Packs float32 [H, W, 3] in [0, 1], rounded to the nearest level, to uint32 [H, W]."""
    whole = nearest(image)
    return join([whole[..., c] for c in range(CHANNELS)])


def join(channels: Sequence[jax.Array]) -> jax.Array:
    """Joins three arrays of whole levels 0..255, of any number type, to words."""
    words = [c.astype(jnp.uint32) << (8 * i) for i, c in enumerate(channels)]
    return words[0] | words[1] | words[2]


def split(words: jax.Array) -> list[jax.Array]:
    """Splits words into the levels of the three channels, int32 each."""
    return [((words >> (8 * c)) & 255).astype(jnp.int32) for c in range(CHANNELS)]


def levels(words: jax.Array) -> jax.Array:
    """Unpacks words [...] to float32 levels [..., 3]."""
    shifts = 8 * jnp.arange(CHANNELS, dtype=jnp.uint32).reshape((1,) * words.ndim + (CHANNELS,))
    return ((words[..., None] >> shifts) & 255).astype(jnp.float32)


def unpack(words: jax.Array) -> jax.Array:
    """Unpacks words [H, W] to float32 [H, W, 3] in [0, 1], each the float32 nearest to k/255."""
    return color.from_levels(levels(words))
