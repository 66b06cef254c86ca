"""The common parts of Syn2Nat: one severity, rounding to nearest, the source, lengths, HLS lightness."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from corruptions.core import registry
from corruptions.core.severity import Levels
from corruptions.noc.stamps import scale
from corruptions.primitives import color

register = registry.registrar("syn2nat", Levels(1), "nearest", "Laugros et al. (2021), albumentations 0.5.2")


def pixels(length: float, shape: Sequence[int], least: int = 1) -> int:
    """Scales a length at 224x224 pixels to images of this shape: whole pixels, at least `least`."""
    return max(least, round(length * scale(shape)))


def lightness(image: jax.Array) -> jax.Array:
    """Computes L of an image in [0, 1]: [..., 3] to [..., 1]."""
    value, chroma = color.value_and_chroma(image)
    return value - chroma / 2


def relit(image: jax.Array, wanted: jax.Array) -> jax.Array:
    """Gives an image [..., 3] another lightness L' [..., 1], both in [0, 1], HLS hue and saturation kept.

    L' + (x - L) (1 - |2 L' - 1|) / (1 - |2 L - 1|); black and white, where that is 0 / 0, become the grey L'.
    """
    before = lightness(image)
    room = 1 - jnp.abs(2 * before - 1)
    ratio = (1 - jnp.abs(2 * wanted - 1)) / jnp.where(room > 0, room, 1.0)
    return color.clip(wanted + (image - before) * jnp.where(room > 0, ratio, 0.0))
