"""Noise of ImageNet-C: Gaussian, shot (Poisson), impulse and speckle."""

import jax
import jax.numpy as jnp

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.imagenet_c.tables import lookup, register
from corruptions.primitives import color, random, special

_GAUSSIAN = {
    "cifar": (0.04, 0.06, 0.08, 0.09, 0.10),
    "tiny": (0.04, 0.08, 0.12, 0.15, 0.18),
    "imagenet": (0.08, 0.12, 0.18, 0.26, 0.38),
    "inception": (0.09, 0.13, 0.19, 0.27, 0.40),
}
_SPECKLE = {
    "cifar": (0.06, 0.1, 0.12, 0.16, 0.2),
    "tiny": (0.15, 0.2, 0.25, 0.3, 0.35),
    "imagenet": (0.15, 0.2, 0.35, 0.45, 0.6),
    "inception": (0.16, 0.21, 0.36, 0.46, 0.61),
}
_SHOT = {
    "cifar": (500.0, 250.0, 100.0, 75.0, 50.0),
    "tiny": (250.0, 100.0, 50.0, 30.0, 15.0),
    "imagenet": (60.0, 25.0, 12.0, 5.0, 3.0),
    "inception": (50.0, 20.0, 10.0, 5.0, 3.0),
}
_IMPULSE = {
    "cifar": (0.01, 0.02, 0.03, 0.05, 0.07),
    "tiny": (0.01, 0.02, 0.05, 0.08, 0.14),
    "imagenet": (0.03, 0.06, 0.09, 0.17, 0.27),
    "inception": (0.04, 0.07, 0.10, 0.18, 0.28),
}


def _sample_gaussian(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws `noise` ~ N(0, sigma^2), float32[H, W, 3], independent in every value."""
    sigma = lookup(_GAUSSIAN, shape, table, severity)
    return {"noise": sigma * random.normal(key, shape)}


@register(
    "noise",
    _sample_gaussian,
    {"noise": "intensity, range 0 to 1"},
    severity={"sigma": "intensity, range 0 to 1"},
    alone="quick",
)
def gaussian_noise(image: Image, params: Params) -> Image:
    """Adds the noise: clip(x + noise). Source: ImageNet-C, gaussian_noise."""
    return color.clip(image + params["noise"])


def _sample_speckle(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws `noise` ~ N(0, sigma^2), float32[H, W, 3], independent in every value."""
    sigma = lookup(_SPECKLE, shape, table, severity)
    return {"noise": sigma * random.normal(key, shape)}


@register("noise", _sample_speckle, {"noise": "relative intensity"}, severity={"sigma": "relative intensity"})
def speckle_noise(image: Image, params: Params) -> Image:
    """Multiplies by the noise: clip(x + x noise). Source: ImageNet-C, speckle_noise."""
    return color.clip(image + image * params["noise"])


def _sample_shot(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws `uniform` ~ U[0, 1), float32[H, W, 3]; `photons` is the severity's count c at white."""
    photons = lookup(_SHOT, shape, table, severity)
    return {"uniform": random.uniform(key, shape), "photons": photons}


def _smooth_shot(image: Image, params: Params) -> Image:
    """Adds the counts as noise that does not depend on the image: the derivative of the mean."""
    photons = params["photons"]
    noise = special.poisson_quantile(params["uniform"], photons * image) / photons - image
    return color.clip(image + jax.lax.stop_gradient(noise))


@register(
    "noise",
    _sample_shot,
    {"uniform": "1", "photons": "photons at white"},
    severity={"photons": "photons at white"},
    straight_through=_smooth_shot,
    alone="quick",
)
def shot_noise(image: Image, params: Params) -> Image:
    """Counts photons: clip(K / c) with K ~ Poisson(c x), computed as the quantile of `uniform`.

    Source: ImageNet-C, shot_noise.
    """
    photons = params["photons"]
    return color.clip(special.poisson_quantile(params["uniform"], photons * image) / photons)


def _sample_impulse(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws `flip` ~ Bernoulli(amount), then `salt` ~ Bernoulli(1/2), bool[H, W, 3] each.

    Channels are independent, so single values change, not whole pixels.
    """
    amount = lookup(_IMPULSE, shape, table, severity)
    flip_key, salt_key = jax.random.split(key)
    return {"flip": random.bernoulli(flip_key, amount, shape), "salt": random.bernoulli(salt_key, 0.5, shape)}


@register(
    "noise", _sample_impulse, {"flip": "bool", "salt": "bool"}, severity={"amount": "fraction of values"}, alone="quick"
)
def impulse_noise(image: Image, params: Params) -> Image:
    """Sets values where `flip` to 1 if `salt`, else to 0. Source: ImageNet-C, impulse_noise."""
    return jnp.where(params["flip"], params["salt"].astype(image.dtype), image)
