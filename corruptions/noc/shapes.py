"""Painted shapes: rhombus, circle, rain and arlequin."""

import jax
import jax.numpy as jnp

from corruptions.contract import Corruption, Fraction, Parameter
from corruptions.noc import severity as severities
from corruptions.noc import stamps
from corruptions.noc.draws import integer
from corruptions.primitives import painting
from corruptions.registry import register

_SOURCE = "ImageNet-NOC (2021), appendix A, and the released code"
_NUMBER = Parameter("number", "shapes", _SOURCE)
_CENTRES = (Parameter("rows", "pixels", _SOURCE), Parameter("columns", "pixels", _SOURCE))


def _number_and_centres(key, name, shape, given, fraction, runs):
    """How many shapes and, for as many as the range allows, their centres: rows and columns uniform
    where the shape stays inside the image (7..H-7 and 7..W-7 at 224).
    """
    bounds = severities.resolve(name, shape, given)
    greatest = (max(1, *bounds),)
    row_key, column_key = jax.random.split(key)
    margin = stamps.margin(runs)
    return {
        "number": severities.value(name, bounds, fraction),
        "rows": integer(row_key, margin, shape[0] - margin, greatest),
        "columns": integer(column_key, margin, shape[1] - margin, greatest),
    }


def _paint(image, params, runs):
    """Shapes filled each with its own grey, later ones over earlier ones."""
    return painting.paint(image, params["rows"], params["columns"], params["number"], params["greys"], runs)


def _sample_rhombus(key, shape, severity, *, range=None):
    """Lozenges. Draws: their centres; their greys, uniform in [0, 1).

    Options: `range` of their number, by default 9..76 at 224.
    """
    centre_key, grey_key = jax.random.split(key)
    runs = stamps.lozenge(shape)
    params = _number_and_centres(centre_key, "rhombus", shape, range, severity, runs)
    return params | {"greys": jax.random.uniform(grey_key, params["rows"].shape)}


def _apply_rhombus(image, params):
    """n lozenges, each of one grey, later over earlier (ImageNet-NOC, rhombus): 13 x 14 pixels as
    released.
    """
    return _paint(image, params, stamps.lozenge(image.shape))


rhombus = register(
    Corruption(
        name="rhombus",
        benchmark="noc",
        family="occlusion",
        sampler=_sample_rhombus,
        applier=_apply_rhombus,
        scale=Fraction(),
        rounding="nearest",
        parameters=(_NUMBER, *_CENTRES, Parameter("greys", "intensity", _SOURCE)),
    )
)


def _sample_circle(key, shape, severity, *, range=None):
    """Discs. Draws: their centres; their greys, uniform in [0, 1).

    Options: `range` of their number, by default 7..50 at 224.
    """
    centre_key, grey_key = jax.random.split(key)
    params = _number_and_centres(centre_key, "circle", shape, range, severity, stamps.disc(shape))
    return params | {"greys": jax.random.uniform(grey_key, params["rows"].shape)}


def _apply_circle(image, params):
    """n discs, each of one grey, later over earlier (ImageNet-NOC, circle): 13 x 13 pixels as
    released.
    """
    return _paint(image, params, stamps.disc(image.shape))


circle = register(
    Corruption(
        name="circle",
        benchmark="noc",
        family="occlusion",
        sampler=_sample_circle,
        applier=_apply_circle,
        scale=Fraction(),
        rounding="nearest",
        parameters=(_NUMBER, *_CENTRES, Parameter("greys", "intensity", _SOURCE)),
    )
)


def _sample_rain(key, shape, severity, *, range=None):
    """Translucent discs. Draws: their centres. Options: `range` of their number, by default 12..120
    at 224.
    """
    return _number_and_centres(key, "rain", shape, range, severity, stamps.disc(shape))


def _apply_rain(image, params):
    """x = (1 + x) / 2 for each disc covering the pixel, hence 1 - (1 - x) 2^-m for m of them
    (ImageNet-NOC, rain).
    """
    covering = painting.covering(
        params["rows"], params["columns"], params["number"], stamps.disc(image.shape), image.shape
    )
    # In this form a pixel that no disc covers is left exactly as it is.
    return jnp.clip(image + (1 - image) * (1 - jnp.exp2(-covering))[..., None], 0.0, 1.0)


rain = register(
    Corruption(
        name="rain",
        benchmark="noc",
        family="weather",
        sampler=_sample_rain,
        applier=_apply_rain,
        scale=Fraction(),
        rounding="nearest",
        parameters=(_NUMBER, *_CENTRES),
    )
)


def _sample_arlequin(key, shape, severity, *, range=None):
    """Lozenges of one colour. Draws: their centres; the colour, uniform in [0, 1)^3.

    Options: `range` of their number, by default 3..36 at 224. Left out of the 23 candidates by the
    authors.
    """
    centre_key, colour_key = jax.random.split(key)
    runs = stamps.lozenge(shape)
    params = _number_and_centres(centre_key, "arlequin", shape, range, severity, runs)
    return params | {"colour": jax.random.uniform(colour_key, (3,))}


def _apply_arlequin(image, params):
    """n lozenges, all of one colour (ImageNet-NOC, first released code, arlequin)."""
    runs = stamps.lozenge(image.shape)
    covering = painting.covering(params["rows"], params["columns"], params["number"], runs, image.shape)
    return jnp.where((covering > 0)[..., None], params["colour"], image)


arlequin = register(
    Corruption(
        name="arlequin",
        benchmark="noc",
        family="occlusion",
        sampler=_sample_arlequin,
        applier=_apply_arlequin,
        scale=Fraction(),
        rounding="nearest",
        parameters=(_NUMBER, *_CENTRES, Parameter("colour", "intensity", _SOURCE)),
    )
)
