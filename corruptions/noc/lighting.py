"""Lighting: backlight, brightness and contrast."""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import padded
from corruptions.noc import severities
from corruptions.noc.candidate import candidate, padding
from corruptions.noc.draws import integer, sign
from corruptions.primitives import color


def _sample_backlight(key, shape, severity, *, range=None):
    """Draws the axis of a split, either with probability 1/2, its place and which side brightens.

    `split` is W//2 + (floor(-W/5)..W//5); for an upper and a lower part (`upright`) with the height
    instead of W. The sign of `shift` says which side brightens.

    Options: `range` of the change of intensity, by default 0.11..0.44.
    """
    axis_key, place_key, sign_key = jax.random.split(key, 3)
    upright = jax.random.bernoulli(axis_key)
    height, width = padded.own(shape)[:2]
    side = jnp.where(upright, height, width)
    return {
        "shift": severities.lookup("backlight", shape, range, severity) * sign(sign_key),
        "upright": upright,
        "split": side // 2 + integer(place_key, -side // 5, side // 5),
    }


def _apply_backlight(image, params):
    """Brightens one side of a split and darkens the other: clip(x + d) before it, else clip(x - d).

    Source: ImageNet-NOC, backlight.
    """
    rows, columns = jnp.arange(image.shape[0])[:, None], jnp.arange(image.shape[1])
    before = jnp.where(params["upright"], rows, columns) < params["split"]
    shift = jnp.where(before, params["shift"], -params["shift"])
    return jnp.clip(image + shift[..., None], 0.0, 1.0)


backlight = candidate(
    "backlight",
    "lighting",
    _sample_backlight,
    _apply_backlight,
    (("shift", "intensity"), ("upright", "bool"), ("split", "pixels")),
    padding=padding(),
)


def _sample_brightness(key, shape, severity, *, range=None):
    """Draws the sign of `shift`. Options: `range` of the shift, by default 0.16..0.51."""
    return {"shift": severities.lookup("brightness", shape, range, severity) * sign(key)}


def _apply_brightness(image, params):
    """Shifts all channels by the same d: clip(x + d). Source: ImageNet-NOC, brightness."""
    return jnp.clip(image + params["shift"], 0.0, 1.0)


brightness = candidate(
    "brightness", "lighting", _sample_brightness, _apply_brightness, (("shift", "intensity"),), padding=padding()
)


def _sample_contrast(key, shape, severity, *, range=None):
    """Looks up `weight`; draws nothing. Options: `range` of the weight, by default 0.33..0.74."""
    del key
    return {"weight": severities.lookup("contrast", shape, range, severity), **padded.own_size(shape)}


def _apply_contrast(image, params):
    """Mixes with the mean over all pixels and channels: (1 - w) x + w mean(x).

    Source: ImageNet-NOC, contrast.
    """
    weight, x = params["weight"], color.to_levels(image)
    means = jnp.split(color.channel_means(x, params.get("size")), x.shape[-1], axis=-1)
    mean = sum(means[1:], means[0]) * np.float32(1 / len(means))
    return color.from_levels(jnp.clip((1 - weight) * x + weight * mean, 0, 255))


contrast = candidate(
    "contrast",
    "lighting",
    _sample_contrast,
    _apply_contrast,
    (("weight", "1"),),
    mixes="mixes in the mean over all channels",
    padding=padding(),
)
