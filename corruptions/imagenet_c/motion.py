"""ImageNet-C motion_blur: the one-sided `MotionBlurImage` of ImageMagick 6, in 16 bits as there."""

import math

import jax
import jax.numpy as jnp

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.imagenet_c.tables import lookup, padding, register, table_for
from corruptions.primitives import color, fourier, random, staging

# Radius in pixels, standard deviation in taps.
_TABLES = {
    "cifar": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    "tiny": ((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
    "imagenet": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    "inception": ((12, 4), (17, 6), (17, 9), (17, 13), (22, 16)),
}


def taps(radius: jax.Array | float, sigma: jax.Array | float, max_radius: float) -> jax.Array:
    """Computes the weights of ImageMagick's motion blur: float32 [2 ceil(max_radius) + 1].

    k_i is proportional to exp(-i^2 / (2 sigma^2)) for i = 0, ..., 2 ceil(radius), zero beyond; the weights sum to one.
    `radius`, in pixels and at most `max_radius`, and `sigma`, a positive standard deviation in taps, may be traced.
    """
    i = jnp.arange(2 * math.ceil(max_radius) + 1, dtype=jnp.float32)
    weights = jnp.where(i <= 2 * jnp.ceil(radius), jnp.exp(-(i**2) / (2 * sigma**2)), 0.0)
    return weights / weights.sum()


def motion_blur_levels(image: jax.Array, weights: jax.Array, angle: jax.Array | float) -> jax.Array:
    """Blurs levels 0..255, [H, W, C], as ImageMagick does: S(y, x) = sum_i k_i p(y + dy_i, x + dx_i), int32.

    dy_i = ceil(i sin(angle) - 1/2), dx_i = ceil(i cos(angle) - 1/2), the y axis points down; pixels beyond the border
    repeat it. The sum is rounded to 16 bits, q = floor(257 S + 1/2), cut to 8. The weights are from `taps`; the angle,
    in radians, may be traced.
    """
    return jnp.floor(257 * _blurred(image, weights, angle) + 0.5).astype(jnp.int32) // 257


def _blurred(image, weights, angle):
    """Computes the sum S without rounding, float32 [H, W, C]."""
    i = jnp.arange(weights.shape[0], dtype=jnp.float32)
    rows = jnp.ceil(i * jnp.sin(angle) - 0.5).astype(jnp.int32)
    columns = jnp.ceil(i * jnp.cos(angle) - 0.5).astype(jnp.int32)
    return staging.by_platform(
        image.astype(jnp.float32), weights, rows, columns, tpu=_sum_in_frequencies, default=_sum_of_slices
    )


def _sum_of_slices(image, weights, rows, columns):
    """Sums n shifted copies, which compile to one fused loop."""
    count, (height, width, channels) = weights.shape[0], image.shape
    padded = jnp.pad(image, ((count, count), (count, count), (0, 0)), mode="edge")
    # Columns and channels in one axis: a CPU's vector units need a long last axis.
    padded = staging.stage_on_cpu(padded.reshape(padded.shape[0], -1))
    total = jnp.float32(0)
    for j in range(count):
        start = (rows[j] + count, (columns[j] + count) * channels)
        total = total + weights[j] * jax.lax.dynamic_slice(padded, start, (height, width * channels))
    return staging.stage_on_cpu(total).reshape(image.shape)


def _sum_in_frequencies(image, weights, rows, columns):
    """Computes the same sum by Fourier transforms, because a TPU gathers each image's slices one by one."""
    reach = weights.shape[0] - 1
    sides = [size + 2 * reach for size in image.shape[:2]]
    # A shift by (dy, dx) is exp(2 pi i (u dy / H' + v dx / W')), a sum of products of cosines and sines.
    vertical = fourier.waves(rows, sides[0], sides[0]) * weights[None, None]
    cosine, sine = fourier.waves(columns, sides[1], sides[1] // 2 + 1)
    horizontal = jnp.stack([jnp.stack([cosine, -sine]), jnp.stack([sine, cosine])])
    transfer = jnp.einsum("jui,kjvi->kuv", vertical, horizontal, precision=jax.lax.Precision.HIGHEST)
    return fourier.filter_by_products(image, transfer, reach)


def _sample(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws `angle` ~ U(-45, 45) degrees, 0 to the right, positive downwards; computes `weights`.

    For real severities radius and standard deviation are interpolated; the number of taps is the whole number 2
    ceil(radius) + 1.
    """
    rows = _TABLES[table_for(shape, table)]
    radius, sigma = lookup(_TABLES, shape, table, severity)
    return {"angle": random.uniform(key, (), -45.0, 45.0), "weights": taps(radius, sigma, max(r for r, _ in rows))}


def _smooth(image: Image, params: Params) -> Image:
    return _blurred(image, params["weights"], jnp.deg2rad(params["angle"]))


@register(
    "blur",
    _sample,
    {"angle": "degrees", "weights": "1, by distance in pixels"},
    severity={"radius": "pixels", "sigma": "pixels"},
    padding=padding("edge"),
    straight_through=_smooth,
    moves="smears the image to one side",
    alone="quick",
)
def motion_blur(image: Image, params: Params) -> Image:
    """Blurs the image, rounded to 8 bits, along `angle` as ImageMagick (see `motion_blur_levels`).

    Source: ImageNet-C, motion_blur.
    """
    pixels = jnp.round(255 * image)
    blurred = motion_blur_levels(pixels, params["weights"], jnp.deg2rad(params["angle"]))
    return color.from_levels(blurred.astype(jnp.float32))
