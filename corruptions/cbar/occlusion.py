"""Occlusions: checkerboard_cutout, lines and blue_noise_sample."""

import jax
import jax.numpy as jnp

from corruptions.cbar import severities
from corruptions.cbar.severities import padding, register, side
from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.primitives import color, fourier, padded, random, staging

_GREY = 128
_GRID = 40


def _sample_checkerboard(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws a board: its angle ~ U[0, 2 pi); the side of its squares ~ U[0.1, 0.25) N, at least 1; which squares may
    be cut, Bernoulli(0.1 s), on a grid of 40 x 40.

    The original's grid has between 16 and 40 squares a side, as many as can be needed; a larger one is the same in
    distribution.
    """
    keys = jax.random.split(key, 3)
    probability = 0.1 * severities.scanned("checkerboard_cutout", severity, shape, table)
    return {
        "angle": random.uniform(keys[0], (), 0.0, 2 * jnp.pi),
        "square": jnp.maximum(random.uniform(keys[1], (), 0.1, 0.25) * side(shape), 1.0),
        "cut": random.bernoulli(keys[2], probability, (_GRID, _GRID)),
    }


@register(
    "occlusion",
    _sample_checkerboard,
    {"angle": "radians", "square": "pixels", "cut": "bool, 40 x 40"},
    padding=padding(),
)
def checkerboard_cutout(image: Image, params: Params) -> Image:
    """Cuts squares of a turned board: x = 128 where floor(m) and floor(n) are both even or both odd and the square
    (trunc m, trunc n) is cut (C-bar, checkerboard_cutout).

    (m, n) are the turned coordinates in squares. Truncation joins the two squares on either side of an axis, as in
    the original; indices are mod 40, which repeats the grid in images much longer than wide.
    """
    height, width, _ = image.shape
    cosine, sine = jnp.cos(params["angle"]) / params["square"], jnp.sin(params["angle"]) / params["square"]
    y, x = jnp.arange(height, dtype=jnp.float32)[:, None], jnp.arange(width, dtype=jnp.float32)[None, :]
    m, n = cosine * y + sine * x, cosine * x - sine * y
    even = (jnp.floor(m) + jnp.floor(n)).astype(jnp.int32) % 2 == 0
    row, column = (jnp.trunc(v).astype(jnp.int32) % _GRID for v in (m, n))
    cut = even & staging.look_up(params["cut"].reshape(-1), row * _GRID + column)
    return jnp.where(staging.stage(cut)[..., None], color.from_levels(jnp.float32(_GREY)), image)


def _sample_lines(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws int(0.1 s N) lines: their common angle ~ U[0, 2 pi) and its spread d ~ U[0.1, 1); per line the middle ~
    U[0, H) x U[0, W) and a turn of 2 pi d (U[0, 1) - 1/2). The ends lie N = min(H, W) from the middle, cut to whole
    pixels.
    """
    keys = jax.random.split(key, 4)
    tenth = 0.1 * side(shape)
    most = int(0.1 * min(shape[:2]) * severities.greatest("lines", shape, table) + 1e-4)
    spread = random.uniform(keys[1], (), 0.1, 1.0)
    angle = random.uniform(keys[0], (), 0.0, 2 * jnp.pi)
    angle = angle + 2 * jnp.pi * spread * (random.uniform(keys[3], (most,)) - 0.5)
    middle = random.uniform(keys[2], (most, 2)) * jnp.array([padded.own(shape)[:2]], jnp.float32)
    reach = side(shape) * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)
    ends = jnp.concatenate([middle - reach, middle + reach], axis=-1)
    count = jnp.floor(tenth * severities.scanned("lines", severity, shape, table) + 1e-4)
    return {"count": count.astype(jnp.int32), "ends": jnp.trunc(ends).astype(jnp.int32)}


def _smooth_lines(image: Image, params: Params) -> Image:
    """Draws as many lines as there can be, as reverse mode needs a static number of rounds."""

    ends = jnp.asarray(params["ends"])

    def draw(k, x):
        return jnp.where(k < params["count"], _line(x, ends[k]), x)

    planes = jnp.moveaxis(color.to_levels(image), -1, 0)
    planes = jax.lax.fori_loop(0, len(ends), draw, planes)
    return color.from_levels(jnp.moveaxis(planes, 0, -1))


@register(
    "occlusion",
    _sample_lines,
    {"count": "lines", "ends": "pixels: row and column of both ends, of as many lines as there can be"},
    straight_through=_smooth_lines,
    padding=padding(),
)
def lines(image: Image, params: Params) -> Image:
    """Draws grey lines: x <- trunc((1 - v) x + 128 v) for each line in turn, in grey levels; v is the line's coverage
    (C-bar, lines).

    The coverage of an anti-aliased line is max(0, 1 - distance to the line) within the rectangle between its ends.
    """
    planes, ends = jnp.round(jnp.moveaxis(color.to_levels(image), -1, 0)), jnp.asarray(params["ends"])
    planes = jax.lax.fori_loop(0, params["count"], lambda k, x: jnp.floor(_line(x, ends[k])), planes)
    return color.from_levels(jnp.moveaxis(planes, 0, -1))


def _line(levels, ends):
    row, column, last_row, last_column = ends
    y, x = jnp.arange(levels.shape[1])[:, None], jnp.arange(levels.shape[2])[None, :]
    along_y, along_x = last_row - row, last_column - column
    inside_y = (y >= jnp.minimum(row, last_row)) & (y <= jnp.maximum(row, last_row))
    inside_x = (x >= jnp.minimum(column, last_column)) & (x <= jnp.maximum(column, last_column))
    # Whole numbers up to the division, so that nothing is lost.
    cross = (along_y * (x - column)).astype(jnp.float32) - (along_x * (y - row)).astype(jnp.float32)
    inverse = 1 / jnp.sqrt((along_y**2 + along_x**2).astype(jnp.float32))
    coverage = jnp.maximum(0.0, (inside_y & inside_x).astype(jnp.float32) - jnp.abs(cross) * inverse)
    return levels + coverage[None] * (_GREY - levels)


def _sample_blue_noise_sample(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Computes the threshold and draws a field of blue noise: phases ~ U[0, 2 pi) of half its spectrum."""
    return {
        "threshold": 0.3 * severities.scanned("blue_noise_sample", severity, shape, table) - 2.5,
        "phases": random.uniform(key, fourier.phase_shape(shape), 0.0, 2 * jnp.pi),
    }


@register("occlusion", _sample_blue_noise_sample, {"threshold": "standard deviations", "phases": "radians"})
def blue_noise_sample(image: Image, params: Params) -> Image:
    """Keeps x where the field of `primitives.fourier.spectral_field` exceeds the threshold, else 0 (C-bar,
    blue_noise_sample).

    A fraction Phi(threshold) of the pixels is lost, evenly spread.
    """
    field = fourier.spectral_field(params["phases"], image.shape, fourier.blue)
    return jnp.where((field > params["threshold"])[..., None], image, 0.0)
