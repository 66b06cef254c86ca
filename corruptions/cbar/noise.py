"""Noise fields: voronoi_noise, perlin_noise, blue_noise and brownish_noise."""

import jax
import jax.numpy as jnp

from corruptions.cbar import severities
from corruptions.cbar.severities import add_grey, register, side, to_image
from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.primitives import color, fourier, random, staging
from corruptions.primitives.textures import turbulence, voronoi_distance

_LEAST_CELL = 0.05  # of min(H, W)


def _sample_voronoi(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws cells: the seed of their points ~ U[0, 10), contrast ~ U[0.5, 0.9), cell side ~ U[0.05, 0.2) N, the sign
    of the amplitude.
    """
    keys = jax.random.split(key, 4)
    amplitude = 25.5 * severities.scanned("voronoi_noise", severity, shape, table)
    return {
        "amplitude": jnp.where(random.bernoulli(keys[3], 0.5, ()), -amplitude, amplitude),
        "seed": random.uniform(keys[0], (), 0.0, 10.0),
        "contrast": random.uniform(keys[1], (), 0.5, 0.9),
        "scale": random.uniform(keys[2], (), _LEAST_CELL, 0.2) * side(shape),
    }


@register("noise", _sample_voronoi, {"amplitude": "grey levels", "seed": "1", "contrast": "1", "scale": "pixels"})
def voronoi_noise(image: Image, params: Params) -> Image:
    """Adds A (S(c D) - 1/2) to every channel, in grey levels, and clips: D is the distance of
    `primitives.textures.voronoi_distance`, S(t) = 3 t^2 - 2 t^3 (C-bar, voronoi_noise). float32 arithmetic costs less
    than 0.03 levels.
    """
    # A hundredth below the smallest scale, as a draw may be a rounding below it.
    least = 0.99 * _LEAST_CELL * side(image.shape)
    distance = params["contrast"] * voronoi_distance(image.shape, params["seed"], params["scale"], least)
    return add_grey(image, staging.stage(params["amplitude"] * (distance**2 * (3 - 2 * distance) - 0.5)))


def _sample_perlin(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws a lattice: 256 gradients, the directions of points uniform in a square (two integers in -256..255 each);
    a permutation of 0..255.
    """
    gradient_key, order_key = jax.random.split(key)
    points = random.bits(gradient_key, (256, 2)) >> 23
    points = points.astype(jnp.float32) - 256
    # The point (0, 0) has no direction: the original's pixels become NaN there, ours have a gradient of zero.
    norms = jnp.sqrt(jnp.sum(points**2, axis=1, keepdims=True))
    return {
        "weight": 0.05 * severities.scanned("perlin_noise", severity, shape, table),
        "gradients": points / jnp.maximum(norms, 1.0),
        "permutation": jnp.argsort(random.bits(order_key, (256,))).astype(jnp.int32),
    }


@register(
    "noise",
    _sample_perlin,
    {"weight": "1", "gradients": "unit vectors, along rows and columns", "permutation": "index"},
)
def perlin_noise(image: Image, params: Params) -> Image:
    """Mixes in a cloud: (1 - w) x + 255 w clip(T/2 + 1/2, 0, 1), clipped, in grey levels, T the turbulence of
    `primitives.textures.turbulence`, seven cells across min(H, W) (C-bar, perlin_noise). float32 arithmetic costs
    less than 0.01 levels.
    """
    cloud = turbulence(params["gradients"], params["permutation"], image.shape, 7 / side(image.shape))
    weight = params["weight"]
    plane = jax.lax.optimization_barrier(255 * weight * jnp.minimum(0.5 * cloud + 0.5, 1.0))
    return to_image((1 - weight) * color.to_levels(image) + plane[..., None])


def _spectral(name, strength, spectrum):
    """Makes a candidate that adds an independent field of one spectrum to every channel."""

    def sample(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
        """Draws phases ~ U[0, 2 pi) of half a spectrum for each channel."""
        phases = random.uniform(key, (shape[2], *fourier.phase_shape(shape)), 0.0, 2 * jnp.pi)
        return {"amplitude": strength * severities.scanned(name, severity, shape, table), "phases": phases}

    def apply(image, params):
        """Adds A F, in grey levels, and clips: F are the fields of `primitives.fourier.spectral_field`, of standard
        deviation 1, one per channel (C-bar). float32 arithmetic costs less than 0.01 levels.
        """
        fields = fourier.spectral_field(params["phases"], image.shape, spectrum)
        return to_image(color.to_levels(image) + params["amplitude"] * jnp.moveaxis(fields, 0, -1))

    return register("noise", sample, {"amplitude": "grey levels", "phases": "radians"}, name=name)(apply)


blue_noise = _spectral("blue_noise", 19.6, fourier.blue)
brownish_noise = _spectral("brownish_noise", 6.4, fourier.brown)
