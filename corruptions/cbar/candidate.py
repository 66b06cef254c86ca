"""What the C-bar candidates have in common: how one is registered, and their grey levels."""

import jax.numpy as jnp

from corruptions import registry
from corruptions.cbar.severity import STEPS
from corruptions.contract import Corruption, Levels, Parameter
from corruptions.primitives import color

_SOURCE = "Mintun, Kirillov & Xie (2021), released code"


def candidate(name, family, sampler, applier, parameters, aliases=()):
    """Registers `cbar/<name>` with severities 1..10, truncated to 8 bits; `parameters` are (name, unit) pairs."""
    return registry.register(
        Corruption(
            name=name,
            benchmark="cbar",
            family=family,
            sampler=sampler,
            applier=applier,
            scale=Levels(STEPS),
            rounding="truncate",
            parameters=tuple(Parameter(parameter, unit, _SOURCE) for parameter, unit in parameters),
            aliases=aliases,
        )
    )


def to_image(levels):
    """Grey levels to [0, 1], those outside 0..255 clipped."""
    return color.from_levels(jnp.clip(levels, 0, 255))


def add_grey(image, plane):
    """The image with a plane of grey levels, float32 [H, W], added to every channel."""
    return to_image(color.to_levels(image) + plane[..., None])


def side(shape):
    """N, the side all lengths are measured by: min(H, W)."""
    return min(shape[:2])
