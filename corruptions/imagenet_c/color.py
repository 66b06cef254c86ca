"""ImageNet-C brightness, contrast and saturate: deterministic colour changes in closed form.

The originals edit one channel of HSV and convert back; neither conversion is needed. Their results are truncated to
8 bits, and many are whole levels up to rounding errors, so a share of the levels (see the tests) comes out one off.
"""

import jax.numpy as jnp
import numpy as np

from corruptions import levels, registry
from corruptions.contract import Corruption, Levels, Parameter
from corruptions.imagenet_c import tables
from corruptions.primitives import color

_SOURCE = "ImageNet-C, appendix B and released code"

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


def _sample_brightness(key, shape, severity, *, table=None):
    """Lighter image: adds to the HSV value. Nothing is drawn."""
    del key
    return {"added": levels.lookup(_ADDED[tables.table_for(shape, table)], severity)}


def _apply_brightness(image, params):
    """x v'/v with v = max(R, G, B) and v' = min(v + added, 1); v' grey where v = 0.

    `added` is in units of the full range. Source: ImageNet-C, brightness.
    """
    x = color.to_levels(image)
    value, _ = color.value_and_chroma(x)
    lighter = jnp.clip(value + 255 * params["added"], 0, 255)
    # The largest channel takes v' itself, not v (v'/v), which may fall just below a whole level.
    return color.from_levels(jnp.where(x == value, lighter, lighter * (x / _nonzero(value))))


def _sample_contrast(key, shape, severity, *, table=None):
    """Lower contrast around each channel's mean. Nothing is drawn."""
    del key
    return {"gain": levels.lookup(_GAIN[tables.table_for(shape, table)], severity)}


def _apply_contrast(image, params):
    """clip((x - m) gain + m, 0, 1) with m the mean of the channel over the image. Source: ImageNet-C, contrast."""
    x = color.to_levels(image)
    # The mean of whole levels comes from an integer sum, without rounding errors; what remains is 0 for 8-bit images.
    whole = jnp.round(x)
    total = jnp.sum(whole.astype(jnp.int32), (0, 1)).astype(jnp.float32) + jnp.sum(x - whole, (0, 1))
    mean = total / np.float32(x.shape[0] * x.shape[1])
    return color.from_levels(jnp.clip((x - mean) * params["gain"] + mean, 0, 255))


def _sample_saturate(key, shape, severity, *, table=None):
    """Less or more saturated colours. Nothing is drawn."""
    del key
    factor, added = levels.lookup(_SATURATION[tables.table_for(shape, table)], severity)
    return {"factor": factor, "added": added}


def _apply_saturate(image, params):
    """HSV saturation s to s' = clip(factor s + added, 0, 1): v (1 - s' (v - x) / (v - min)), v = max(R, G, B).

    Greys have hue 0, which is red: they become (v, v (1 - s'), v (1 - s')), tinted when `added` > 0.
    Source: ImageNet-C, saturate.
    """
    x = color.to_levels(image)
    value, chroma = color.value_and_chroma(x)
    # v s' from the chroma v s, so that the saturation itself is never formed (it would be 0/0 for black).
    new_chroma = jnp.clip(params["factor"] * chroma + params["added"] * value, 0, value)
    below = jnp.where(chroma > 0, (value - x) / _nonzero(chroma), np.array([0, 1, 1], np.float32))
    return color.from_levels(value - new_chroma * below)


def _nonzero(x):
    return jnp.where(x > 0, x, 1)


brightness = registry.register(
    Corruption(
        name="brightness",
        benchmark="imagenet_c",
        family="digital",
        sampler=_sample_brightness,
        applier=_apply_brightness,
        scale=Levels(5),
        rounding="truncate",
        parameters=(Parameter("added", "fraction of full range, added to the HSV value", _SOURCE),),
    )
)

contrast = registry.register(
    Corruption(
        name="contrast",
        benchmark="imagenet_c",
        family="digital",
        sampler=_sample_contrast,
        applier=_apply_contrast,
        scale=Levels(5),
        rounding="truncate",
        parameters=(Parameter("gain", "factor on the distance from the channel mean", _SOURCE),),
    )
)

saturate = registry.register(
    Corruption(
        name="saturate",
        benchmark="imagenet_c",
        family="digital",
        sampler=_sample_saturate,
        applier=_apply_saturate,
        scale=Levels(5),
        rounding="truncate",
        parameters=(
            Parameter("factor", "on the HSV saturation", _SOURCE),
            Parameter("added", "to the HSV saturation", _SOURCE),
        ),
    )
)
