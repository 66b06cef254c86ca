"""Non-local means, in the fast form of scikit-image.

Every pixel p becomes the mean of the pixels p + t, |t| up to a distance d down and across, with
weights exp(-D), 0 where D > 5,

    D = sum_window sum_c (I(x) - I(x + t))^2 / (C h^2 s^2),

the window being rows and columns p - o + 1 .. p + o, o = s // 2: one row and column less than the
patch side s, as scikit-image has it. The image is reflected at its rim, without the last pixel.
A. Buades, B. Coll, J.-M. Morel, CVPR 2005; J. Darbon et al., ISBI 2008 (the fast form).
"""

import jax
import jax.numpy as jnp

from corruptions.batch import from_float, to_float
from corruptions.primitives.staging import stage
from evaluation.enhancements import noise

PATCH, DISTANCE, STRENGTH = 5, 6, 0.8
_CLEAN = 1e-6  # noise of constant images is not 0 but 5e-34, as it was rounded
_FAR = 5.0
_STRIP = 32  # rows at a time, at most: what they need stays in the cache of a core


def denoise(image: jax.Array, h: jax.Array | float, patch: int = PATCH, distance: int = DISTANCE) -> jax.Array:
    """Takes the weighted means around each pixel.

    Args:
      image: float32 [H, W, C].
      h: strength, in the unit of the image; 0 gives the image back.
      patch: side s of the patches in pixels, odd.
      distance: d in pixels.

    Returns:
      float32 [H, W, C].
    """
    height, width, channels = image.shape
    pad = patch // 2 + distance
    padded = jnp.pad(image, ((pad, pad), (pad, pad), (0, 0)), mode="reflect")
    scale = 1 / (channels * jnp.maximum(jnp.asarray(h, jnp.float32), 1e-12) ** 2 * patch**2)
    number = -(-height // _STRIP)
    strip = -(-height // number)
    padded = jnp.pad(padded, ((0, number * strip - height), (0, 0), (0, 0)))
    strips = jnp.stack([padded[i * strip : (i + 1) * strip + 2 * pad] for i in range(number)])
    means = jax.lax.map(lambda part: _means(part, scale, patch // 2, distance), strips)
    return means.reshape(number * strip, width, channels)[:height]


def _means(padded, scale, o, d):
    """The means of the pixels of a strip [H + 2 o + 2 d, W + 2 o + 2 d, C], [H, W, C]."""
    height, width = (side - 2 * (o + d) for side in padded.shape[:2])
    planes = [
        padded[..., c] for c in range(padded.shape[2])
    ]  # planes of their own: sums over C are then products in line
    around = height + 2 * o - 1, width + 2 * o - 1  # of the windows of all pixels
    fixed = [plane[d + 1 : d + 1 + around[0], d + 1 : d + 1 + around[1]] for plane in planes]

    def add(turn, sums):
        corner = turn // (2 * d + 1) + 1, turn % (2 * d + 1) + 1
        moved = [jax.lax.dynamic_slice(plane, corner, around) for plane in planes]
        squares = stage(sum((a - b) ** 2 for a, b in zip(fixed, moved)))
        rows = stage(sum(squares[k : k + height] for k in range(2 * o)))
        far = sum(rows[:, k : k + width] for k in range(2 * o)) * scale
        weight = jnp.where(far <= _FAR, jnp.exp(-far), 0)
        values = (plane[o - 1 : o - 1 + height, o - 1 : o - 1 + width] for plane in moved)
        return [total + weight * value for total, value in zip(sums, [*values, jnp.ones_like(weight)])]

    none = [jnp.zeros((height, width)) for _ in range(len(planes) + 1)]
    *totals, weights = jax.lax.fori_loop(0, (2 * d + 1) ** 2, add, none)
    return jnp.stack([total / weights for total in totals], axis=-1)


def denoise_levels(image: jax.Array) -> jax.Array:
    """Denoises an image of 8 bits, uint8 [H, W, 3], with .8 of the estimated noise as strength.

    Clean photographs have an estimate of some .01 and are smoothed a little, too, as the draft on
    structural robustness says of its own.
    """
    given = to_float(image)
    sigma = noise.estimate(given)
    found = denoise(given, STRENGTH * sigma)
    return jnp.where(sigma > _CLEAN, from_float(found, jnp.uint8, "nearest"), image)
