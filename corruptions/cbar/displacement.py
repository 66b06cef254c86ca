"""Displacements of pixels: ripple and scatter."""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import padded
from corruptions.cbar import severities
from corruptions.cbar.candidate import candidate, padding, side
from corruptions.primitives import random, staging
from corruptions.primitives.warping import bilinear


def _sample_ripple(key, shape, severity, *, table=None):
    """Draws a wave along each axis: wavelengths (of rows, of columns) ~ U[0.1, 0.3)^2 N, N = min(H,
    W), and phases ~ U[0, 2 pi)^2.

    Options: `table`, `cifar` or `imagenet`, by default the one made for the nearest size.
    """
    wavelength_key, phase_key = jax.random.split(key)
    return {
        "amplitude": 0.0025 * severities.scanned("ripple", severity, shape, table) * side(shape),
        "wavelengths": random.uniform(wavelength_key, (2,), 0.1, 0.3) * side(shape),
        "phases": random.uniform(phase_key, (2,), 0.0, 2 * jnp.pi),
        **padded.own_size(shape),
    }


def _map_ripple(shape, params):
    """Where the image is looked up: rows [H, 1] and columns [1, W]."""

    def moved(axis):
        position = jnp.arange(shape[axis], dtype=jnp.float32)
        wave = jnp.sin(2 * jnp.pi / params["wavelengths"][axis] * position + params["phases"][axis])
        return staging.stage(position + params["amplitude"] * wave)

    return moved(0)[:, None], moved(1)[None, :]


def _apply_ripple(image, params):
    """Moves pixels along both axes: x(y + A sin(2 pi y / w_y + phase_y), x + A sin(2 pi x / w_x +
    phase_x)), bilinear, zero outside the image (C-bar, ripple).

    Each axis moves by its own coordinate, as released; ripples usually move by the other one.
    """
    image = padded.blackened(image, params.get("size"))
    return jnp.clip(bilinear.zero_padded(image, *_map_ripple(image.shape, params)), 0, 1)


ripple = candidate(
    "ripple",
    "geometry",
    _sample_ripple,
    _apply_ripple,
    (
        ("amplitude", "pixels"),
        ("wavelengths", "pixels, along rows and columns"),
        ("phases", "radians, along rows and columns"),
    ),
    moves="moves pixels in waves",
    mapper=_map_ripple,
    padding=padding(),
)


def _sample_scatter(key, shape, severity, *, table=None):
    """Computes the reach and draws the seed of the hash ~ U[0, 10).

    Options: `table`, `cifar` or `imagenet`, by default the one made for the nearest size.
    """
    return {
        "reach": 0.01 * severities.scanned("scatter", severity, shape, table) * side(shape),
        "seed": random.uniform(key, (), 0.0, 10.0),
        **padded.own_size(shape),
    }


def _map_scatter(shape, params):
    """Where the image is looked up: rows and columns [H, W]."""
    last_row, last_column = (jnp.float32(side - 1) for side in padded.height_and_width(shape, params))
    down, right = _hashes(shape, params["seed"])
    y = jnp.arange(shape[0], dtype=jnp.float32)[:, None] + params["reach"] * (2 * down - 1)
    x = jnp.arange(shape[1], dtype=jnp.float32)[None, :] + params["reach"] * (2 * right - 1)
    return jnp.clip(y, 0, last_row), jnp.clip(x, 0, last_column)


def _apply_scatter(image, params):
    """Moves each pixel by a hash of its position: x(y + r (2 h(y, x) - 1), x + r (2 h(x, y) - 1)),
    positions clipped to the image, bilinear (C-bar, scatter).

    h is the hash of `_hashes`.
    """
    # The hash first: mixed with the look-ups a TPU takes half as long again, and .8 MiB an image more.
    image, y, x = staging.in_turn(image, *_map_scatter(image.shape, params))
    return jnp.clip(bilinear.zero_padded(image, y, x), 0, 1)


def _hashes(shape, seed):
    """h(y, x) and h(x, y), float32 [H, W] in [0, 1], of a hash of two numbers.

    h(u, v) = frac(43758.5453 sin(12.9898 sin(k u) + 78.233 cos(k v))).

    float32 cannot hold it: it is float64 up to the fractional part, in any program. The sine of the
    sum is taken apart into sines and cosines of u and of v alone, of which there are few.
    """
    with jax.enable_x64(True):
        angle = jax.lax.convert_element_type(seed, np.float64) * np.arange(max(shape[:2]), dtype=np.float64)
        first, second = 12.9898 * jnp.sin(angle), 78.233 * jnp.cos(angle)
        waves = staging.stage(jnp.stack([jnp.sin(first), jnp.cos(first), jnp.sin(second), jnp.cos(second)]))
        (sin_y, cos_y, other_sin_y, other_cos_y) = waves[:, : shape[0], None]
        (sin_x, cos_x, other_sin_x, other_cos_x) = waves[:, None, : shape[1]]

        def fraction(sine):
            scaled = 43758.5453 * sine
            return jax.lax.convert_element_type(scaled - jnp.floor(scaled), np.float32)

        down = fraction(sin_y * other_cos_x + cos_y * other_sin_x)
        return down, fraction(sin_x * other_cos_y + cos_x * other_sin_y)


scatter = candidate(
    "scatter",
    "geometry",
    _sample_scatter,
    _apply_scatter,
    (("reach", "pixels"), ("seed", "radians")),
    moves="moves each pixel by a hash of its position",
    mapper=_map_scatter,
    padding=padding(),
)
