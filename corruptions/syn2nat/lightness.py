"""HLS lightness L = (max + min) / 2 of a colour, and another lightness at the same hue and
saturation.
"""

import jax
import jax.numpy as jnp

from corruptions.primitives import color


def lightness(image: jax.Array) -> jax.Array:
    """Computes L of an image in [0, 1]: [..., 3] to [..., 1]."""
    value, chroma = color.value_and_chroma(image)
    return value - chroma / 2


def relit(image: jax.Array, wanted: jax.Array) -> jax.Array:
    """Gives an image another lightness L', HLS hue and saturation kept.

    L' + (x - L) (1 - |2 L' - 1|) / (1 - |2 L - 1|); black and white, where that is 0 / 0, become
    the grey L'.

    Args:
      image: float32 [..., 3] in [0, 1].
      wanted: L', float32 [..., 1] in [0, 1].
    """
    before = lightness(image)
    room = 1 - jnp.abs(2 * before - 1)
    ratio = (1 - jnp.abs(2 * wanted - 1)) / jnp.where(room > 0, room, 1.0)
    return jnp.clip(wanted + (image - before) * jnp.where(room > 0, ratio, 0.0), 0.0, 1.0)
