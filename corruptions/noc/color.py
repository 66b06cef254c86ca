"""Values, each pixel by itself: colour, lighting and noise."""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.noc import severities
from corruptions.noc.severities import Bounds, integer, looked_up, register, sign
from corruptions.primitives import color, padded, random


@register(
    "noise",
    looked_up("quantization", "steps"),
    {"steps": "grey levels - 1"},
    straight_through=lambda image, params: image,
)
def quantization(image: Image, params: Params) -> Image:
    """Rounds to L steps, halves to even: round(L x) / L. Source: ImageNet-NOC, quantization."""
    steps = params["steps"].astype(jnp.float32)
    return color.clip(jnp.round(image * steps) / steps)


def _sample_color_distortion(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None) -> Params:
    """Draws `channel`, uniform among three; looks up `shift`.

    Options: `range` of the shift, by default 0.09..0.40; positive only, as in the released code.
    """
    return {"shift": severities.lookup("color_distortion", shape, range, severity), "channel": integer(key, 0, 2)}


@register(
    "color",
    _sample_color_distortion,
    {"shift": "intensity", "channel": "index"},
    aliases=("color_disortion",),
    mixes="shifts one of red, green and blue",
)
def color_distortion(image: Image, params: Params) -> Image:
    """Shifts one channel: clip(x + d). Source: ImageNet-NOC, color_disortion as released."""
    chosen = (jnp.arange(3) == params["channel"]).astype(jnp.float32)
    return color.clip(image + (params["shift"] * chosen)[None, None, :])


@register("color", looked_up("gray_scale", "weight"), {"weight": "1"}, mixes="mixes in the luma of red, green and blue")
def gray_scale(image: Image, params: Params) -> Image:
    """Mixes with the luma: w Y + (1 - w) x, Y = 0.299 R + 0.587 G + 0.114 B.

    Source: ImageNet-NOC, gray_scale, whose released code rounds Y to 8 bits; here Y is not rounded, a difference
    below 1/255.
    """
    luma = color.luma(image)[..., None]
    return color.clip(params["weight"] * luma + (1 - params["weight"]) * image)


@register("color", looked_up("hue", "turns", signed=True), {"turns": "turns"}, mixes="turns the hue")
def hue(image: Image, params: Params) -> Image:
    """Rotates the hue by d turns in HSV: h + d (mod 1), saturation and value kept.

    Formula: `primitives.color.turn_hue`. Source: ImageNet-NOC, hue, which works in 8 bits; this does not.
    """
    return color.turn_hue(image, params["turns"])


def _sample_backlight(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None) -> Params:
    """Draws the axis of a split, either with probability 1/2, its place and which side brightens.

    `split` is W//2 + (floor(-W/5)..W//5); for an upper and a lower part (`upright`) with the height instead of W. The
    sign of `shift` says which side brightens.

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


@register("lighting", _sample_backlight, {"shift": "intensity", "upright": "bool", "split": "pixels"})
def backlight(image: Image, params: Params) -> Image:
    """Brightens one side of a split and darkens the other: clip(x + d) before it, else clip(x - d).

    Source: ImageNet-NOC, backlight.
    """
    rows, columns = jnp.arange(image.shape[0])[:, None], jnp.arange(image.shape[1])
    before = jnp.where(params["upright"], rows, columns) < params["split"]
    shift = jnp.where(before, params["shift"], -params["shift"])
    return color.clip(image + shift[..., None])


@register("lighting", looked_up("brightness", "shift", signed=True), {"shift": "intensity"})
def brightness(image: Image, params: Params) -> Image:
    """Shifts all channels by the same d: clip(x + d). Source: ImageNet-NOC, brightness."""
    return color.clip(image + params["shift"])


@register("lighting", looked_up("contrast", "weight"), {"weight": "1"}, mixes="mixes in the mean over all channels")
def contrast(image: Image, params: Params) -> Image:
    """Mixes with the mean over all pixels and channels: (1 - w) x + w mean(x).

    Source: ImageNet-NOC, contrast.
    """
    weight, x = params["weight"], color.to_levels(image)
    means = jnp.split(color.channel_means(x, params), x.shape[-1], axis=-1)
    mean = sum(means[1:], means[0]) * np.float32(1 / len(means))
    return color.from_levels(color.clip((1 - weight) * x + weight * mean, 0, 255))


def _sample_gaussian(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None, half_normal=True):
    """Draws `noise` ~ N(0, sigma^2) for every pixel and channel, by default its magnitude.

    Options: `range` of sigma, by default 0.05..0.18. `half_normal=True` takes the noise's magnitude, a mean shift of
    0.8 sigma: so does the released code, with which the published ranges and errors were measured.
    `half_normal=False` takes the noise itself, as the paper says.
    """
    if half_normal not in (True, False):
        raise ValueError(f"expected half_normal=True or False, found {half_normal!r}")
    deviation = severities.lookup("gaussian", shape, range, severity)
    noise = random.normal(key, shape)
    return {"noise": deviation * (jnp.abs(noise) if half_normal else noise)}


@register("noise", _sample_gaussian, {"noise": "intensity, sigma 0.05..0.18"})
def gaussian(image: Image, params: Params) -> Image:
    """Adds the noise: clip(x + n). Source: ImageNet-NOC, gaussian."""
    return color.clip(image + params["noise"])


def _sample_salt_pepper(key: Key, shape: Shape, severity: Severity, *, range: Bounds = None) -> Params:
    """Draws `uniform`, u in [0, 1) for every pixel and channel.

    Options: `range` of the probability p that a channel value is replaced, by default 0.003..0.032.
    """
    return {
        "uniform": random.uniform(key, shape),
        "probability": severities.lookup("salt_pepper", shape, range, severity),
    }


@register("noise", _sample_salt_pepper, {"uniform": "1", "probability": "per channel value"})
def salt_pepper(image: Image, params: Params) -> Image:
    """Sets channel values to 0 where u < p/2 and to 1 where p/2 <= u < p.

    Source: ImageNet-NOC, salt_pepper as released.
    """
    uniform, probability = params["uniform"], params["probability"]
    impulse = (uniform >= probability / 2).astype(image.dtype)
    return jnp.where(uniform < probability, impulse, image)
