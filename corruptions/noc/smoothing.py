"""The blur of the NOC candidates."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from corruptions.noc import severities, stamps
from corruptions.noc.candidate import candidate
from corruptions.primitives import filters

_PASSES = 5


def passes(shape: Sequence[int]) -> int:
    """Counts the 3x3 means: 5 at 224, elsewhere those of the same width relative to the image.

    n means have a variance of 2n/3 pixels^2, hence n = 5 s^2 with s = min(H, W) / 224, at least 1.
    One pass at 32 is already three times wider, relative to the image, than five at 224.
    """
    return max(1, round(_PASSES * stamps.scale(shape) ** 2))


def _mean_matrix(size, number):
    """Makes the matrix [size, size] of `number` means of three neighbours, zeros beyond."""
    mean = sum(np.eye(size, k=k) for k in (-1, 0, 1)) / 3
    return jnp.asarray(np.linalg.matrix_power(mean, number), jnp.float32)


def _sample_blur(key, shape, severity, *, range=None):
    """Looks up `weight`; draws nothing. Options: `range` of the weight, by default 0.40..0.95."""
    del key
    return {"weight": severities.lookup("blur", shape, range, severity)}


def _apply_blur(image, params):
    """Mixes with a blurred image: (1 - w) x + w B(x).

    B is five 3x3 means in turn, each with zeros beyond the image. The zeros darken the rim, as
    published. See `passes` for sizes other than 224. The means are separable, so B is a pair of
    matrices, exactly. Source: ImageNet-NOC, blur.
    """
    height, width, _ = image.shape
    number = passes(image.shape)
    blurred = filters.separable(image, _mean_matrix(height, number), _mean_matrix(width, number))
    return jnp.clip((1 - params["weight"]) * image + params["weight"] * blurred, 0.0, 1.0)


blur = candidate("blur", "blur", _sample_blur, _apply_blur, (("weight", "1"),))
