"""Noises: gaussian and salt_pepper."""

import jax.numpy as jnp

from corruptions.contract import Corruption, Fraction, Parameter
from corruptions.noc import severity as severities
from corruptions.primitives import random
from corruptions.registry import register

_SOURCE = "ImageNet-NOC (2021), appendix A, and the released code"


def _sample_gaussian(key, shape, severity, *, range=None, half_normal=True):
    """Noise. Draws: N(0, sigma^2) for every pixel and channel.

    Options: `range` of sigma, by default 0.05..0.18; `half_normal=True` takes the noise's
    magnitude, as the released code does and the ranges and reference errors were measured with (a
    mean shift of 0.8 sigma), `False` the noise itself, as the paper says.
    """
    if half_normal not in (True, False):
        raise ValueError(f"expected half_normal=True or False, found {half_normal!r}")
    deviation = severities.lookup("gaussian", shape, range, severity)
    noise = random.normal(key, shape)
    return {"noise": deviation * (jnp.abs(noise) if half_normal else noise)}


def _apply_gaussian(image, params):
    """x = clip(x + n) (ImageNet-NOC, gaussian)."""
    return jnp.clip(image + params["noise"], 0.0, 1.0)


gaussian = register(
    Corruption(
        name="gaussian",
        benchmark="noc",
        family="noise",
        sampler=_sample_gaussian,
        applier=_apply_gaussian,
        scale=Fraction(),
        rounding="nearest",
        parameters=(Parameter("noise", "intensity, sigma 0.05..0.18", _SOURCE),),
    )
)


def _sample_salt_pepper(key, shape, severity, *, range=None):
    """Impulses. Draws: u uniform in [0, 1) for every pixel and channel.

    Options: `range` of the probability p that a channel value is replaced, by default 0.003..0.032.
    """
    return {
        "uniform": random.uniform(key, shape),
        "probability": severities.lookup("salt_pepper", shape, range, severity),
    }


def _apply_salt_pepper(image, params):
    """x = 0 where u < p/2, 1 where p/2 <= u < p, per channel value (ImageNet-NOC, salt_pepper, as
    released).
    """
    uniform, probability = params["uniform"], params["probability"]
    impulse = (uniform >= probability / 2).astype(image.dtype)
    return jnp.where(uniform < probability, impulse, image)


salt_pepper = register(
    Corruption(
        name="salt_pepper",
        benchmark="noc",
        family="noise",
        sampler=_sample_salt_pepper,
        applier=_apply_salt_pepper,
        scale=Fraction(),
        rounding="nearest",
        parameters=(
            Parameter("uniform", "1", _SOURCE),
            Parameter("probability", "per channel value", _SOURCE),
        ),
    )
)
