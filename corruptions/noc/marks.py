"""Dashed marks: artifacts and vertical_artifacts."""

import jax
import jax.numpy as jnp

from corruptions.noc import severities, stamps
from corruptions.noc.candidate import candidate
from corruptions.noc.draws import integer
from corruptions.primitives import painting

_PARAMETERS = (
    ("number", "marks"),
    ("lines", "pixels"),
    ("centres", "pixels"),
    ("tailed", "bool"),
    ("grey", "intensity"),
)


def _sample_marks(key, name, shape, bounds, severity):
    """Draws marks on the lines (axis 0) of `shape`, as many as the range allows."""
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
    """Finds the pixels of the marks, bool [H, W], on an image whose lines are axis 0."""
    mark = stamps.mark(shape)
    lines, centres, tailed = (params[k][:, None] for k in ("lines", "centres", "tailed"))
    painted = (jnp.arange(lines.shape[0]) < params["number"])[:, None]
    rows = painted & (jnp.abs(jnp.arange(shape[0])[None, :] - lines) <= mark.half_height)
    offset = jnp.arange(shape[1])[None, :] - centres
    columns = jnp.abs(offset) <= mark.half_length
    for tail in filter(None, (mark.left, mark.right)):
        # A tail that would leave the image is left out as a whole.
        fits = (centres + tail[0] >= 0) & (centres + tail[-1] < shape[1])
        dots = (offset >= tail[0]) & (offset <= tail[-1]) & ((offset - tail[0]) % 2 == 0)
        columns |= dots & fits & tailed
    return painting.covered_by_products(rows, columns)


def _sample_artifacts(key, shape, severity, *, range=None):
    """Draws the places of the marks, which have tails, and one `grey` for all, uniform in [0, 1).

    At 224 `lines` are uniform in 1..H-2 and `centres` in 2..W-3, so that no dash leaves the image;
    a mark is `tailed` with probability 6/7.

    Options: `range` of their number, by default 14..170 at 224.
    """
    bounds = severities.resolve("artifacts", shape, range)
    return _sample_marks(key, "artifacts", shape, bounds, severity)


def _apply_artifacts(image, params):
    """Paints n marks of one grey: a dash of 5 pixels with dotted tails of 10, three lines high.

    These are the sizes at 224, see `stamps.mark`. Source: ImageNet-NOC, artifacts.
    """
    return jnp.where(_covered(params, image.shape)[..., None], params["grey"], image)


artifacts = candidate("artifacts", "occlusion", _sample_artifacts, _apply_artifacts, _PARAMETERS)


def _sample_vertical_artifacts(key, shape, severity, *, range=None):
    """Draws as `artifacts`, with the axes swapped; the published code does so for squares only.

    Options: `range` of their number, by default 14..180 at 224.
    """
    bounds = severities.resolve("vertical_artifacts", shape, range)
    return _sample_marks(key, "vertical_artifacts", (shape[1], shape[0]), bounds, severity)


def _apply_vertical_artifacts(image, params):
    """Paints `artifacts` with the axes swapped. Source: ImageNet-NOC, vertical_artifacts."""
    covered = _covered(params, (image.shape[1], image.shape[0])).T
    return jnp.where(covered[..., None], params["grey"], image)


vertical_artifacts = candidate(
    "vertical_artifacts", "occlusion", _sample_vertical_artifacts, _apply_vertical_artifacts, _PARAMETERS
)
