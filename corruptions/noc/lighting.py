"""Lighting: backlight, brightness and contrast."""

import jax
import jax.numpy as jnp

from corruptions.contract import Corruption, Fraction, Parameter
from corruptions.noc import severity as severities
from corruptions.noc.draws import integer, sign
from corruptions.registry import register

_SOURCE = "ImageNet-NOC (2021), appendix A, and the released code"


def _sample_backlight(key, shape, severity, *, range=None):
    """A split. Draws: the axis, either with probability 1/2; the place of the split, W//2 +
    (floor(-W/5)..W//5), with the height instead of W for an upper and a lower part; which side
    brightens, as a sign.

    Options: `range` of the change of intensity, by default 0.11..0.44.
    """
    axis_key, place_key, sign_key = jax.random.split(key, 3)
    upright = jax.random.bernoulli(axis_key)
    side = jnp.where(upright, shape[0], shape[1])
    return {
        "shift": severities.lookup("backlight", shape, range, severity) * sign(sign_key),
        "upright": upright,
        "split": side // 2 + integer(place_key, -side // 5, side // 5),
    }


def _apply_backlight(image, params):
    """clip(x + d) before the split, clip(x - d) from it on, along one axis (ImageNet-NOC,
    backlight).
    """
    rows, columns = jnp.arange(image.shape[0])[:, None], jnp.arange(image.shape[1])
    before = jnp.where(params["upright"], rows, columns) < params["split"]
    shift = jnp.where(before, params["shift"], -params["shift"])
    return jnp.clip(image + shift[..., None], 0.0, 1.0)


backlight = register(
    Corruption(
        name="backlight",
        benchmark="noc",
        family="lighting",
        sampler=_sample_backlight,
        applier=_apply_backlight,
        scale=Fraction(),
        rounding="nearest",
        parameters=(
            Parameter("shift", "intensity", _SOURCE),
            Parameter("upright", "bool", _SOURCE),
            Parameter("split", "pixels", _SOURCE),
        ),
    )
)


def _sample_brightness(key, shape, severity, *, range=None):
    """A shift. Draws: its sign. Options: `range` of the shift, by default 0.16..0.51."""
    return {"shift": severities.lookup("brightness", shape, range, severity) * sign(key)}


def _apply_brightness(image, params):
    """x = clip(x + d), the same d for all channels (ImageNet-NOC, brightness)."""
    return jnp.clip(image + params["shift"], 0.0, 1.0)


brightness = register(
    Corruption(
        name="brightness",
        benchmark="noc",
        family="lighting",
        sampler=_sample_brightness,
        applier=_apply_brightness,
        scale=Fraction(),
        rounding="nearest",
        parameters=(Parameter("shift", "intensity", _SOURCE),),
    )
)


def _sample_contrast(key, shape, severity, *, range=None):
    """The weight of the mean; nothing else is random. Options: `range` of the weight, by default
    0.33..0.74.
    """
    del key
    return {"weight": severities.lookup("contrast", shape, range, severity)}


def _apply_contrast(image, params):
    """x = (1 - w) x + w mean(x), one mean over all pixels and channels (ImageNet-NOC, contrast)."""
    weight = params["weight"]
    return jnp.clip((1 - weight) * image + weight * image.mean(), 0.0, 1.0)


contrast = register(
    Corruption(
        name="contrast",
        benchmark="noc",
        family="lighting",
        sampler=_sample_contrast,
        applier=_apply_contrast,
        scale=Fraction(),
        rounding="nearest",
        parameters=(Parameter("weight", "1", _SOURCE),),
    )
)
