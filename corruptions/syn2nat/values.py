"""Values: colours, lightness, and 3x3 filters of neighbouring pixels."""

import jax
import jax.numpy as jnp

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.noc.severities import integer
from corruptions.primitives import color, random, special
from corruptions.syn2nat.common import lightness, register, relit


def _sample_solarize(key: Key, shape: Shape, severity: Severity) -> Params:
    """Takes `threshold` 200; draws nothing."""
    return {"threshold": jnp.float32(200)}


@register("color", _sample_solarize, {"threshold": "grey level"})
def solarize(image: Image, params: Params) -> Image:
    """Inverts bright values: 1 - x where 255 x >= threshold. Source: Solarize."""
    return jnp.where(color.to_levels(image) >= params["threshold"], 1 - image, image)


def _sample_posterize(key: Key, shape: Shape, severity: Severity) -> Params:
    """Takes `step` 64, which keeps the two highest bits of eight; draws nothing."""
    return {"step": jnp.float32(64)}


@register("digital", _sample_posterize, {"step": "grey levels"}, straight_through=lambda image, params: image)
def posterize(image: Image, params: Params) -> Image:
    """Keeps the highest bits: step floor(255 x / step) / 255. Source: Posterize."""
    step = params["step"]
    return color.from_levels(jnp.floor(color.to_levels(image) / step) * step)


def _sample_random_contrast(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws `factor` from U[-1/2, 5/2); a negative one, of an image in six, makes it black."""
    return {"factor": jax.random.uniform(key, minval=-0.5, maxval=2.5)}


@register("lighting", _sample_random_contrast, {"factor": "1"})
def random_contrast(image: Image, params: Params) -> Image:
    """Multiplies: clip(factor x). Source: RandomContrast, limit 1.5."""
    return color.clip(params["factor"] * image)


def _sample_random_brightness(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws `shift` from U[-0.9, 0.9)."""
    return {"shift": jax.random.uniform(key, minval=-0.9, maxval=0.9)}


@register("lighting", _sample_random_brightness, {"shift": "intensity"})
def random_brightness(image: Image, params: Params) -> Image:
    """Shifts all channels: clip(x + shift). Source: RandomBrightness, limit 0.9."""
    return color.clip(image + params["shift"])


def _sample_random_gamma(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws `exponent`, whole hundredths uniform in 3..10."""
    return {"exponent": integer(key, 300, 1000).astype(jnp.float32) / 100}


@register("lighting", _sample_random_gamma, {"exponent": "1"})
def random_gamma(image: Image, params: Params) -> Image:
    """Darkens by a power: x^exponent. Source: RandomGamma, 300 to 1000 percent."""
    return jnp.power(image, params["exponent"])


_SEPIA = ((0.393, 0.769, 0.189), (0.349, 0.686, 0.168), (0.272, 0.534, 0.131))


def _sample_to_sepia(key: Key, shape: Shape, severity: Severity) -> Params:
    """Takes the `matrix` of sepia; draws nothing."""
    return {"matrix": jnp.array(_SEPIA, jnp.float32)}


@register("color", _sample_to_sepia, {"matrix": "1"}, mixes="mixes red, green and blue")
def to_sepia(image: Image, params: Params) -> Image:
    """Maps each colour linearly: clip(M x). Source: ToSepia."""
    mapped = jnp.einsum("dc,hwc->hwd", params["matrix"], image, precision=jax.lax.Precision.HIGHEST)
    return color.clip(mapped)


def _sample_channel_dropout(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws `channel`, uniform among three."""
    return {"channel": integer(key, 0, 2)}


@register("color", _sample_channel_dropout, {"channel": "index"}, mixes="drops one of red, green and blue")
def channel_dropout(image: Image, params: Params) -> Image:
    """Sets one channel to 0. Source: ChannelDropout."""
    return jnp.where((jnp.arange(3) == params["channel"])[None, None, :], 0.0, image)


def _sample_color_jitter(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws factors of `brightness`, `contrast` and `saturation` from U[0.3, 1.7), `turns` of the hue from U[-0.7,
    0.7), wrapped, and the `order` of the four.
    """
    *keys, turns_key, order_key = jax.random.split(key, 5)
    factors = {
        name: jax.random.uniform(k, minval=0.3, maxval=1.7)
        for name, k in zip(("brightness", "contrast", "saturation"), keys, strict=True)
    }
    turns = jax.random.uniform(turns_key, minval=-0.7, maxval=0.7)
    return factors | {"turns": turns - jnp.round(turns), "order": jax.random.permutation(order_key, 4)}


@register(
    "color",
    _sample_color_jitter,
    {"brightness": "1", "contrast": "1", "saturation": "1", "turns": "turns", "order": "index"},
    mixes="mixes in the luma of red, green and blue",
)
def color_jitter(image: Image, params: Params) -> Image:
    """Blends with black, with the mean luma and with the luma, and turns the hue, in a drawn order.

    Blends are clip(f x + (1 - f) other). Source: ColorJitter, 0.7 each.
    """

    def blend(name, other):
        factor = params[name]
        return lambda x: color.clip(factor * x + (1 - factor) * other(x))

    steps = (
        blend("brightness", jnp.zeros_like),
        blend("contrast", lambda x: jnp.mean(color.luma(x))),
        blend("saturation", lambda x: color.luma(x)[..., None]),
        lambda x: color.turn_hue(x, params["turns"]),
    )
    return jax.lax.scan(lambda x, number: (jax.lax.switch(number, steps, x), None), image, params["order"])[0]


def _sample_iso_noise(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws for each pixel `uniform` in [0, 1), of which photons are counted, and `turns` of the hue ~ N(0, (c i)^2),
    wrapped.

    The shift of colour c is drawn from U[0.2, 0.5), the `intensity` i from U[0.5, 1), once each.
    """
    shift_key, intensity_key, photon_key, hue_key = jax.random.split(key, 4)
    intensity = jax.random.uniform(intensity_key, minval=0.5, maxval=1.0)
    shift = jax.random.uniform(shift_key, minval=0.2, maxval=0.5)
    turns = shift * intensity * random.normal(hue_key, shape[:2])
    return {"intensity": intensity, "uniform": random.uniform(photon_key, shape[:2]), "turns": turns - jnp.round(turns)}


@register("noise", _sample_iso_noise, {"intensity": "1", "uniform": "1", "turns": "turns"}, mixes="turns the hue")
def iso_noise(image: Image, params: Params) -> Image:
    """Turns the hue of each pixel and brightens it: L + (1 - L) K / 255, K ~ Poisson(255 i std(L)).

    L is the HLS lightness, std over the image. Source: ISONoise.
    """
    before = lightness(image)
    mean = 255 * params["intensity"] * jnp.std(before)
    photons = special.poisson_quantile(params["uniform"], jnp.broadcast_to(mean, params["uniform"].shape))
    lit = color.clip(before + (1 - before) * photons[..., None] / 255)
    return relit(color.turn_hue(image, params["turns"]), lit)


def _filtered(image: Image, params: Params) -> Image:
    """Correlates each channel with a 3x3 kernel, the image mirrored about its outermost pixels."""
    height, width, _ = image.shape
    padded = jnp.pad(image, ((1, 1), (1, 1), (0, 0)), mode="reflect")
    shifted = [[padded[i : i + height, j : j + width] for j in range(3)] for i in range(3)]
    total = sum(params["kernel"][i, j] * shifted[i][j] for i in range(3) for j in range(3))
    return color.clip(total)


def _sample_sharpen(key: Key, shape: Shape, severity: Severity) -> Params:
    """Makes a `kernel` that weights the image 1 - a + a (8 + b), and its eight neighbours -a each.

    a is drawn from U[0.3, 0.6), b from U[0.6, 1). Source: IAASharpen.
    """
    weight_key, light_key = jax.random.split(key)
    weight = jax.random.uniform(weight_key, minval=0.3, maxval=0.6)
    light = jax.random.uniform(light_key, minval=0.6, maxval=1.0)
    return {"kernel": jnp.full((3, 3), -weight).at[1, 1].set(1 - weight + weight * (8 + light))}


def _sample_emboss(key: Key, shape: Shape, severity: Severity) -> Params:
    """Makes a `kernel` of differences from the upper left to the lower right, plus the image.

    Its rows are (-1 - s, -s, 0), (-s, 1, s) and (0, s, 1 + s), s from U[0.2, 0.7). Source: IAAEmboss, fully blended
    to the embossed image.
    """
    strength = jax.random.uniform(key, minval=0.2, maxval=0.7)
    constant = jnp.array([[-1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    slope = jnp.array([[-1.0, -1, 0], [-1, 0, 1], [0, 1, 1]])
    return {"kernel": constant + strength * slope}


sharpen = register("digital", _sample_sharpen, {"kernel": "1"}, name="sharpen")(_filtered)
emboss = register("digital", _sample_emboss, {"kernel": "1"}, name="emboss")(_filtered)
