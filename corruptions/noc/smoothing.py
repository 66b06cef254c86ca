"""The blur of the NOC candidates."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from corruptions import padded
from corruptions.noc import severities, stamps
from corruptions.noc.candidate import candidate, padding
from corruptions.primitives import filters

_PASSES = 5


def passes(shape: Sequence[int]) -> int:
    """Counts the 3x3 means: 5 at 224, elsewhere those of the same width relative to the image.

    n means have a variance of 2n/3 pixels^2, hence n = 5 s^2 with s = min(H, W) / 224, at least 1.
    One pass at 32 is already three times wider, relative to the image, than five at 224.
    """
    return max(1, round(_PASSES * stamps.scale(shape) ** 2))


def _taps(shape):
    """The weights, after all means, of pixels at distances 0, 1, ...; zeros up to the longer side."""
    taps = np.ones(1)
    for _ in range(passes(shape)):
        taps = np.convolve(taps, np.full(3, 1 / 3))
    half = taps[taps.size // 2 :]
    return np.pad(half, (0, max(0, max(shape[:2]) - half.size)))


def _mean_matrix(size, own, taps):
    """Makes the matrix [size, size] of means in turn, with zeros beyond the first `own` samples.

    Zeros at -1 and at `own` stay zeros after each mean where the samples are continued there with
    the sign turned: sample j has the mirror images -2 - j and 2 own - j.
    """
    out, sample = np.arange(size)[:, None], np.arange(size)[None, :]

    def weights(distance):
        return taps[abs(distance).clip(0, taps.size - 1)]

    matrix = weights(out - sample) - weights(out + sample + 2) - weights(2 * own - out - sample)
    return jnp.where(sample < own, jnp.asarray(matrix, jnp.float32), 0.0)


def _sample_blur(key, shape, severity, *, range=None):
    """Looks up `weight`; draws nothing. Options: `range` of the weight, by default 0.40..0.95."""
    del key
    drawn = {"weight": severities.lookup("blur", shape, range, severity)}
    if isinstance(shape, padded.Shape):
        drawn |= {"taps": shape.tables["taps"], **padded.own_size(shape)}
    return drawn


def _apply_blur(image, params):
    """Mixes with a blurred image: (1 - w) x + w B(x).

    B is five 3x3 means in turn, each with zeros beyond the image. The zeros darken the rim, as
    published. See `passes` for sizes other than 224. The means are separable, so B is a pair of
    matrices, exactly. Source: ImageNet-NOC, blur.
    """
    own = padded.height_and_width(image.shape, params)
    taps = params["taps"] if "taps" in params else _taps(image.shape)
    blurred = filters.separable(image, *(_mean_matrix(*sides, taps) for sides in zip(image.shape, own)))
    return jnp.clip((1 - params["weight"]) * image + params["weight"] * blurred, 0.0, 1.0)


blur = candidate(
    "blur",
    "blur",
    _sample_blur,
    _apply_blur,
    (("weight", "1"),),
    padding=padding(tables=lambda shape, table: {"taps": _taps(shape).astype(np.float32)}),
)
