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
    """The means of the pixels of a strip [H + 2 o + 2 d, W + 2 o + 2 d, C], [H, W, C].

    The weight of p + t at p is that of p at p + t: of t and -t one is looked at, for both.
    """
    height, width = own = tuple(side - 2 * (o + d) for side in padded.shape[:2])
    # Planes of their own: sums over C are then products in line.
    planes = [padded[..., c] for c in range(padded.shape[2])]
    tall, wide = height + d, width + d  # of the pixels p and p - t
    around = tall + 2 * o - 1, wide + 2 * o - 1  # of the windows of all these

    def add(turn, sums):
        down, right = (turn + d + 1) // (2 * d + 1), (turn + d + 1) % (2 * d + 1) - d
        left = jnp.where(right > 0, 0, d)  # the first column of p and p - t, counted from -d
        fixed = (jax.lax.dynamic_slice(plane, (1, left + 1), around) for plane in planes)
        moved = (jax.lax.dynamic_slice(plane, (down + 1, left + right + 1), around) for plane in planes)
        squares = stage(sum((a - b) ** 2 for a, b in zip(fixed, moved)))
        rows = stage(sum(squares[k : k + tall] for k in range(2 * o)))
        far = sum(rows[:, k : k + wide] for k in range(2 * o)) * scale
        weight = stage(jnp.where(far <= _FAR, jnp.exp(-far), 0))
        ahead = jax.lax.dynamic_slice(weight, (d, d - left), own)
        behind = jax.lax.dynamic_slice(weight, (d - down, d - left - right), own)
        for c, plane in enumerate(planes):
            after = jax.lax.dynamic_slice(plane, (o + d + down, o + d + right), own)
            before = jax.lax.dynamic_slice(plane, (o + d - down, o + d - right), own)
            sums[c] += ahead * after + behind * before
        return [*sums[:-1], sums[-1] + ahead + behind]

    unmoved = [plane[o + d : o + d + height, o + d : o + d + width] for plane in planes]
    *totals, weights = jax.lax.fori_loop(0, 2 * d * (d + 1), add, [*unmoved, jnp.ones(own)])
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
