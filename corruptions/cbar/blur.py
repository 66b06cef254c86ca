"""Aberrations and the circular blur, by cubic B-splines: chromatic_aberration, transverse_chromatic_aberration and
circular_motion_blur.

The two aberrations take the pixels themselves as the coefficients of the spline, so that every channel is also
blurred a little, even the one that stays in place; the released code does so.
"""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.cbar import severities
from corruptions.cbar.severities import register, side
from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.core.severity import lookup
from corruptions.primitives import color, random, spline


def _rounded(levels):
    return jnp.floor(levels + 0.5)


def _resampled(image, values, positions, whole):
    """Resamples channel c of an image [H, W, 3] at `positions(size, values[c, axis])`, [size], along both axes; `whole`
    makes its grey levels whole.
    """
    rows, columns = (
        jax.vmap(lambda value, size=size: spline.sampling_matrix(size, positions(size, value)))(values[:, axis])
        for axis, size in enumerate(image.shape[:2])
    )
    highest = jax.lax.Precision.HIGHEST
    channels = jnp.moveaxis(color.to_levels(image), -1, 0)
    channels = jnp.matmul(jnp.matmul(rows, channels, precision=highest), columns.mT, precision=highest)
    return color.from_levels(jnp.moveaxis(color.clip(whole(channels), 0, 255), 0, -1))


def _sample_chromatic(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws a shift of 0.01 s N pixels for each channel, N = min(H, W): directions ~ U[0, 2 pi)."""
    distance = 0.01 * side(shape) * severities.scanned("chromatic_aberration", severity, shape, table)
    angles = random.uniform(key, (3,), 0.0, 2 * jnp.pi)
    return {"shifts": distance * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1)}


def _displaced(image, params, whole=lambda levels: levels):
    return _resampled(image, params["shifts"], lambda size, shift: jnp.arange(size, dtype=jnp.float32) - shift, whole)


@register(
    "blur",
    _sample_chromatic,
    {"shifts": "pixels, rows and columns of each channel"},
    aliases=("chromatic_abberation",),
    mixes="displaces red, green and blue differently",
    moves="displaces red, green and blue differently",
    straight_through=_displaced,
)
def chromatic_aberration(image: Image, params: Params) -> Image:
    """Moves each channel: x_c(p - d_c), black where p - d_c is outside, in whole levels, x_c the spline whose
    coefficients are the pixels of channel c (C-bar, chromatic_abberation).
    """
    return _displaced(image, params, _rounded)


def _sample_transverse(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws which channel is enlarged by 1, which by 1 + 0.025 s and which by 1 + 0.05 s, to whole sides."""
    scan = severities.scan("transverse_chromatic_aberration", severities.table_for(shape, table))
    factors = 1 + np.outer(scan, (0, 0.025, 0.05))
    sizes = [jnp.round(lookup(np.round(size * factors), severity)) for size in shape[:2]]
    order = jnp.argsort(random.bits(key, (3,)))
    return {"sizes": jnp.stack(sizes, axis=-1)[order]}


def _scaled(image, params, whole=lambda levels: levels):
    def positions(size, enlarged):
        start = jnp.floor((enlarged - size) / 2)
        return (start + jnp.arange(size, dtype=jnp.float32)) * ((size - 1) / (enlarged - 1))

    return _resampled(image, params["sizes"], positions, whole)


@register(
    "blur",
    _sample_transverse,
    {"sizes": "pixels, height and width of each channel before the cut"},
    aliases=("transverse_chromatic_abberation",),
    mixes="enlarges red, green and blue differently",
    moves="enlarges red, green and blue differently",
    straight_through=_scaled,
)
def transverse_chromatic_aberration(image: Image, params: Params) -> Image:
    """Enlarges each channel to its size M, ends on ends, and cuts it to the middle N, from floor((M - N) / 2) on, in
    whole levels: point i of M is the spline whose coefficients are the pixels, at i (N - 1) / (M - 1) (C-bar,
    transverse_chromatic_abberation).
    """
    return _scaled(image, params, _rounded)


_TURNS = np.linspace(-1, 1, 21, dtype=np.float32)
_WEIGHTS = np.exp(-2 * _TURNS**2) / np.exp(-2 * _TURNS**2).sum()


def _sample_circular(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Computes the largest angle, 1.5 s degrees to either side; nothing is random."""
    return {"angle": 1.5 * severities.scanned("circular_motion_blur", severity, shape, table)}


@register("blur", _sample_circular, {"angle": "degrees"})
def circular_motion_blur(image: Image, params: Params) -> Image:
    """Averages turned images: sum_j w_j R(t_j a) x, clipped, with rotations about the centre by t_j = -1, -0.9 ... 1
    times the angle a, weights proportional to exp(-2 t_j^2), sum one (C-bar, circular_motion_blur).

    Rotations interpolate by cubic splines and are black where they look beyond the image: corners darken.
    """
    angles = jnp.deg2rad(params["angle"]) * _TURNS
    return color.clip(spline.sum_of_rotations(spline.coefficients(image), angles, jnp.asarray(_WEIGHTS)))
