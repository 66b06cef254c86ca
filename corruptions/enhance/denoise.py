"""Non-local means, in the fast form of scikit-image, and the estimate of noise that sets its strength.

Every pixel p becomes the mean of the pixels p + t, |t| up to a distance d down and across, with weights exp(-D), 0
where D > 5,

    D = max(0, sum_window (sum_c (I(x) - I(x + t))^2 - 2 C sigma^2)) / (C h^2 s^2),

with the known standard deviation sigma of the noise, whose own differences then count nothing, or 0.

The window has rows and columns p - o + 1 .. p + o, o = s // 2: one row and column less than the patch side s, as
scikit-image has it. The image is reflected at its rim, without the last pixel. A. Buades, B. Coll, J.-M. Morel, CVPR
2005; J. Darbon et al., ISBI 2008 (the fast form).

The noise is sigma = median |d| / .67449 over the coefficients d that are not 0 in the band that is high-pass both ways
of one level of the Daubechies wavelet db2, half-sample symmetric at the rim; averaged over channels. D. L. Donoho, I.
M. Johnstone, "Ideal spatial adaptation by wavelet shrinkage", Biometrika 81 (1994), 4.2; `restoration.estimate_sigma`
of scikit-image.
"""

import jax
import jax.numpy as jnp

from corruptions.core.batch import from_float, to_float
from corruptions.primitives.staging import stage

PATCH, DISTANCE, STRENGTH = 5, 6, 0.8
_CLEAN = 1e-6  # the estimate for a constant image is 5e-34, not 0, by rounding
_FAR = 5.0
_STRIP = 32  # rows at a time, at most, so that the working set stays in the cache of a core
_HIGH_PASS = (-0.48296291314469025, 0.836516303737469, -0.22414386804185735, -0.12940952255092145)
_QUARTILE = 0.6744897501960817  # third quartile of the standard normal distribution


def denoise_levels(
    image: jax.Array, *, h: float = STRENGTH, patch: int = PATCH, distance: int = DISTANCE, sigma: float = 0.0
) -> jax.Array:
    """Denoises an image of 8 bits, uint8 [H, W, 3].

    `h` is the strength, a multiple of the noise: of `sigma`, the known standard deviation of images in [0, 1], or of
    the estimate where that is 0. Clean photographs have an estimate of some .01 and are smoothed a little too, as in
    the draft on structural robustness.
    """
    noisy = to_float(image)
    noise = estimate(noisy) if sigma == 0 else jnp.float32(sigma)
    found = denoise(noisy, h * noise, patch, distance, sigma)
    return jnp.where(noise > _CLEAN, from_float(found, jnp.uint8, "nearest"), image)


def denoise(
    image: jax.Array, h: jax.Array | float, patch: int = PATCH, distance: int = DISTANCE, sigma: float = 0.0
) -> jax.Array:
    """Takes the weighted means around each pixel of an image, float32 [H, W, C].

    `h` is the strength and `sigma` the known standard deviation of the noise (0: unknown), both in the unit of the
    image; an `h` of 0 returns the image unchanged. `patch` is the odd side s of the patches, `distance` d, both in
    pixels.
    """
    height, width, channels = image.shape
    pad = patch // 2 + distance
    padded = jnp.pad(image, ((pad, pad), (pad, pad), (0, 0)), mode="reflect")
    scale = 1 / (channels * jnp.maximum(jnp.asarray(h, jnp.float32), 1e-12) ** 2 * patch**2)
    number = -(-height // _STRIP)
    strip = -(-height // number)
    padded = jnp.pad(padded, ((0, number * strip - height), (0, 0), (0, 0)))
    strips = jnp.stack([padded[i * strip : (i + 1) * strip + 2 * pad] for i in range(number)])
    expected = 2 * channels * sigma**2 * (2 * (patch // 2)) ** 2  # mean of the sum over a window of pure noise
    means = jax.lax.map(lambda part: _means(part, scale, patch // 2, distance, expected), strips)
    return means.reshape(number * strip, width, channels)[:height]


def _means(padded, scale, o, d, expected):
    """Takes the means of the pixels of a strip: [H + 2 o + 2 d, W + 2 o + 2 d, C] to [H, W, C].

    The weight of p + t at p equals the weight of p at p + t, so only one of t and -t is computed.
    """
    height, width = own = tuple(side - 2 * (o + d) for side in padded.shape[:2])
    # The channels are separate planes, so that a sum over C is a sum of elementwise products.
    planes = [padded[..., c] for c in range(padded.shape[2])]
    tall, wide = height + d, width + d  # size of the area of pixels p and p - t
    around = tall + 2 * o - 1, wide + 2 * o - 1  # size of the area of their windows

    def add(turn, sums):
        down, right = (turn + d + 1) // (2 * d + 1), (turn + d + 1) % (2 * d + 1) - d
        left = jnp.where(right > 0, 0, d)  # the first column of p and p - t, counted from -d
        fixed = (jax.lax.dynamic_slice(plane, (1, left + 1), around) for plane in planes)
        moved = (jax.lax.dynamic_slice(plane, (down + 1, left + right + 1), around) for plane in planes)
        squares = stage(sum((a - b) ** 2 for a, b in zip(fixed, moved)))
        rows = stage(sum(squares[k : k + tall] for k in range(2 * o)))
        far = sum(rows[:, k : k + wide] for k in range(2 * o))
        far = (jnp.maximum(far - expected, 0) if expected else far) * scale
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


def estimate(image: jax.Array) -> jax.Array:
    """Estimates the standard deviation of Gaussian noise, in the unit of the image, float32 [H, W, C].

    A photograph without noise has some .01 in [0, 1]; a constant image has 0, up to rounding.
    """
    return jax.vmap(_noise_of_channel)(jnp.moveaxis(image, -1, 0)).mean()


def _noise_of_channel(channel):
    size = jnp.abs(_high_pass(_high_pass(channel).T))
    zeros = (size == 0).sum()
    number = size.size - zeros
    ranks = (jnp.minimum(zeros + half // 2, size.size - 1) for half in (number - 1, number))
    median = sum(_smallest(size, rank) for rank in ranks) / 2  # 0 where all coefficients are 0
    return median / _QUARTILE


def _smallest(values, rank):
    """Finds the value of a rank from 0 on, among values that are not negative.

    It settles one bit after the other: sorting all values takes a CPU ten times as long.
    """
    words = values.view(jnp.int32)  # in the order of the values

    def settle(turn, found):
        higher = found | (1 << (30 - turn))
        return jnp.where((words < higher).sum() <= rank, higher, found)

    return jax.lax.fori_loop(0, 31, settle, jnp.zeros((), jnp.int32)).view(jnp.float32)


def _high_pass(channel):
    """Computes o[k] = sum_j g[j] x[2k + 1 - j] down each column, k = 0 .. floor((n + 3) / 2) - 1."""
    size = channel.shape[0]
    number = (size + 3) // 2
    padded = jnp.pad(channel, ((2, 3), (0, 0)), mode="symmetric")
    taps = (g * padded[3 - j : 3 - j + 2 * number - 1 : 2] for j, g in enumerate(_HIGH_PASS))
    return sum(taps)
