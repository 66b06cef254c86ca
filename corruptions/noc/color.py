"""Colour corruptions: quantization, color_distortion, gray_scale and hue."""

import jax.numpy as jnp

from corruptions.noc import severities
from corruptions.noc.candidate import candidate, padding
from corruptions.noc.draws import integer, sign
from corruptions.primitives.hue import turn_hue


def _sample_quantization(key, shape, severity, *, range=None):
    """Looks up `steps`; draws nothing.

    Options: `range` of the steps L, by default 8 (mild) down to 3 (severe): 9 to 4 levels.
    """
    del key
    return {"steps": severities.lookup("quantization", shape, range, severity)}


def _apply_quantization(image, params):
    """Rounds to L steps, halves to even: round(L x) / L. Source: ImageNet-NOC, quantization."""
    steps = params["steps"].astype(jnp.float32)
    return jnp.clip(jnp.round(image * steps) / steps, 0.0, 1.0)


quantization = candidate(
    "quantization",
    "noise",
    _sample_quantization,
    _apply_quantization,
    (("steps", "grey levels - 1"),),
    straight_through=lambda image, params: image,
    padding=padding(),
)


def _sample_color_distortion(key, shape, severity, *, range=None):
    """Draws `channel`, uniform among three; looks up `shift`.

    Options: `range` of the shift, by default 0.09..0.40; positive only, as in the released code.
    """
    return {
        "shift": severities.lookup("color_distortion", shape, range, severity),
        "channel": integer(key, 0, 2),
    }


def _apply_color_distortion(image, params):
    """Shifts one channel: clip(x + d). Source: ImageNet-NOC, color_disortion as released."""
    shown = jnp.arange(3) == params["channel"]
    return jnp.clip(image + (params["shift"] * shown.astype(jnp.float32))[None, None, :], 0.0, 1.0)


color_distortion = candidate(
    "color_distortion",
    "color",
    _sample_color_distortion,
    _apply_color_distortion,
    (("shift", "intensity"), ("channel", "index")),
    aliases=("color_disortion",),
    mixes="shifts one of red, green and blue",
    padding=padding(),
)

_LUMA = (0.299, 0.587, 0.114)


def _sample_gray_scale(key, shape, severity, *, range=None):
    """Looks up `weight`; draws nothing. Options: `range` of the weight, by default 0.49..1."""
    del key
    return {"weight": severities.lookup("gray_scale", shape, range, severity)}


def _apply_gray_scale(image, params):
    """Mixes with the luma: w Y + (1 - w) x, Y = 0.299 R + 0.587 G + 0.114 B.

    Source: ImageNet-NOC, gray_scale, whose released code rounds Y to 8 bits; here Y is not rounded,
    a difference below 1/255.
    """
    luma = sum(w * image[..., i] for i, w in enumerate(_LUMA))[..., None]
    return jnp.clip(params["weight"] * luma + (1 - params["weight"]) * image, 0.0, 1.0)


gray_scale = candidate(
    "gray_scale",
    "color",
    _sample_gray_scale,
    _apply_gray_scale,
    (("weight", "1"),),
    mixes="mixes in the luma of red, green and blue",
    padding=padding(),
)


def _sample_hue(key, shape, severity, *, range=None):
    """Draws the sign of `turns`. Options: `range` of the turns, by default 0.05..0.5."""
    return {"turns": severities.lookup("hue", shape, range, severity) * sign(key)}


def _apply_hue(image, params):
    """Rotates the hue by d turns in HSV: h + d (mod 1), saturation and value kept.

    Formula: `primitives.hue`. Source: ImageNet-NOC, hue, which works in 8 bits; this does not.
    """
    return turn_hue(image, params["turns"])


hue = candidate(
    "hue", "color", _sample_hue, _apply_hue, (("turns", "turns"),), mixes="turns the hue", padding=padding()
)
