"""Values, each by itself: solarize, posterize, contrast, brightness and gamma."""

import jax
import jax.numpy as jnp

from corruptions.noc.draws import integer
from corruptions.primitives import color
from corruptions.syn2nat.candidate import candidate


def _sample_solarize(key, shape, severity):
    """Takes `threshold` 200; draws nothing."""
    del key, shape, severity
    return {"threshold": jnp.float32(200)}


def _apply_solarize(image, params):
    """Inverts bright values: 1 - x where 255 x >= threshold. Source: Solarize."""
    return jnp.where(color.to_levels(image) >= params["threshold"], 1 - image, image)


solarize = candidate("solarize", "color", _sample_solarize, _apply_solarize, (("threshold", "grey level"),))


def _sample_posterize(key, shape, severity):
    """Takes `step` 64, which keeps the two highest bits of eight; draws nothing."""
    del key, shape, severity
    return {"step": jnp.float32(64)}


def _apply_posterize(image, params):
    """Keeps the highest bits: step floor(255 x / step) / 255. Source: Posterize."""
    step = params["step"]
    return color.from_levels(jnp.floor(color.to_levels(image) / step) * step)


posterize = candidate(
    "posterize",
    "digital",
    _sample_posterize,
    _apply_posterize,
    (("step", "grey levels"),),
    straight_through=lambda image, params: image,
)


def _sample_random_contrast(key, shape, severity):
    """Draws `factor` from U[-1/2, 5/2); a negative one, of an image in six, makes it black."""
    del shape, severity
    return {"factor": jax.random.uniform(key, minval=-0.5, maxval=2.5)}


def _apply_random_contrast(image, params):
    """Multiplies: clip(factor x). Source: RandomContrast, limit 1.5."""
    return jnp.clip(params["factor"] * image, 0.0, 1.0)


random_contrast = candidate(
    "random_contrast", "lighting", _sample_random_contrast, _apply_random_contrast, (("factor", "1"),)
)


def _sample_random_brightness(key, shape, severity):
    """Draws `shift` from U[-0.9, 0.9)."""
    del shape, severity
    return {"shift": jax.random.uniform(key, minval=-0.9, maxval=0.9)}


def _apply_random_brightness(image, params):
    """Shifts all channels: clip(x + shift). Source: RandomBrightness, limit 0.9."""
    return jnp.clip(image + params["shift"], 0.0, 1.0)


random_brightness = candidate(
    "random_brightness", "lighting", _sample_random_brightness, _apply_random_brightness, (("shift", "intensity"),)
)


def _sample_random_gamma(key, shape, severity):
    """Draws `exponent`, whole hundredths uniform in 3..10."""
    del shape, severity
    return {"exponent": integer(key, 300, 1000).astype(jnp.float32) / 100}


def _apply_random_gamma(image, params):
    """Darkens by a power: x^exponent. Source: RandomGamma, 300 to 1000 percent."""
    return jnp.power(image, params["exponent"])


random_gamma = candidate("random_gamma", "lighting", _sample_random_gamma, _apply_random_gamma, (("exponent", "1"),))
