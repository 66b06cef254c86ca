"""Noises: gaussian and salt_pepper."""

import jax.numpy as jnp

from corruptions.noc import severities
from corruptions.noc.candidate import candidate, padding
from corruptions.primitives import random


def _sample_gaussian(key, shape, severity, *, range=None, half_normal=True):
    """Draws `noise` ~ N(0, sigma^2) for every pixel and channel, by default its magnitude.

    Options: `range` of sigma, by default 0.05..0.18. `half_normal=True` takes the noise's
    magnitude, a mean shift of 0.8 sigma: so does the released code, with which the published ranges
    and errors were measured. `half_normal=False` takes the noise itself, as the paper says.
    """
    if half_normal not in (True, False):
        raise ValueError(f"expected half_normal=True or False, found {half_normal!r}")
    deviation = severities.lookup("gaussian", shape, range, severity)
    noise = random.normal(key, shape)
    return {"noise": deviation * (jnp.abs(noise) if half_normal else noise)}


def _apply_gaussian(image, params):
    """Adds the noise: clip(x + n). Source: ImageNet-NOC, gaussian."""
    return jnp.clip(image + params["noise"], 0.0, 1.0)


gaussian = candidate(
    "gaussian",
    "noise",
    _sample_gaussian,
    _apply_gaussian,
    (("noise", "intensity, sigma 0.05..0.18"),),
    padding=padding(),
)


def _sample_salt_pepper(key, shape, severity, *, range=None):
    """Draws `uniform`, u in [0, 1) for every pixel and channel.

    Options: `range` of the probability p that a channel value is replaced, by default 0.003..0.032.
    """
    return {
        "uniform": random.uniform(key, shape),
        "probability": severities.lookup("salt_pepper", shape, range, severity),
    }


def _apply_salt_pepper(image, params):
    """Sets channel values to 0 where u < p/2 and to 1 where p/2 <= u < p.

    Source: ImageNet-NOC, salt_pepper as released.
    """
    uniform, probability = params["uniform"], params["probability"]
    impulse = (uniform >= probability / 2).astype(image.dtype)
    return jnp.where(uniform < probability, impulse, image)


salt_pepper = candidate(
    "salt_pepper",
    "noise",
    _sample_salt_pepper,
    _apply_salt_pepper,
    (("uniform", "1"), ("probability", "per channel value")),
    padding=padding(),
)
