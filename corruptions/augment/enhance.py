"""Color, contrast, brightness and sharpness: blends of the image with a poorer version of itself.

As Pillow's `ImageEnhance`: poorer + factor (image - poorer), clipped, truncated to whole levels.
"""

import jax
import jax.numpy as jnp

from corruptions.augment.packed import join, split


def enhance(words: jax.Array, kind: jax.Array, factor: jax.Array) -> jax.Array:
    """Blends an image with its poorer version.

    Args:
      words: uint32 [H, W].
      kind: int32 scalar: 0 color, 1 contrast, 2 brightness, 3 sharpness.
      factor: float32 scalar; 1 changes nothing, 0 gives the poorer version.

    Returns:
      uint32 [H, W].
    """
    poorer = split(jax.lax.switch(kind, [_grey, _mean, jnp.zeros_like, _smooth], words))
    return join([_blend(a, b, factor) for a, b in zip(poorer, split(words), strict=True)])


def _blend(poorer, image, factor):
    # Pillow rounds the product and the sum to float32 each. The clip, which never acts, keeps
    # compilers from fusing them into one rounding.
    product = jnp.clip(factor * (image - poorer).astype(jnp.float32), -1e6, 1e6)
    return jnp.clip(poorer.astype(jnp.float32) + product, 0, 255).astype(jnp.int32)


def _luma(words):
    """BT.601 luma, rounded, in 16-bit fixed point."""
    red, green, blue = split(words)
    return (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16


def _grey(words):
    luma = _luma(words)
    return join([luma] * 3)


def _mean(words):
    """The mean luma to the nearest level, halves up, on all pixels and channels."""
    total, number = jnp.sum(_luma(words)), words.size
    mean = total // number
    mean += (2 * (total - mean * number) >= number).astype(jnp.int32)
    return jnp.broadcast_to(join([mean] * 3), words.shape)


def _smooth(words):
    """Rounded mean of a pixel, weight 5, and its eight neighbours; the outermost pixels stay."""
    smoothed = []
    for c in split(words):
        rows = c[:-2] + c[1:-1] + c[2:]
        total = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:] + 4 * c[1:-1, 1:-1]
        smoothed.append(c.at[1:-1, 1:-1].set((2 * total + 13) // 26))
    return join(smoothed)
