"""Colour corruptions: quantization, color_distortion, gray_scale and hue."""

import jax.numpy as jnp

from corruptions.contract import Corruption, Fraction, Parameter
from corruptions.noc import severity as severities
from corruptions.noc.draws import integer, sign
from corruptions.registry import register

_SOURCE = "ImageNet-NOC (2021), appendix A, and the released code"


def _sample_quantization(key, shape, severity, *, range=None):
    """The number of steps; nothing else is random.

    Options: `range` of the steps L, by default 8 (mild) down to 3 (severe): 9 to 4 grey levels a
    channel.
    """
    del key
    return {"steps": severities.lookup("quantization", shape, range, severity)}


def _apply_quantization(image, params):
    """x = round(L x) / L, halves to even (ImageNet-NOC, quantization)."""
    steps = params["steps"].astype(jnp.float32)
    return jnp.clip(jnp.round(image * steps) / steps, 0.0, 1.0)


quantization = register(
    Corruption(
        name="quantization",
        benchmark="noc",
        family="noise",
        sampler=_sample_quantization,
        applier=_apply_quantization,
        scale=Fraction(),
        rounding="nearest",
        parameters=(Parameter("steps", "grey levels - 1", _SOURCE),),
    )
)


def _sample_color_distortion(key, shape, severity, *, range=None):
    """A shift of one channel. Draws: the channel, uniform among three.

    Options: `range` of the shift, by default 0.09..0.40. It is positive only, as in the released
    code.
    """
    return {
        "shift": severities.lookup("color_distortion", shape, range, severity),
        "channel": integer(key, 0, 2),
    }


def _apply_color_distortion(image, params):
    """x = clip(x + d) on one channel (ImageNet-NOC, color_disortion as released)."""
    shift = params["shift"] * (jnp.arange(3) == params["channel"])
    return jnp.clip(image + shift, 0.0, 1.0)


color_distortion = register(
    Corruption(
        name="color_distortion",
        benchmark="noc",
        family="color",
        sampler=_sample_color_distortion,
        applier=_apply_color_distortion,
        scale=Fraction(),
        rounding="nearest",
        parameters=(
            Parameter("shift", "intensity", _SOURCE),
            Parameter("channel", "index", _SOURCE),
        ),
        aliases=("color_disortion",),
    )
)

_LUMA = (0.299, 0.587, 0.114)


def _sample_gray_scale(key, shape, severity, *, range=None):
    """The weight of the luma; nothing else is random. Options: `range` of the weight, by default
    0.49..1.
    """
    del key
    return {"weight": severities.lookup("gray_scale", shape, range, severity)}


def _apply_gray_scale(image, params):
    """x = w Y + (1 - w) x with Y = 0.299 R + 0.587 G + 0.114 B on every channel (ImageNet-NOC,
    gray_scale).

    The released code rounds Y to 8 bits; we do not (less than 1/255).
    """
    luma = sum(w * image[..., i] for i, w in enumerate(_LUMA))[..., None]
    return jnp.clip(params["weight"] * luma + (1 - params["weight"]) * image, 0.0, 1.0)


gray_scale = register(
    Corruption(
        name="gray_scale",
        benchmark="noc",
        family="color",
        sampler=_sample_gray_scale,
        applier=_apply_gray_scale,
        scale=Fraction(),
        rounding="nearest",
        parameters=(Parameter("weight", "1", _SOURCE),),
    )
)


def _sample_hue(key, shape, severity, *, range=None):
    """A rotation of the hue. Draws: its sign. Options: `range` of the rotation in turns, by default
    0.05..0.5.
    """
    return {"turns": severities.lookup("hue", shape, range, severity) * sign(key)}


def _apply_hue(image, params):
    """Hue + d (mod 1) in HSV, saturation and value kept (ImageNet-NOC, hue); d in turns, without
    the original's 8 bits.

    With V = max, C = max - min and k = (n + 6 (h + d)) mod 6, a channel is V - C clip(min(k, 4 -
    k), 0, 1) where n = 5, 3, 1 for red, green, blue.
    """
    red, green, blue = image[..., 0], image[..., 1], image[..., 2]
    greatest = jnp.maximum(jnp.maximum(red, green), blue)
    chroma = greatest - jnp.minimum(jnp.minimum(red, green), blue)
    inverse = 1 / jnp.where(chroma > 0, chroma, 1.0)  # a grey has no hue; any will do, it is multiplied by 0
    sextant = jnp.where(
        greatest == red,
        (green - blue) * inverse,
        jnp.where(greatest == green, 2 + (blue - red) * inverse, 4 + (red - green) * inverse),
    )
    sextant = sextant + 6 * params["turns"]

    def channel(offset):
        k = sextant + offset
        k -= 6 * jnp.floor(k * (1 / 6))  # mod 6; a last-place slip at the seam meets equal values
        return greatest - chroma * jnp.clip(jnp.minimum(k, 4 - k), 0.0, 1.0)

    return jnp.stack([channel(5), channel(3), channel(1)], axis=-1)


hue = register(
    Corruption(
        name="hue",
        benchmark="noc",
        family="color",
        sampler=_sample_hue,
        applier=_apply_hue,
        scale=Fraction(),
        rounding="nearest",
        parameters=(Parameter("turns", "turns", _SOURCE),),
    )
)
