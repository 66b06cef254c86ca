"""Painted shapes: rhombus, circle, rain and arlequin."""

import jax
import jax.numpy as jnp

from corruptions.noc import severities, stamps
from corruptions.noc.candidate import candidate
from corruptions.noc.draws import integer
from corruptions.primitives import painting

_NUMBER = ("number", "shapes")
_CENTRES = (("rows", "pixels"), ("columns", "pixels"))


def _number_and_centres(key, name, shape, given, fraction, runs):
    """Looks up how many shapes, and draws the centres of as many as the range allows.

    Rows and columns are uniform where the shape stays inside the image (7..H-7 and 7..W-7 at 224).
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
    """Paints shapes of one grey each, later ones over earlier ones."""
    return painting.paint(image, params["rows"], params["columns"], params["number"], params["greys"], runs)


def _sample_rhombus(key, shape, severity, *, range=None):
    """Draws the centres, `rows` and `columns`, and `greys`, uniform in [0, 1).

    Options: `range` of the number of lozenges, by default 9..76 at 224.
    """
    centre_key, grey_key = jax.random.split(key)
    runs = stamps.lozenge(shape)
    params = _number_and_centres(centre_key, "rhombus", shape, range, severity, runs)
    return params | {"greys": jax.random.uniform(grey_key, params["rows"].shape)}


def _apply_rhombus(image, params):
    """Paints n lozenges of one grey each, later over earlier; 13 x 14 pixels at 224, as released.

    Source: ImageNet-NOC, rhombus.
    """
    return _paint(image, params, stamps.lozenge(image.shape))


rhombus = candidate(
    "rhombus", "occlusion", _sample_rhombus, _apply_rhombus, (_NUMBER, *_CENTRES, ("greys", "intensity"))
)


def _sample_circle(key, shape, severity, *, range=None):
    """Draws the centres, `rows` and `columns`, and `greys`, uniform in [0, 1).

    Options: `range` of the number of discs, by default 7..50 at 224.
    """
    centre_key, grey_key = jax.random.split(key)
    params = _number_and_centres(centre_key, "circle", shape, range, severity, stamps.disc(shape))
    return params | {"greys": jax.random.uniform(grey_key, params["rows"].shape)}


def _apply_circle(image, params):
    """Paints n discs of one grey each, later over earlier; 13 x 13 pixels at 224, as released.

    Source: ImageNet-NOC, circle.
    """
    return _paint(image, params, stamps.disc(image.shape))


circle = candidate("circle", "occlusion", _sample_circle, _apply_circle, (_NUMBER, *_CENTRES, ("greys", "intensity")))


def _sample_rain(key, shape, severity, *, range=None):
    """Draws the centres, `rows` and `columns`.

    Options: `range` of the number of discs, by default 12..120 at 224.
    """
    return _number_and_centres(key, "rain", shape, range, severity, stamps.disc(shape))


def _apply_rain(image, params):
    """Paints n translucent discs: each takes x to (1 + x) / 2, hence m of them to 1 - (1 - x) 2^-m.

    Source: ImageNet-NOC, rain.
    """
    covering = painting.covering(
        params["rows"], params["columns"], params["number"], stamps.disc(image.shape), image.shape
    )
    # In this form a pixel that no disc covers is left exactly as it is.
    return jnp.clip(image + (1 - image) * (1 - jnp.exp2(-covering))[..., None], 0.0, 1.0)


rain = candidate("rain", "weather", _sample_rain, _apply_rain, (_NUMBER, *_CENTRES))


def _sample_arlequin(key, shape, severity, *, range=None):
    """Draws the centres, `rows` and `columns`, and `colour`, uniform in [0, 1)^3.

    Options: `range` of the number of lozenges, by default 3..36 at 224.
    """
    centre_key, colour_key = jax.random.split(key)
    runs = stamps.lozenge(shape)
    params = _number_and_centres(centre_key, "arlequin", shape, range, severity, runs)
    return params | {"colour": jax.random.uniform(colour_key, (3,))}


def _apply_arlequin(image, params):
    """Paints n lozenges, all of one colour.

    Source: arlequin of the first released code; the authors left it out of their 23 candidates.
    """
    runs = stamps.lozenge(image.shape)
    covering = painting.covering(params["rows"], params["columns"], params["number"], runs, image.shape)
    return jnp.where((covering > 0)[..., None], params["colour"], image)


arlequin = candidate(
    "arlequin",
    "occlusion",
    _sample_arlequin,
    _apply_arlequin,
    (_NUMBER, *_CENTRES, ("colour", "intensity")),
    mixes="paints shapes of red, green and blue",
)
