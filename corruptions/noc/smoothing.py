"""The blur of the NOC candidates."""

import jax.numpy as jnp
import numpy as np

from corruptions.contract import Corruption, Fraction, Parameter
from corruptions.noc import severity as severities
from corruptions.noc import stamps
from corruptions.primitives import filters
from corruptions.registry import register

_PASSES = 5


def passes(shape):
    """Number of 3x3 means: 5 at 224, elsewhere as many as give the same width relative to the
    image, at least 1.

    n means have a variance of 2n/3 pixels, hence n = 5 s^2 with s = min(H, W) / 224. One pass at 32
    is already three times wider, relative to the image, than five at 224.
    """
    return max(1, round(_PASSES * stamps.scale(shape) ** 2))


def _mean_matrix(size, number):
    """`number` means of three neighbours with zeros beyond the ends, as one matrix, float32 [size,
    size].
    """
    once = sum(np.eye(size, k=k) for k in (-1, 0, 1)) / 3
    return jnp.asarray(np.linalg.matrix_power(once, number), jnp.float32)


def _sample_blur(key, shape, severity, *, range=None):
    """The weight of the blurred image; nothing else is random. Options: `range` of the weight, by
    default 0.40..0.95.
    """
    del key
    return {"weight": severities.lookup("blur", shape, range, severity)}


def _apply_blur(image, params):
    """x = (1 - w) x + w B(x), B being five 3x3 means in turn, each with zeros beyond the image
    (ImageNet-NOC, blur).

    The zeros darken the rim, as published. See `passes` for sizes other than 224. The means are
    separable, so B is a pair of matrices, exactly.
    """
    height, width, _ = image.shape
    number = passes(image.shape)
    blurred = filters.separable(image, _mean_matrix(height, number), _mean_matrix(width, number))
    return jnp.clip((1 - params["weight"]) * image + params["weight"] * blurred, 0.0, 1.0)


blur = register(
    Corruption(
        name="blur",
        benchmark="noc",
        family="blur",
        sampler=_sample_blur,
        applier=_apply_blur,
        scale=Fraction(),
        rounding="nearest",
        parameters=(Parameter("weight", "1", "ImageNet-NOC (2021), appendix A, and the released code"),),
    )
)
