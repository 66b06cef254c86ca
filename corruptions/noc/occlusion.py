"""Occlusions: obstruction and border."""

import jax
import jax.numpy as jnp

from corruptions.contract import Corruption, Fraction, Parameter
from corruptions.noc import severity as severities
from corruptions.noc.draws import grey_value, integer
from corruptions.registry import register

_SOURCE = "ImageNet-NOC (2021), appendix A, and the released code"


def _sample_obstruction(key, shape, severity, *, range=None, grey=None):
    """A square and its place. Draws: row and column of its top left corner, whole and uniform where
    the square stays inside the image; the grey, uniform in [0, 1).

    Options: `range` of the side in pixels, by default 47..125 at 224 (S1 used 50..120); `grey`, a
    fixed grey.
    """
    place_key, grey_key = jax.random.split(key)
    side = severities.lookup("obstruction", shape, range, severity)
    row_key, column_key = jax.random.split(place_key)
    return {
        "side": side,
        "top": integer(row_key, 0, shape[0] - side),
        "left": integer(column_key, 0, shape[1] - side),
        "grey": grey_value(grey_key, grey),
    }


def _apply_obstruction(image, params):
    """x = g inside one square of `side` pixels (ImageNet-NOC, obstruction)."""
    rows, columns = jnp.arange(image.shape[0])[:, None], jnp.arange(image.shape[1])
    inside = (rows >= params["top"]) & (rows < params["top"] + params["side"])
    inside &= (columns >= params["left"]) & (columns < params["left"] + params["side"])
    return jnp.where(inside[..., None], params["grey"], image)


obstruction = register(
    Corruption(
        name="obstruction",
        benchmark="noc",
        family="occlusion",
        sampler=_sample_obstruction,
        applier=_apply_obstruction,
        scale=Fraction(),
        rounding="nearest",
        parameters=(
            Parameter("side", "pixels", _SOURCE),
            Parameter("top", "pixels", _SOURCE),
            Parameter("left", "pixels", _SOURCE),
            Parameter("grey", "intensity", _SOURCE),
        ),
    )
)


def _sample_border(key, shape, severity, *, range=None, grey=None):
    """A frame. Draws: its grey, uniform in [0, 1).

    Options: `range` of the thickness in pixels, by default 9..46 at 224 (S1 used 10..45); `grey`, a
    fixed grey (the first released code used 0.5).
    """
    return {
        "thickness": severities.lookup("border", shape, range, severity),
        "grey": grey_value(key, grey),
    }


def _apply_border(image, params):
    """x = g within `thickness` pixels of any of the four sides (ImageNet-NOC, border)."""
    height, width, _ = image.shape
    rows, columns = jnp.arange(height)[:, None], jnp.arange(width)
    distance = jnp.minimum(jnp.minimum(rows, height - 1 - rows), jnp.minimum(columns, width - 1 - columns))
    return jnp.where((distance < params["thickness"])[..., None], params["grey"], image)


border = register(
    Corruption(
        name="border",
        benchmark="noc",
        family="occlusion",
        sampler=_sample_border,
        applier=_apply_border,
        scale=Fraction(),
        rounding="nearest",
        parameters=(
            Parameter("thickness", "pixels", _SOURCE),
            Parameter("grey", "intensity", _SOURCE),
        ),
    )
)
