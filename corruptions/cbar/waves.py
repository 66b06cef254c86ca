"""Waves and stars: single_frequency_greyscale, concentric_sine_waves, plasma_noise, caustic_noise, sparkles and
inverse_sparkles.
"""

import jax
import jax.numpy as jnp

from corruptions.cbar import severities
from corruptions.cbar.severities import add_grey, padding, register, side, to_image
from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.primitives import color, padded, random, staging
from corruptions.primitives.special import arctangent2, sine_cosine
from corruptions.primitives.textures import caustic, plasma, spark


def _sample_single_frequency(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws a plane wave: p ~ U[-pi, pi), r ~ U[-|p|, |p|), which of the two runs along x (either with probability
    1/2), the phase ~ U[0, 2 pi).
    """
    keys = jax.random.split(key, 4)
    first = random.uniform(keys[0], (), -jnp.pi, jnp.pi)
    second = random.uniform(keys[1], (), -jnp.abs(first), jnp.abs(first))
    frequencies = jnp.stack([first, second])
    return {
        "amplitude": 19.6 * severities.scanned("single_frequency_greyscale", severity, shape, table),
        "frequencies": jnp.where(random.bernoulli(keys[2], 0.5, ()), frequencies, frequencies[::-1]),
        "phase": random.uniform(keys[3], (), 0.0, 2 * jnp.pi),
    }


@register(
    "noise",
    _sample_single_frequency,
    {"amplitude": "grey levels", "frequencies": "radians per pixel, along x and y", "phase": "radians"},
    padding=padding(),
)
def single_frequency_greyscale(image: Image, params: Params) -> Image:
    """Adds A sin(fx x + fy y + phase) to every channel, in grey levels, and clips (C-bar, single_frequency_greyscale)."""
    height, width, _ = image.shape
    frequency_x, frequency_y = params["frequencies"]
    along_x = frequency_x * jnp.arange(width, dtype=jnp.float32)
    along_y = frequency_y * jnp.arange(height, dtype=jnp.float32) + params["phase"]
    # The sine of a sum: sines of rows and of columns instead of pixels.
    columns, rows = jnp.stack([jnp.sin(along_x), jnp.cos(along_x)]), jnp.stack([jnp.cos(along_y), jnp.sin(along_y)])
    wave = jnp.matmul(params["amplitude"] * rows.T, columns, precision=jax.lax.Precision.HIGHEST)
    return add_grey(image, wave)


def _sample_concentric(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws rings: the centre (column, row) ~ U[0, W) x U[0, H); the turns of the ripple ~ U[0, 10), its amplitude ~
    U[0, N/10) and the width of the rings ~ U(0, N/10], N = min(H, W).
    """
    keys = jax.random.split(key, 4)
    tenth = side(shape) / 10
    height, width = padded.own(shape)[:2]
    return {
        "amplitude": 12.8 * severities.scanned("concentric_sine_waves", severity, shape, table),
        "centre": random.uniform(keys[0], (2,)) * jnp.array([width, height], jnp.float32),
        "turns": random.uniform(keys[1], (), 0.0, 10.0),
        "ripple": random.uniform(keys[2], (), 0.0, tenth),
        "width": tenth * (1 - random.uniform(keys[3], ())),  # never 0
    }


@register(
    "noise",
    _sample_concentric,
    {
        "amplitude": "grey levels",
        "centre": "pixels, column and row",
        "turns": "ripples a turn",
        "ripple": "pixels",
        "width": "pixels",
    },
    aliases=("cocentric_sine_waves",),
    padding=padding(),
)
def concentric_sine_waves(image: Image, params: Params) -> Image:
    """Adds A (frac((r + a sin(n atan2(dx, dy))) / w) - 1/2) to every channel, in grey levels, and clips (C-bar,
    cocentric_sine_waves).

    A sawtooth of the distance r despite the name; n is not whole, hence a seam above the centre.
    """
    height, width, _ = image.shape
    x = (jnp.arange(width, dtype=jnp.float32) - params["centre"][0])[None, :]
    y = (jnp.arange(height, dtype=jnp.float32) - params["centre"][1])[:, None]
    angle = params["turns"] * arctangent2(x, y)
    rings = (jnp.sqrt(x**2 + y**2) + params["ripple"] * sine_cosine(angle)[0]) / params["width"]
    return add_grey(image, staging.stage(params["amplitude"] * (rings - jnp.floor(rings) - 0.5)))


def _sample_plasma(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws a plasma: its time ~ U[0, 6 pi), rounds 4, 5 or 6, decay ~ U[0.5, 1), scale ~ U[0.075, 0.2) N."""
    keys = jax.random.split(key, 4)
    return {
        "amplitude": 6.4 * severities.scanned("plasma_noise", severity, shape, table),
        "time": random.uniform(keys[0], (), 0.0, 6 * jnp.pi),
        "rounds": random.integers(keys[1], (), 4, 7),
        "decay": random.uniform(keys[2], (), 0.5, 1.0),
        "scale": random.uniform(keys[3], (), 0.075, 0.2) * side(shape),
    }


@register(
    "noise",
    _sample_plasma,
    {"amplitude": "grey levels", "time": "radians", "rounds": "count", "decay": "1", "scale": "pixels"},
    mixes="has a plasma of red, green and blue",
    padding=padding(),
)
def plasma_noise(image: Image, params: Params) -> Image:
    """Mixes in a plasma: (1 - A/255) x + A C, clipped, in grey levels, C the colours of `primitives.textures.plasma`,
    in [-1, 1] (C-bar, plasma_noise). float32 arithmetic costs less than 0.1 levels.
    """
    colours = plasma(image.shape, params["time"], params["rounds"], params["decay"], params["scale"])
    amplitude = params["amplitude"]
    return to_image((1 - amplitude / 255) * color.to_levels(image) + amplitude * colours)


def caustic_draws(key: jax.Array, shape: tuple[int, ...]) -> dict[str, jax.Array]:
    """Draws a caustic's time ~ U[0.5, 2) radians and scale ~ U[0.75, 1.25) min(H, W) pixels."""
    time_key, scale_key = jax.random.split(key)
    return {
        "time": random.uniform(time_key, (), 0.5, 2.0),
        "scale": random.uniform(scale_key, (), 0.75, 1.25) * side(shape),
    }


def _sample_caustic(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws a caustic: its time ~ U[0.5, 2), its scale ~ U[0.75, 1.25) N."""
    amplitude = 25.5 * severities.scanned("caustic_noise", severity, shape, table)
    return {"amplitude": amplitude, **caustic_draws(key, shape)}


@register(
    "noise", _sample_caustic, {"amplitude": "grey levels", "time": "radians", "scale": "pixels"}, padding=padding()
)
def caustic_noise(image: Image, params: Params) -> Image:
    """Adds A C to every channel, in grey levels, and clips: C is the brightness of `primitives.textures.caustic`, in
    [0, 1] (C-bar, caustic_noise). float32 arithmetic costs less than 0.03 levels.
    """
    plane = params["amplitude"] * caustic(image.shape, params["time"], params["scale"])
    return add_grey(image, jax.lax.optimization_barrier(plane))


_STARS = 5
_FEWEST_RAYS, _MOST_RAYS = 50, 199


def _rays(key, shape, radius):
    """Numbers of rays, uniform in 50..199, of `shape`; lengths ~ N(r, r / 4), [*shape, 199]."""
    number_key, length_key = jax.random.split(key)
    numbers = random.integers(number_key, shape, _FEWEST_RAYS, _MOST_RAYS + 1)
    return numbers, radius * (1 + 0.25 * random.normal(length_key, (*shape, _MOST_RAYS)))


def _sample_sparkles(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws five stars: their centres ~ U[0, H) x U[0, W); the numbers of rays, uniform in 50..199; the rays'
    lengths, N(R, R/4) but at least 1, R = 0.01 s N.
    """
    centre_key, ray_key = jax.random.split(key)
    radius = 0.01 * side(shape) * severities.scanned("sparkles", severity, shape, table)
    numbers, lengths = _rays(ray_key, (_STARS,), radius)
    return {
        "centres": random.uniform(centre_key, (_STARS, 2)) * jnp.array([padded.own(shape)[:2]], jnp.float32),
        "rays": numbers,
        "lengths": jnp.maximum(lengths, 1.0),
    }


@register(
    "noise",
    _sample_sparkles,
    {"centres": "pixels, row and column", "rays": "count", "lengths": "pixels"},
    padding=padding(),
)
def sparkles(image: Image, params: Params) -> Image:
    """Brightens the image: x <- x + w (255 - x) for each star in turn, in grey levels: w the brightness of
    `primitives.textures.spark` (C-bar, sparkles). That is 255 - (255 - x) times the product of all 1 - w.
    """

    def dim(darkness, star):
        centre, number, lengths = star
        return darkness * (1 - spark(image.shape, centre, lengths, number, None)), None

    stars = params["centres"], params["rays"], params["lengths"]
    darkness, _ = jax.lax.scan(dim, jnp.ones_like(image[..., 0]), stars)
    return to_image(255 - (255 - color.to_levels(image)) * darkness[..., None])


def _sample_inverse(key: Key, shape: Shape, severity: Severity, *, table: str | None = None) -> Params:
    """Draws one star: its centre ~ U[H/4, 3H/4) x U[W/4, 3W/4); the number of rays, uniform in 50..199; the rays'
    lengths, N(R, R/4), R = N/4 (seldom near zero or below; they are squared).
    """
    centre_key, ray_key = jax.random.split(key)
    number, lengths = _rays(ray_key, (), 0.25 * side(shape))
    return {
        "exponent": 0.13 * severities.scanned("inverse_sparkles", severity, shape, table),
        "centre": random.uniform(centre_key, (2,), 0.25, 0.75) * jnp.array(padded.own(shape)[:2], jnp.float32),
        "rays": number,
        "lengths": lengths,
    }


@register(
    "noise",
    _sample_inverse,
    {"exponent": "1", "centre": "pixels, row and column", "rays": "count", "lengths": "pixels"},
    padding=padding(),
)
def inverse_sparkles(image: Image, params: Params) -> Image:
    """Fades to white away from a star: 255 + w (x - 255) in grey levels, w the brightness of
    `primitives.textures.spark` (C-bar, inverse_sparkles).
    """
    star = staging.stage(spark(image.shape, params["centre"], params["lengths"], params["rays"], params["exponent"]))
    return to_image(255 + star[..., None] * (color.to_levels(image) - 255))
