"""Colours: sepia, a channel that is lost, jitter, and the colour noise of a sensor."""

import jax
import jax.numpy as jnp

from corruptions.noc.draws import integer
from corruptions.primitives import color, poisson, random
from corruptions.primitives.hue import turn_hue
from corruptions.syn2nat.candidate import candidate
from corruptions.syn2nat.lightness import lightness, relit

_SEPIA = ((0.393, 0.769, 0.189), (0.349, 0.686, 0.168), (0.272, 0.534, 0.131))


def _sample_to_sepia(key, shape, severity):
    """Takes the `matrix` of sepia; draws nothing."""
    del key, shape, severity
    return {"matrix": jnp.array(_SEPIA, jnp.float32)}


def _apply_to_sepia(image, params):
    """Maps each colour linearly: clip(M x). Source: ToSepia."""
    mapped = jnp.einsum("dc,hwc->hwd", params["matrix"], image, precision=jax.lax.Precision.HIGHEST)
    return jnp.clip(mapped, 0.0, 1.0)


to_sepia = candidate(
    "to_sepia",
    "color",
    _sample_to_sepia,
    _apply_to_sepia,
    (("matrix", "1"),),
    mixes="mixes red, green and blue",
)


def _sample_channel_dropout(key, shape, severity):
    """Draws `channel`, uniform among three."""
    del shape, severity
    return {"channel": integer(key, 0, 2)}


def _apply_channel_dropout(image, params):
    """Sets one channel to 0. Source: ChannelDropout."""
    return jnp.where((jnp.arange(3) == params["channel"])[None, None, :], 0.0, image)


channel_dropout = candidate(
    "channel_dropout",
    "color",
    _sample_channel_dropout,
    _apply_channel_dropout,
    (("channel", "index"),),
    mixes="drops one of red, green and blue",
)


def _sample_color_jitter(key, shape, severity):
    """Draws factors of `brightness`, `contrast` and `saturation` from U[0.3, 1.7), `turns` of the
    hue from U[-0.7, 0.7), wrapped, and the `order` of the four.
    """
    del shape, severity
    *keys, turns_key, order_key = jax.random.split(key, 5)
    factors = {
        name: jax.random.uniform(k, minval=0.3, maxval=1.7)
        for name, k in zip(("brightness", "contrast", "saturation"), keys, strict=True)
    }
    turns = jax.random.uniform(turns_key, minval=-0.7, maxval=0.7)
    return factors | {"turns": turns - jnp.round(turns), "order": jax.random.permutation(order_key, 4)}


def _apply_color_jitter(image, params):
    """Blends with black, with the mean luma and with the luma, and turns the hue, in a drawn order.

    Blends are clip(f x + (1 - f) other). Source: ColorJitter, 0.7 each.
    """

    def blend(name, other):
        factor = params[name]
        return lambda x: jnp.clip(factor * x + (1 - factor) * other(x), 0.0, 1.0)

    steps = (
        blend("brightness", jnp.zeros_like),
        blend("contrast", lambda x: jnp.mean(color.luma(x))),
        blend("saturation", lambda x: color.luma(x)[..., None]),
        lambda x: turn_hue(x, params["turns"]),
    )
    return jax.lax.scan(lambda x, number: (jax.lax.switch(number, steps, x), None), image, params["order"])[0]


color_jitter = candidate(
    "color_jitter",
    "color",
    _sample_color_jitter,
    _apply_color_jitter,
    (("brightness", "1"), ("contrast", "1"), ("saturation", "1"), ("turns", "turns"), ("order", "index")),
    mixes="mixes in the luma of red, green and blue",
)


def _sample_iso_noise(key, shape, severity):
    """Draws for each pixel `uniform` in [0, 1), of which photons are counted, and `turns` of the hue
    ~ N(0, (c i)^2), wrapped.

    The shift of colour c is drawn from U[0.2, 0.5), the `intensity` i from U[0.5, 1), once each.
    """
    del severity
    shift_key, intensity_key, photon_key, hue_key = jax.random.split(key, 4)
    intensity = jax.random.uniform(intensity_key, minval=0.5, maxval=1.0)
    shift = jax.random.uniform(shift_key, minval=0.2, maxval=0.5)
    turns = shift * intensity * random.normal(hue_key, shape[:2])
    return {
        "intensity": intensity,
        "uniform": random.uniform(photon_key, shape[:2]),
        "turns": turns - jnp.round(turns),
    }


def _apply_iso_noise(image, params):
    """Turns the hue of each pixel and brightens it: L + (1 - L) K / 255, K ~ Poisson(255 i std(L)).

    L is the HLS lightness, std over the image. Source: ISONoise.
    """
    before = lightness(image)
    mean = 255 * params["intensity"] * jnp.std(before)
    photons = poisson.quantile(params["uniform"], jnp.broadcast_to(mean, params["uniform"].shape))
    lit = jnp.minimum(before + (1 - before) * photons[..., None] / 255, 1.0)
    return relit(turn_hue(image, params["turns"]), lit)


iso_noise = candidate(
    "iso_noise",
    "noise",
    _sample_iso_noise,
    _apply_iso_noise,
    (("intensity", "1"), ("uniform", "1"), ("turns", "turns")),
    mixes="turns the hue",
)
