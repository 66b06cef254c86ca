"""Occlusions: obstruction and border."""

import jax
import jax.numpy as jnp

from corruptions import padded
from corruptions.noc import severities
from corruptions.noc.candidate import candidate, padding
from corruptions.noc.draws import grey_value, integer


def _sample_obstruction(key, shape, severity, *, range=None, grey=None):
    """Draws `top` and `left`, uniform where the square fits, and `grey`, uniform in [0, 1).

    Options: `range` of the side in pixels, by default 47..125 at 224 (50..120 in
    arXiv 2105.12357); `grey`, a fixed grey.
    """
    place_key, grey_key = jax.random.split(key)
    side = severities.lookup("obstruction", shape, range, severity)
    row_key, column_key = jax.random.split(place_key)
    height, width = padded.own(shape)[:2]
    return {
        "side": side,
        "top": integer(row_key, 0, height - side),
        "left": integer(column_key, 0, width - side),
        "grey": grey_value(grey_key, grey),
    }


def _apply_obstruction(image, params):
    """Paints one grey square of `side` pixels. Source: ImageNet-NOC, obstruction."""
    rows, columns = jnp.arange(image.shape[0])[:, None], jnp.arange(image.shape[1])[None, :]
    inside = (rows >= params["top"]) & (rows < params["top"] + params["side"])
    inside &= (columns >= params["left"]) & (columns < params["left"] + params["side"])
    return jnp.where(inside[..., None], params["grey"], image)


obstruction = candidate(
    "obstruction",
    "occlusion",
    _sample_obstruction,
    _apply_obstruction,
    (("side", "pixels"), ("top", "pixels"), ("left", "pixels"), ("grey", "intensity")),
    padding=padding("obstruction"),
)


def _sample_border(key, shape, severity, *, range=None, grey=None):
    """Draws `grey`, uniform in [0, 1).

    Options: `range` of the thickness in pixels, by default 9..46 at 224 (10..45 in arXiv
    2105.12357); `grey`, a fixed grey (0.5 in the first released code).
    """
    return {
        "thickness": severities.lookup("border", shape, range, severity),
        "grey": grey_value(key, grey),
        **padded.own_size(shape),
    }


def _apply_border(image, params):
    """Paints a grey frame of `thickness` pixels. Source: ImageNet-NOC, border."""
    height, width = padded.height_and_width(image.shape, params)
    rows, columns = jnp.arange(image.shape[0])[:, None], jnp.arange(image.shape[1])[None, :]
    distance = jnp.minimum(jnp.minimum(rows, height - 1 - rows), jnp.minimum(columns, width - 1 - columns))
    return jnp.where((distance < params["thickness"])[..., None], params["grey"], image)


border = candidate(
    "border",
    "occlusion",
    _sample_border,
    _apply_border,
    (("thickness", "pixels"), ("grey", "intensity")),
    padding=padding("border"),
)
