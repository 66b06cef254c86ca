"""ImageNet-C brightness, contrast and saturate: deterministic colour changes in closed form.

The originals convert to HSV, edit one channel and convert back; neither conversion is needed. Their results are
truncated to 8 bits, and many are whole levels up to rounding errors, so some levels (see the tests for their share)
come out one off.
"""

import jax.numpy as jnp
import numpy as np

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.imagenet_c.tables import lookup, register
from corruptions.primitives import color, staging

_ADDED = {
    "cifar": (0.05, 0.1, 0.15, 0.2, 0.3),
    "tiny": (0.1, 0.2, 0.3, 0.4, 0.5),
    "imagenet": (0.1, 0.2, 0.3, 0.4, 0.5),
    "inception": (0.1, 0.2, 0.3, 0.4, 0.5),
}
_GAIN = {
    "cifar": (0.75, 0.5, 0.4, 0.3, 0.15),
    "tiny": (0.4, 0.3, 0.2, 0.1, 0.05),
    "imagenet": (0.4, 0.3, 0.2, 0.1, 0.05),
    "inception": (0.4, 0.3, 0.2, 0.1, 0.05),
}
_SATURATION = {
    "cifar": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    "tiny": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
    "imagenet": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
    "inception": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
}


def _sample_brightness(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Looks up `added`, the increase of the HSV value (full range 1); draws nothing."""
    return {"added": lookup(_ADDED, shape, table, severity)}


@register(
    "digital",
    _sample_brightness,
    {"added": "fraction of full range, added to the HSV value"},
    severity={"added": "fraction of full range"},
    mixes="lightens the value of hue, saturation and value",
    alone="quick",
)
def brightness(image: Image, params: Params) -> Image:
    """Lightens the image: x v'/v with v = max(R, G, B) and v' = min(v + added, 1).

    Black becomes the grey v'. Source: ImageNet-C, brightness.
    """
    x = color.to_levels(image)
    value = staging.stage_on_cpu(color.value_and_chroma(x)[0])
    lighter = color.clip(value + 255 * params["added"], 0, 255)
    # The largest channel takes v' itself, not v (v'/v), which may fall just below a whole level.
    return color.from_levels(jnp.where(x == value, lighter, lighter * (x / _nonzero(value))))


def _sample_contrast(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Looks up `gain`, the factor on the contrast; draws nothing."""
    return {"gain": lookup(_GAIN, shape, table, severity)}


@register(
    "digital",
    _sample_contrast,
    {"gain": "factor on the distance from the channel mean"},
    severity={"gain": "1"},
    alone="quick",
)
def contrast(image: Image, params: Params) -> Image:
    """Lowers the contrast: clip((x - m) gain + m, 0, 1) with m the channel's mean over the image.

    Source: ImageNet-C, contrast.
    """
    x = color.to_levels(image)
    mean = color.channel_means(x, params)
    return color.from_levels(color.clip((x - mean) * params["gain"] + mean, 0, 255))


def _sample_saturate(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Looks up `factor` and `added`, the linear map of the HSV saturation; draws nothing."""
    factor, added = lookup(_SATURATION, shape, table, severity)
    return {"factor": factor, "added": added}


@register(
    "digital",
    _sample_saturate,
    {"factor": "on the HSV saturation", "added": "to the HSV saturation"},
    severity={"factor": "1", "added": "1"},
    mixes="changes the saturation of hue, saturation and value",
)
def saturate(image: Image, params: Params) -> Image:
    """Maps the HSV saturation s to s' = clip(factor s + added, 0, 1).

    A channel x becomes v (1 - s' (v - x) / (v - u)) with v = max(R, G, B) and u = min(R, G, B). Greys have hue 0,
    which is red: they become (v, v (1 - s'), v (1 - s')), tinted when `added` > 0.

    Source: ImageNet-C, saturate.
    """
    x = color.to_levels(image)
    value, chroma = color.value_and_chroma(x)
    # v s' from the chroma v s, so that the saturation itself is never formed (0/0 for black).
    new_chroma = color.clip(params["factor"] * chroma + params["added"] * value, 0, value)

    def saturated(channels):
        below = jnp.where(chroma > 0, (value - x[..., channels]) / _nonzero(chroma), _TINT[channels])
        return color.from_levels(value - new_chroma * below)

    return staging.by_channels(saturated)


_TINT = np.array([0, 1, 1], np.float32)  # the pixel is grey: all channels except red change


def _nonzero(x):
    return jnp.where(x > 0, x, 1)
