"""color_dither: fewer levels, the error carried to the right."""

import functools

import jax
import jax.numpy as jnp

from corruptions import padded
from corruptions.cbar import severities
from corruptions.cbar.candidate import candidate, padding
from corruptions.primitives import color


def _sample(key, shape, severity, *, table=None):
    """Computes the number of levels, 14 - int(s); nothing is random.

    Options: `table`, `cifar` or `imagenet`, by default the one made for the nearest size.
    """
    del key
    strength = severities.scanned("color_dither", severity, shape, table)
    return {"levels": 14 - jnp.floor(strength + 1e-4).astype(jnp.int32), **padded.own_size(shape)}


def _apply(image, params):
    """Reduces the levels of each row and channel, left to right: c becomes the level q = int(255
    floor(n c / 256) / (n - 1)), and its right neighbour trunc(clip(. + 7 e / 16)), then
    trunc(clip(. + e / 16)), e = c - q, clipped to 0..255 (C-bar, color_dither).

    The first is skipped in the top row, the second in the bottom one. Meant as Floyd and
    Steinberg's dithering; in the released code nothing ever reaches another row.
    """
    number = params["levels"]
    columns = jnp.round(jnp.moveaxis(color.to_levels(image), 1, 0)).astype(jnp.int32)
    row = jnp.arange(image.shape[0])[:, None]
    last_row = padded.height_and_width(image.shape, params)[0] - 1
    first_share, second_share = jnp.where(row > 0, 7, 0), jnp.where(row < last_row, 1, 0)
    # All palettes are short: one division for each level, none for each pixel. A half keeps whole
    # quotients whole.
    index = jnp.arange(14, dtype=jnp.float32)
    palette = jnp.floor((255 * index + 0.5) / (number - 1).astype(jnp.float32)).astype(jnp.int32)

    def step(error, current):
        for share in (first_share, second_share):
            current = jnp.clip(16 * current + share * error, 0, 16 * 255) >> 4
        level = jnp.take(palette, (number * current) >> 8, mode="clip")
        return current - level, level

    def diffuse(columns, unroll):
        return jax.lax.scan(step, jnp.zeros_like(columns[0]), columns, unroll=unroll)[1]

    # Beginning a trip costs a TPU more than its work; a CPU takes twice as long over several columns in one.
    unrolled, one_by_one = functools.partial(diffuse, unroll=4), functools.partial(diffuse, unroll=1)
    columns = jax.lax.platform_dependent(columns, tpu=unrolled, default=one_by_one)
    return color.from_levels(jnp.moveaxis(columns, 0, 1).astype(jnp.float32))


color_dither = candidate(
    "color_dither",
    "colour",
    _sample,
    _apply,
    (("levels", "count"),),
    straight_through=lambda image, params: image,
    padding=padding(),
)
