"""Displacements of pixels: ripple, scatter, caustic_refraction, perspective_no_bars and quadrilateral_no_bars.

A projection would leave black bars; it shows the image itself there instead.
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.cbar import severities
from corruptions.cbar.severities import padding, register, side
from corruptions.cbar.waves import caustic_draws
from corruptions.core.corruption import Image, Key, Params, Positions, Severity, Shape
from corruptions.primitives import color, filters, fixed_point, padded, random, staging, textures, warps


def _sample_ripple(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws a wave along each axis: wavelengths (of rows, of columns) ~ U[0.1, 0.3)^2 N, N = min(H, W), and phases ~
    U[0, 2 pi)^2.
    """
    wavelength_key, phase_key = jax.random.split(key)
    return {
        "amplitude": 0.0025 * severities.scanned("ripple", severity, shape, table) * side(shape),
        "wavelengths": random.uniform(wavelength_key, (2,), 0.1, 0.3) * side(shape),
        "phases": random.uniform(phase_key, (2,), 0.0, 2 * jnp.pi),
    }


def _map_ripple(shape: Shape, params: Params) -> Positions:
    def moved(axis):
        position = jnp.arange(shape[axis], dtype=jnp.float32)
        wave = jnp.sin(2 * jnp.pi / params["wavelengths"][axis] * position + params["phases"][axis])
        return staging.stage(position + params["amplitude"] * wave)

    return moved(0)[:, None], moved(1)[None, :]


@register(
    "geometry",
    _sample_ripple,
    {
        "amplitude": "pixels",
        "wavelengths": "pixels, along rows and columns",
        "phases": "radians, along rows and columns",
    },
    moves="moves pixels in waves",
    mapper=_map_ripple,
    padding=padding(),
)
def ripple(image: Image, params: Params) -> Image:
    """Moves pixels along both axes: x(y + A sin(2 pi y / w_y + phase_y), x + A sin(2 pi x / w_x + phase_x)),
    bilinear, zero outside the image (C-bar, ripple).

    Each axis moves by its own coordinate, as released; ripples usually move by the other one.
    """
    image = padded.blackened(image, params)
    return color.clip(warps.zero_padded(image, *_map_ripple(image.shape, params)))


def _sample_scatter(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Computes the reach and draws the seed of the hash ~ U[0, 10)."""
    return {
        "reach": 0.01 * severities.scanned("scatter", severity, shape, table) * side(shape),
        "seed": random.uniform(key, (), 0.0, 10.0),
    }


def _map_scatter(shape: Shape, params: Params) -> Positions:
    last_row, last_column = (jnp.float32(side - 1) for side in padded.own_sides(shape, params))
    down, right = _hashes(shape, params["seed"])
    y = jnp.arange(shape[0], dtype=jnp.float32)[:, None] + params["reach"] * (2 * down - 1)
    x = jnp.arange(shape[1], dtype=jnp.float32)[None, :] + params["reach"] * (2 * right - 1)
    return jnp.clip(y, 0, last_row), jnp.clip(x, 0, last_column)


@register(
    "geometry",
    _sample_scatter,
    {"reach": "pixels", "seed": "radians"},
    moves="moves each pixel by a hash of its position",
    mapper=_map_scatter,
    padding=padding(),
)
def scatter(image: Image, params: Params) -> Image:
    """Moves each pixel by a hash of its position: x(y + r (2 h(y, x) - 1), x + r (2 h(x, y) - 1)), positions clipped
    to the image, bilinear (C-bar, scatter).

    h is the hash of `_hashes`.
    """
    # The barrier keeps a TPU from mixing the hash with the look-ups, which takes twice as long.
    image, y, x = jax.lax.optimization_barrier((image, *_map_scatter(image.shape, params)))
    return color.clip(warps.zero_padded(image, y, x))


_INNER, _OUTER = (Fraction("12.9898"), Fraction("78.233")), Fraction("43758.5453")


def _hashes(shape, seed):
    """Computes a hash h(y, x) and h(x, y) of two numbers, float32 [H, W] in [0, 1], within 2^-23 but for whole numbers.

    h(u, v) = frac(43758.5453 sin(12.9898 sin(k u) + 78.233 cos(k v))). float32 cannot hold it: sines are fixed-point
    numbers, and what is whole wraps. The sine of the sum is taken apart into sines and cosines of u and of v alone:
    these are few.
    """
    angle = fixed_point.multiples(jax.lax.stop_gradient(seed), max(shape[:2]))
    angles = fixed_point.turns(fixed_point.sine_cosine(angle), _INNER)
    whole, rest = fixed_point.staged(angles)
    waves = fixed_point.sine_cosine(fixed_point.Turns(whole << 8, rest))
    scales = fixed_point.constants([_OUTER / 2**16, Fraction(1)])
    whole, rest = fixed_point.staged(fixed_point.product(waves, fixed_point.Fixed(*(x[None, :, None] for x in scales))))

    def fraction(height, width):
        total, small = jnp.int32(0), jnp.float32(0)  # in units of 2^-32, where int32 drops what is whole, and of 2^-8
        for i in (0, 1):
            n, m = whole[i, 0, :height, None], whole[1 - i, 1, None, :width]
            a, b = rest[i, 0, :height, None], rest[1 - i, 1, None, :width]
            total, small = total + n * m, small + (n.astype(jnp.float32) * b + a * m.astype(jnp.float32))
        total += jnp.round(small * 2.0**24).astype(jnp.int32)
        upper, lower = (x.astype(jnp.float32) for x in (jax.lax.shift_right_logical(total, 16), total & 0xFFFF))
        return staging.stage(upper * 2.0**-16 + lower * 2.0**-32)

    down = fraction(*shape[:2])
    # The table of a square image holds both.
    return down, (down if shape[0] == shape[1] else fraction(shape[1], shape[0])).T


_RADIUS = 4
_GAUSSIAN = np.exp(-0.5 * np.arange(-_RADIUS, _RADIUS + 1) ** 2)  # standard deviation 1
_GAUSSIAN = (_GAUSSIAN / _GAUSSIAN.sum()).astype(np.float32)
_INDEX_RATIO = 4  # sine of the angle of incidence over the sine of the refracted ray's angle
_FLAT = 1 / 0.999**2 - 1  # squared slope up to which a surface does not refract


def _sample_refraction(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws a surface: the time ~ U[0.5, 2) and the scale ~ U[0.75, 1.25) N of a caustic, N = min(H, W)."""
    strength = severities.scanned("caustic_refraction", severity, shape, table)
    return {"lens": 0.05 * strength * side(shape), "light": 0.2 * strength, **caustic_draws(key, shape)}


def _slopes(shape, params):
    """Computes the gradient of the surface, along rows and columns: float32 [H, W] each."""
    surface = staging.stage(textures.caustic(shape, params["time"], params["scale"]))
    surface = jnp.pad(_smooth(_smooth(surface, 0), 1), 1)
    return surface[2:, 1:-1] - surface[:-2, 1:-1], surface[1:-1, 2:] - surface[1:-1, :-2]


def _refracted(slopes, params):
    slope_y, slope_x = slopes
    height, width = slope_y.shape
    square = slope_y**2 + slope_x**2
    cosine_square = 1 / (1 + square)
    cosine = jnp.sqrt(cosine_square)
    # sin(a - b) / |g|, with sin a = |g| cos a: neither angles nor a division by the slope.
    refracted = jnp.sqrt(1 - square * cosine_square / _INDEX_RATIO**2)
    factor = params["lens"] * cosine * (refracted - cosine / _INDEX_RATIO)
    factor = jnp.where(square > _FLAT, factor, 0.0)
    y, x = jnp.arange(height, dtype=jnp.float32)[:, None], jnp.arange(width, dtype=jnp.float32)[None, :]
    return y + _to_thousandths(factor * slope_y), x + _to_thousandths(factor * slope_x)


@register(
    "geometry",
    _sample_refraction,
    {"lens": "pixels", "light": "1", "time": "radians", "scale": "pixels"},
    moves="refracts at a surface",
    mapper=lambda shape, params: _refracted(_slopes(shape, params), params),
)
def caustic_refraction(image: Image, params: Params) -> Image:
    """Refracts and lights the image: x(p + l sin(a - b) g / |g|) + e (g_y - g_x), clipped, bilinear, zero outside the
    image (C-bar, caustic_refraction).

    g is the gradient, by differences over two pixels and zero outside the image, of a caustic
    (`primitives.textures.caustic`) smoothed by a Gaussian of standard deviation 1; a = arctan |g| the angle of
    incidence, sin b = sin(a) / 4. Where cos a >= 0.999 there is no displacement; elsewhere it is rounded to 1/1000
    pixel. float32 arithmetic puts about one pixel in a million on the other side of that threshold.
    """
    slope_y, slope_x = slopes = _slopes(image.shape, params)
    moved = warps.zero_padded(image, *_refracted(slopes, params))
    return color.clip(moved + (params["light"] * (slope_y - slope_x))[..., None])


def _smooth(plane, axis):
    """Filters a plane, mirrored about its ends, with `_GAUSSIAN` along an axis."""
    size = plane.shape[axis]
    padded = filters.extended(plane, _RADIUS, (axis,), "symmetric")
    shifted = (jax.lax.slice_in_dim(padded, i, i + size, axis=axis) for i in range(2 * _RADIUS + 1))
    return staging.stage(sum(weight * plane for weight, plane in zip(_GAUSSIAN, shifted, strict=True)))


def _to_thousandths(x):
    return jnp.round(x * 1000) * 0.001


def _sample_perspective(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws a projection: the signs of the two shears +-0.01 s, the two shifts +-0.01 s N and the exponents of the
    two scales 2^(+-0.015 s), N = min(H, W).

    The tilt is 0.02 s / N along both axes; in the released code its sign never changes.
    """
    strength = severities.scanned("perspective_no_bars", severity, shape, table)
    signs = jnp.where(random.bernoulli(key, 0.5, (3, 2)), -1.0, 1.0)
    return {
        "shears": 0.01 * strength * signs[0],
        "shifts": 0.01 * strength * side(shape) * signs[1],
        "scales": jnp.exp2(0.015 * strength * signs[2]),
        "tilt": 0.02 * strength / side(shape),
    }


def _map_perspective(shape: Shape, params: Params) -> Positions:
    x, y = _pixel_centres(shape)
    shears, shifts, scales = params["shears"], params["shifts"], params["scales"]
    inverse = 1 / (params["tilt"] * (x + y) + 1)
    source_x = (scales[0] * x + shears[0] * y + shifts[0]) * inverse
    return _where_inside(shape, params, source_x, (shears[1] * x + scales[1] * y + shifts[1]) * inverse)


@register(
    "geometry",
    _sample_perspective,
    {
        "shears": "1, of x and of y",
        "shifts": "pixels, of x and of y",
        "scales": "1, of x and of y",
        "tilt": "1 / pixels",
    },
    moves="projects the image",
    mapper=_map_perspective,
    padding=padding("edge"),
)
def perspective_no_bars(image: Image, params: Params) -> Image:
    """Projects the image: the pixel at (X, Y), from the corner of the image, takes the colour at (f_x X + o_x Y +
    t_x, o_y X + f_y Y + t_y) / (g X + g Y + 1), bilinear with the border repeated, or keeps its own where that is
    outside the image (C-bar, perspective_no_bars).
    """
    return warps.clamped(image, *_map_perspective(image.shape, params))


def _sample_quadrilateral(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws four corners (x, y), north-west, south-west, south-east, north-east: each is moved by U[-1, 1)^2 s N /
    30, N = min(H, W).
    """
    height, width = padded.own(shape)[:2]
    reach = severities.scanned("quadrilateral_no_bars", severity, shape, table) * side(shape) / 30
    corners = jnp.array([(0, 0), (0, height), (width, height), (width, 0)], jnp.float32)
    return {"corners": corners + reach * random.uniform(key, (4, 2), -1.0, 1.0)}


def _map_quadrilateral(shape: Shape, params: Params) -> Positions:
    height, width = padded.own_sides(shape, params)
    x, y = _pixel_centres(shape)
    x, y = x / jnp.float32(width), y / jnp.float32(height)
    north_west, south_west, south_east, north_east = params["corners"]

    def source(axis):
        north = north_west[axis] + x * (north_east[axis] - north_west[axis])
        south = south_west[axis] + x * (south_east[axis] - south_west[axis])
        return north + y * (south - north)

    return _where_inside(shape, params, source(0), source(1))


@register(
    "geometry",
    _sample_quadrilateral,
    {"corners": "pixels, x and y, north-west, south-west, south-east, north-east"},
    moves="projects the image",
    mapper=_map_quadrilateral,
    padding=padding("edge"),
)
def quadrilateral_no_bars(image: Image, params: Params) -> Image:
    """Stretches the image to its four corners: the pixel at (X, Y), from the corner of the image, takes the colour at
    the mean of the four corners, weighted bilinearly by (X / W, Y / H); bilinear with the border repeated, or keeps
    its own where that is outside the image (C-bar, quadrilateral_no_bars).
    """
    return warps.clamped(image, *_map_quadrilateral(image.shape, params))


def _pixel_centres(shape):
    x, y = (jnp.arange(n, dtype=jnp.float32) + 0.5 for n in (shape[1], shape[0]))
    return x[None, :], y[:, None]


def _where_inside(shape, params, x, y):
    """Returns rows and columns of (x, y), from the corner of the image; outside of it a pixel's own."""
    height, width = (jnp.float32(side) for side in padded.own_sides(shape, params))
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    own_x, own_y = _pixel_centres(shape)
    return jnp.where(inside, y, own_y) - 0.5, jnp.where(inside, x, own_x) - 0.5
