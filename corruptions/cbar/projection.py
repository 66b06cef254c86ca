"""The image seen at an angle: perspective_no_bars and quadrilateral_no_bars.

What a projection leaves uncovered would be black bars; it shows the image itself instead.
"""

import jax.numpy as jnp

from corruptions import padded
from corruptions.cbar import severities
from corruptions.cbar.candidate import candidate, padding, side
from corruptions.primitives import random
from corruptions.primitives.warping import bilinear


def _sample_perspective(key, shape, severity, *, table=None):
    """Draws a projection: the signs of the two shears +-0.01 s, the two shifts +-0.01 s N and the
    exponents of the two scales 2^(+-0.015 s), N = min(H, W).

    The tilt is 0.02 s / N along both axes; in the released code its sign never changes. Options:
    `table`, `cifar` or `imagenet`, by default the one made for the nearest size.
    """
    strength = severities.scanned("perspective_no_bars", severity, shape, table)
    signs = jnp.where(random.bernoulli(key, 0.5, (3, 2)), -1.0, 1.0)
    return {
        "shears": 0.01 * strength * signs[0],
        "shifts": 0.01 * strength * side(shape) * signs[1],
        "scales": jnp.exp2(0.015 * strength * signs[2]),
        "tilt": 0.02 * strength / side(shape),
        **padded.own_size(shape),
    }


def _map_perspective(shape, params):
    """Where the image is looked up: rows and columns [H, W]."""
    x, y = _pixel_centres(shape)
    shears, shifts, scales = params["shears"], params["shifts"], params["scales"]
    inverse = 1 / (params["tilt"] * (x + y) + 1)
    source_x = (scales[0] * x + shears[0] * y + shifts[0]) * inverse
    return _where_inside(shape, params, source_x, (shears[1] * x + scales[1] * y + shifts[1]) * inverse)


def _apply_perspective(image, params):
    """Projects the image: the pixel at (X, Y), from the corner of the image, takes the colour at
    (f_x X + o_x Y + t_x, o_y X + f_y Y + t_y) / (g X + g Y + 1), bilinear with the border repeated,
    or keeps its own where that is outside the image (C-bar, perspective_no_bars).
    """
    return bilinear.clamped(image, *_map_perspective(image.shape, params))


perspective_no_bars = candidate(
    "perspective_no_bars",
    "geometry",
    _sample_perspective,
    _apply_perspective,
    (
        ("shears", "1, of x and of y"),
        ("shifts", "pixels, of x and of y"),
        ("scales", "1, of x and of y"),
        ("tilt", "1 / pixels"),
    ),
    moves="projects the image",
    mapper=_map_perspective,
    padding=padding("edge"),
)


def _sample_quadrilateral(key, shape, severity, *, table=None):
    """Draws four corners (x, y), north-west, south-west, south-east, north-east: each is moved by
    U[-1, 1)^2 s N / 30, N = min(H, W).

    Options: `table`, `cifar` or `imagenet`, by default the one made for the nearest size.
    """
    height, width = padded.own(shape)[:2]
    reach = severities.scanned("quadrilateral_no_bars", severity, shape, table) * side(shape) / 30
    corners = jnp.array([(0, 0), (0, height), (width, height), (width, 0)], jnp.float32)
    return {"corners": corners + reach * random.uniform(key, (4, 2), -1.0, 1.0), **padded.own_size(shape)}


def _map_quadrilateral(shape, params):
    """Where the image is looked up: rows and columns [H, W]."""
    height, width = padded.height_and_width(shape, params)
    x, y = _pixel_centres(shape)
    x, y = x / jnp.float32(width), y / jnp.float32(height)
    north_west, south_west, south_east, north_east = params["corners"]

    def source(axis):
        north = north_west[axis] + x * (north_east[axis] - north_west[axis])
        south = south_west[axis] + x * (south_east[axis] - south_west[axis])
        return north + y * (south - north)

    return _where_inside(shape, params, source(0), source(1))


def _apply_quadrilateral(image, params):
    """Stretches the image to its four corners: the pixel at (X, Y), from the corner of the image,
    takes the colour at the mean of the four corners, weighted bilinearly by (X / W, Y / H);
    bilinear with the border repeated, or keeps its own where that is outside the image (C-bar,
    quadrilateral_no_bars).
    """
    return bilinear.clamped(image, *_map_quadrilateral(image.shape, params))


quadrilateral_no_bars = candidate(
    "quadrilateral_no_bars",
    "geometry",
    _sample_quadrilateral,
    _apply_quadrilateral,
    (("corners", "pixels, x and y, north-west, south-west, south-east, north-east"),),
    moves="projects the image",
    mapper=_map_quadrilateral,
    padding=padding("edge"),
)


def _pixel_centres(shape):
    x, y = (jnp.arange(n, dtype=jnp.float32) + 0.5 for n in (shape[1], shape[0]))
    return x[None, :], y[:, None]


def _where_inside(shape, params, x, y):
    """Rows and columns of (x, y), from the corner of the image, where that is inside it; elsewhere a
    pixel's own.
    """
    height, width = (jnp.float32(side) for side in padded.height_and_width(shape, params))
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    own_x, own_y = _pixel_centres(shape)
    return jnp.where(inside, y, own_y) - 0.5, jnp.where(inside, x, own_x) - 0.5
