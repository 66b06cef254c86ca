"""Dashed marks: artifacts and vertical_artifacts."""

import jax
import jax.numpy as jnp

from corruptions.contract import Corruption, Fraction, Parameter
from corruptions.noc import severity as severities
from corruptions.noc import stamps
from corruptions.noc.draws import integer
from corruptions.primitives import painting
from corruptions.registry import register

_SOURCE = "ImageNet-NOC (2021), appendix A, and the released code"
_PARAMETERS = (
    Parameter("number", "marks", _SOURCE),
    Parameter("lines", "pixels", _SOURCE),
    Parameter("centres", "pixels", _SOURCE),
    Parameter("tailed", "bool", _SOURCE),
    Parameter("grey", "intensity", _SOURCE),
)


def _sample_marks(key, name, shape, bounds, severity):
    """Marks on the lines (axis 0) of `shape`, for as many as the range allows."""
    greatest = (max(1, *bounds),)
    mark = stamps.mark(shape)
    line_key, centre_key, tail_key, grey_key = jax.random.split(key, 4)
    last_line, last_centre = shape[0] - 1 - mark.half_height, shape[1] - 1 - mark.half_length
    return {
        "number": severities.value(name, bounds, severity),
        "lines": integer(line_key, mark.half_height, last_line, greatest),
        "centres": integer(centre_key, mark.half_length, last_centre, greatest),
        "tailed": jax.random.bernoulli(tail_key, stamps.TAIL_PROBABILITY, greatest),
        "grey": jax.random.uniform(grey_key),
    }


def _covered(params, shape):
    """bool [H, W]: pixels of the marks on an image whose lines are axis 0."""
    mark = stamps.mark(shape)
    lines, centres, tailed = (params[k][:, None] for k in ("lines", "centres", "tailed"))
    painted = (jnp.arange(lines.shape[0]) < params["number"])[:, None]
    rows = painted & (jnp.abs(jnp.arange(shape[0]) - lines) <= mark.half_height)
    offset = jnp.arange(shape[1]) - centres
    columns = jnp.abs(offset) <= mark.half_length
    for tail in filter(None, (mark.left, mark.right)):
        # A tail that would leave the image is left out as a whole.
        fits = (centres + tail[0] >= 0) & (centres + tail[-1] < shape[1])
        dots = (offset >= tail[0]) & (offset <= tail[-1]) & ((offset - tail[0]) % 2 == 0)
        columns |= dots & fits & tailed
    return painting.covered_by_products(rows, columns)


def _sample_artifacts(key, shape, severity, *, range=None):
    """Horizontal dashes. Draws: their lines, 1..H-2, and centres, 2..W-3; whether they have tails,
    with probability 6/7; one grey for all, uniform in [0, 1).

    Options: `range` of their number, by default 14..170 at 224.
    """
    bounds = severities.resolve("artifacts", shape, range)
    return _sample_marks(key, "artifacts", shape, bounds, severity)


def _apply_artifacts(image, params):
    """n marks of one grey: a dash of 5 pixels with dotted tails of 10, three lines high
    (ImageNet-NOC, artifacts).
    """
    return jnp.where(_covered(params, image.shape)[..., None], params["grey"], image)


artifacts = register(
    Corruption(
        name="artifacts",
        benchmark="noc",
        family="occlusion",
        sampler=_sample_artifacts,
        applier=_apply_artifacts,
        scale=Fraction(),
        rounding="nearest",
        parameters=_PARAMETERS,
    )
)


def _sample_vertical_artifacts(key, shape, severity, *, range=None):
    """Vertical dashes. Draws: as `artifacts`, with the axes swapped (the published code does so for
    squares only).

    Options: `range` of their number, by default 14..180 at 224.
    """
    bounds = severities.resolve("vertical_artifacts", shape, range)
    return _sample_marks(key, "vertical_artifacts", (shape[1], shape[0]), bounds, severity)


def _apply_vertical_artifacts(image, params):
    """The marks of `artifacts` with the two axes swapped (ImageNet-NOC, vertical_artifacts)."""
    covered = _covered(params, (image.shape[1], image.shape[0])).T
    return jnp.where(covered[..., None], params["grey"], image)


vertical_artifacts = register(
    Corruption(
        name="vertical_artifacts",
        benchmark="noc",
        family="occlusion",
        sampler=_sample_vertical_artifacts,
        applier=_apply_vertical_artifacts,
        scale=Fraction(),
        rounding="nearest",
        parameters=_PARAMETERS,
    )
)
