"""Colour: bleach_bypass, technicolor, pseudocolor, hue_shift, color_balance and color_dither.

The first three overflow 8 bits in the released code, by oversight, and in the published figures. `wrap=True`, the
default, reproduces that (values mod 256, as on x86); `wrap=False` is the formula without overflow.
"""

import functools

import jax
import jax.numpy as jnp

from corruptions.cbar import severities
from corruptions.cbar.severities import padding, register, to_image
from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.primitives import color, padded, random

_SEGMENTS = 4


def _luma(levels):
    """Computes the BT.709 luma, [H, W, 1] in [0, 1]."""
    # dm_pix.rgb_to_grayscale takes twice as long, and accelerators round its product to TF32.
    red, green, blue = (levels[..., i : i + 1] for i in range(3))
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


def _to_image(levels, wrap):
    """Scales grey levels to an image; with `wrap` after cutting them to whole levels mod 256."""
    wrapped = jnp.trunc(levels).astype(jnp.int32) & 255
    return to_image(jnp.where(wrap, wrapped.astype(jnp.float32), levels))


def _filter(name, mixed, mixes):
    """Makes a candidate without randomness, of weight 0.1 s; `mixed` returns grey levels, which may exceed 255."""

    @functools.wraps(mixed)
    def apply(image, params):
        return _to_image(mixed(image, params), params["wrap"])

    def smooth(image, params):
        levels = mixed(image, params)
        return to_image(jnp.where(params["wrap"], jnp.mod(levels, 256), levels))

    def sample(key: Key, shape: Shape, severity: Severity, *, table: str | None = None, wrap: bool = True) -> Params:
        """Computes the weight of the effect; nothing is random.

        Option: `wrap`, whether to overflow 8 bits as the released code does.
        """
        return {"weight": 0.1 * severities.scanned(name, severity, shape, table), "wrap": jnp.bool_(wrap)}

    units = {"weight": "1", "wrap": "bool"}
    return register("colour", sample, units, name=name, mixes=mixes, straight_through=smooth, padding=padding())(apply)


def _bleached(image, params):
    """Mixes in a bleached image: (1 - a) x + a ((1 - l) (2 x mod 256) L + l (255 - 2 (1 - L) (255 - x))) in grey
    levels, L the BT.709 luma in [0, 1] and l = clip(10 (L - 0.45), 0, 1) (C-bar, bleach_bypass).

    Without `wrap`, 2 x is not taken mod 256 and the result is clipped.
    """
    levels = color.to_levels(image)
    luma = _luma(levels)
    light = jnp.clip(10 * (luma - 0.45), 0.0, 1.0)
    doubled = 2 * levels
    doubled = jnp.where(params["wrap"] & (levels >= 128), doubled - 256, doubled)
    bleached = (1 - light) * doubled * luma + light * (255 - 2 * (1 - luma) * (255 - levels))
    weight = params["weight"]
    return (1 - weight) * levels + weight * bleached


bleach_bypass = _filter("bleach_bypass", _bleached, "bleaches by the luma of red, green and blue")


def _dyed(image, params):
    """Mixes in an image y of dyes: (1 - a) x + a y in grey levels, red of y being m_G m_B R and cyclically, with m_R
    = 1 - R + (G + B) / 2 (R, G, B in [0, 1]) and cyclically (C-bar, technicolor).

    The sum may exceed 255: cut to whole levels mod 256, or without `wrap` clipped.
    """
    levels, weight = color.to_levels(image), params["weight"]
    planes = [levels[..., i] for i in range(3)]
    total = 0.5 * sum(plane / 255 for plane in planes)
    red, green, blue = (1 - 1.5 * (plane / 255) + total for plane in planes)
    dyes = green * blue, red * blue, red * green

    # Stacked at the end: of dyes stacked before, a CPU takes seven times as long for a single image.
    mixed = [(1 - weight) * plane + weight * dye * plane for plane, dye in zip(planes, dyes, strict=True)]
    return jnp.stack(mixed, axis=-1)


technicolor = _filter("technicolor", _dyed, "multiplies red, green and blue with one another")


def _sample_pseudocolor(
    key: Key, shape: Shape, severity: Severity, *, table: str | None = None, wrap: bool = True
) -> Params:
    """Draws a palette: the weight of smooth transitions ~ U[0.25, 0.75); five colours, uniform whole levels 0..254
    per channel.

    Option: `wrap`, whether to overflow 8 bits as the released code does.
    """
    smooth_key, color_key = jax.random.split(key)
    return {
        "weight": 0.05 * severities.scanned("pseudocolor", severity, shape, table),
        "smooth": random.uniform(smooth_key, (), 0.25, 0.75),
        "colors": random.integers(color_key, (_SEGMENTS + 1, 3), 0, 255),
        "wrap": jnp.bool_(wrap),
    }


@register(
    "colour",
    _sample_pseudocolor,
    {"weight": "1", "smooth": "1", "colors": "grey levels", "wrap": "bool"},
    mixes="paints the luma of red, green and blue in colours",
    padding=padding(),
)
def pseudocolor(image: Image, params: Params) -> Image:
    """Mixes in the colours of a palette: (1 - a) x + a C(L) in grey levels, L the BT.709 luma in [0, 1]; C runs
    through five colours c_0..c_4 (C-bar, pseudocolor).

    Between two of them, at t in [0, 1], C = c_k + (1 - m) (c_{k+1} - c_k) t + m ((c_{k+1} - c_k) mod 256) S(t) with
    S(t) = 3 t^2 - 2 t^3; without `wrap` the second difference is not taken mod 256.
    """
    levels = color.to_levels(image)
    position = _SEGMENTS * _luma(levels)
    segment = jnp.clip(jnp.floor(position), 0, _SEGMENTS - 1)
    t = position - segment
    curve = t * t * (3 - 2 * t)
    step = jnp.diff(params["colors"], axis=0)
    smooth = params["smooth"]
    linear_step = (1 - smooth) * step.astype(jnp.float32)
    smooth_step = smooth * jnp.where(params["wrap"], step & 255, step).astype(jnp.float32)
    start = params["colors"].astype(jnp.float32)
    weight = params["weight"]

    colors = jnp.float32(0)
    for k in range(_SEGMENTS):
        first, linear, smooth_rise = (v[k].reshape(1, 1, -1) for v in (start, linear_step, smooth_step))
        colors = jnp.where(segment == k, first + linear * t + smooth_rise * curve, colors)
    return to_image((1 - weight) * levels + weight * colors)


def _sign(key):
    return jnp.where(random.bernoulli(key, 0.5, ()), -1.0, 1.0)


def _sample_hue(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws the sign of a turn of the hue."""
    return {"turns": _sign(key) * 0.05 * severities.scanned("hue_shift", severity, shape, table)}


@register("colour", _sample_hue, {"turns": "turns"}, mixes="turns the hue", padding=padding())
def hue_shift(image: Image, params: Params) -> Image:
    """Turns the HSV hue h to h + d (mod 1), d in turns, saturation and value kept (C-bar).

    Formula: `primitives.color.turn_hue`. Largest and smallest values stay whole levels; the original, passing through
    V (1 - S) in floating point, loses one level in about half of the smallest.
    """
    return to_image(color.turn_hue(color.to_levels(image), params["turns"]))


def _sample_balance(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws a factor, 1 - 0.1 s or 1 + 0.1 s."""
    # One rounding only: whether a whole level survives truncation hangs on the last place.
    return {"factor": (10 + _sign(key) * severities.scanned("color_balance", severity, shape, table)) / 10}


def _smooth_balance(image: Image, params: Params) -> Image:
    grey = color.luma(image)[..., None]
    return color.clip(grey + params["factor"] * (image - grey))


@register(
    "colour",
    _sample_balance,
    {"factor": "1"},
    mixes="scales the distance from the luma of red, green and blue",
    straight_through=_smooth_balance,
    padding=padding(),
)
def color_balance(image: Image, params: Params) -> Image:
    """Scales the distance from grey: g + f (x - g), clipped, in grey levels, with g = round(0.299 R + 0.587 G + 0.114
    B) as Pillow computes it, in 16-bit fixed point (C-bar, color_balance).
    """
    levels = color.to_levels(image)
    whole = jnp.round(levels).astype(jnp.int32)
    grey = color.luma_levels(*jnp.moveaxis(whole, -1, 0)).astype(jnp.float32)[..., None]
    return to_image(grey + params["factor"] * (levels - grey))


def _sample_dither(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Computes the number of levels, 14 - int(s); nothing is random."""
    strength = severities.scanned("color_dither", severity, shape, table)
    return {"levels": 14 - jnp.floor(strength + 1e-4).astype(jnp.int32)}


@register(
    "colour", _sample_dither, {"levels": "count"}, straight_through=lambda image, params: image, padding=padding()
)
def color_dither(image: Image, params: Params) -> Image:
    """Reduces the levels of each row and channel, left to right: c becomes the level q = int(255 floor(n c / 256) /
    (n - 1)), and its right neighbour trunc(clip(. + 7 e / 16)), then trunc(clip(. + e / 16)), e = c - q, clipped to
    0..255 (C-bar, color_dither).

    The first is skipped in the top row, the second in the bottom one. Meant as Floyd and Steinberg's dithering; in
    the released code nothing ever reaches another row.
    """
    number = params["levels"]
    columns = jnp.round(jnp.moveaxis(color.to_levels(image), 1, 0)).astype(jnp.int32)
    row = jnp.arange(image.shape[0])[:, None]
    last_row = padded.own_sides(image.shape, params)[0] - 1
    first_share, second_share = jnp.where(row > 0, 7, 0), jnp.where(row < last_row, 1, 0)
    # A palette is short: a division for each level, none for each pixel. The half keeps whole quotients whole.
    index = jnp.arange(14, dtype=jnp.float32)
    palette = jnp.floor((255 * index + 0.5) / (number - 1).astype(jnp.float32)).astype(jnp.int32)

    def step(error, current):
        for share in (first_share, second_share):
            current = jnp.clip(16 * current + share * error, 0, 16 * 255) >> 4
        level = jnp.take(palette, (number * current) >> 8, mode="clip")
        return current - level, level

    columns = jax.lax.scan(step, jnp.zeros_like(columns[0]), columns)[1]
    return color.from_levels(jnp.moveaxis(columns, 0, 1).astype(jnp.float32))
