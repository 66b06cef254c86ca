"""Waves: single_frequency_greyscale, concentric_sine_waves, plasma_noise and caustic_noise."""

import jax
import jax.numpy as jnp

from corruptions import padded
from corruptions.cbar import severities
from corruptions.cbar.candidate import add_grey, candidate, padding, side, to_image
from corruptions.primitives import color, random, staging
from corruptions.primitives.textures.caustic import caustic
from corruptions.primitives.textures.plasma import plasma
from corruptions.primitives.trigonometry import arctangent2, sine_cosine


def _sample_single_frequency(key, shape, severity, *, table=None):
    """Draws a plane wave: p ~ U[-pi, pi), r ~ U[-|p|, |p|), which of the two runs along x (either
    with probability 1/2), the phase ~ U[0, 2 pi).

    Options: `table`, `cifar` or `imagenet`, by default the one made for the nearest size.
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


def _apply_single_frequency(image, params):
    """Adds A sin(fx x + fy y + phase) to every channel, in grey levels, and clips (C-bar,
    single_frequency_greyscale).
    """
    height, width, _ = image.shape
    frequency_x, frequency_y = params["frequencies"]
    along_x = frequency_x * jnp.arange(width, dtype=jnp.float32)
    along_y = frequency_y * jnp.arange(height, dtype=jnp.float32) + params["phase"]
    # The sine of a sum: sines of rows and of columns instead of pixels.
    columns, rows = jnp.stack([jnp.sin(along_x), jnp.cos(along_x)]), jnp.stack([jnp.cos(along_y), jnp.sin(along_y)])
    wave = jnp.matmul(params["amplitude"] * rows.T, columns, precision=jax.lax.Precision.HIGHEST)
    return add_grey(image, wave)


single_frequency_greyscale = candidate(
    "single_frequency_greyscale",
    "noise",
    _sample_single_frequency,
    _apply_single_frequency,
    (("amplitude", "grey levels"), ("frequencies", "radians per pixel, along x and y"), ("phase", "radians")),
    padding=padding(),
)


def _sample_concentric(key, shape, severity, *, table=None):
    """Draws rings: the centre (column, row) ~ U[0, W) x U[0, H); the turns of the ripple ~ U[0,
    10), its amplitude ~ U[0, N/10) and the width of the rings ~ U(0, N/10], N = min(H, W).

    Options: `table`, `cifar` or `imagenet`, by default the one made for the nearest size.
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


def _apply_concentric(image, params):
    """Adds A (frac((r + a sin(n atan2(dx, dy))) / w) - 1/2) to every channel, in grey levels, and
    clips (C-bar, cocentric_sine_waves).

    A sawtooth of the distance r despite the name; n is not whole, hence a seam above the centre.
    """
    height, width, _ = image.shape
    x = (jnp.arange(width, dtype=jnp.float32) - params["centre"][0])[None, :]
    y = (jnp.arange(height, dtype=jnp.float32) - params["centre"][1])[:, None]
    angle = params["turns"] * arctangent2(x, y)
    rings = (jnp.sqrt(x**2 + y**2) + params["ripple"] * sine_cosine(angle)[0]) / params["width"]
    return add_grey(image, staging.stage(params["amplitude"] * (rings - jnp.floor(rings) - 0.5)))


concentric_sine_waves = candidate(
    "concentric_sine_waves",
    "noise",
    _sample_concentric,
    _apply_concentric,
    (
        ("amplitude", "grey levels"),
        ("centre", "pixels, column and row"),
        ("turns", "ripples a turn"),
        ("ripple", "pixels"),
        ("width", "pixels"),
    ),
    aliases=("cocentric_sine_waves",),
    padding=padding(),
)


def _sample_plasma(key, shape, severity, *, table=None):
    """Draws a plasma: its time ~ U[0, 6 pi), rounds 4, 5 or 6, decay ~ U[0.5, 1), scale ~ U[0.075,
    0.2) N.

    Options: `table`, `cifar` or `imagenet`, by default the one made for the nearest size.
    """
    keys = jax.random.split(key, 4)
    return {
        "amplitude": 6.4 * severities.scanned("plasma_noise", severity, shape, table),
        "time": random.uniform(keys[0], (), 0.0, 6 * jnp.pi),
        "rounds": random.integers(keys[1], (), 4, 7),
        "decay": random.uniform(keys[2], (), 0.5, 1.0),
        "scale": random.uniform(keys[3], (), 0.075, 0.2) * side(shape),
    }


def _apply_plasma(image, params):
    """Mixes in a plasma: (1 - A/255) x + A C, clipped, in grey levels, C the colours of
    `primitives.textures.plasma`, in [-1, 1] (C-bar, plasma_noise). float32 arithmetic costs less
    than 0.1 levels.
    """
    colours = plasma(image.shape, params["time"], params["rounds"], params["decay"], params["scale"])
    amplitude = params["amplitude"]
    return to_image((1 - amplitude / 255) * color.to_levels(image) + amplitude * colours)


plasma_noise = candidate(
    "plasma_noise",
    "noise",
    _sample_plasma,
    _apply_plasma,
    (
        ("amplitude", "grey levels"),
        ("time", "radians"),
        ("rounds", "count"),
        ("decay", "1"),
        ("scale", "pixels"),
    ),
    mixes="has a plasma of red, green and blue",
    padding=padding(),
)


def caustic_draws(key: jax.Array, shape: tuple[int, ...]) -> dict[str, jax.Array]:
    """Draws a caustic's time ~ U[0.5, 2) radians and scale ~ U[0.75, 1.25) min(H, W) pixels."""
    time_key, scale_key = jax.random.split(key)
    return {
        "time": random.uniform(time_key, (), 0.5, 2.0),
        "scale": random.uniform(scale_key, (), 0.75, 1.25) * side(shape),
    }


def _sample_caustic(key, shape, severity, *, table=None):
    """Draws a caustic: its time ~ U[0.5, 2), its scale ~ U[0.75, 1.25) N.

    Options: `table`, `cifar` or `imagenet`, by default the one made for the nearest size.
    """
    amplitude = 25.5 * severities.scanned("caustic_noise", severity, shape, table)
    return {"amplitude": amplitude, **caustic_draws(key, shape)}


def _apply_caustic(image, params):
    """Adds A C to every channel, in grey levels, and clips: C is the brightness of
    `primitives.textures.caustic`, in [0, 1] (C-bar, caustic_noise). float32 arithmetic costs less
    than 0.03 levels.
    """
    plane = params["amplitude"] * caustic(image.shape, params["time"], params["scale"])
    return add_grey(image, staging.stage(plane))


caustic_noise = candidate(
    "caustic_noise",
    "noise",
    _sample_caustic,
    _apply_caustic,
    (("amplitude", "grey levels"), ("time", "radians"), ("scale", "pixels")),
    padding=padding(),
)
