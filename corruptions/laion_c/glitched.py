"""LAION-C glitched: rolled bands of rows, one displaced channel, and black scan lines."""

import functools
import random
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.core.severity import lookup
from corruptions.laion_c import common
from corruptions.laion_c.common import register
from corruptions.primitives import padded

_GLITCH = (2, 4, 5, 8, 10)
_MOST = 2 * max(_GLITCH)
MODES = ("release", "random")


def _sample(key: Key, shape: Shape, severity: Severity, *, mode: str = "release") -> Params:
    """Draws 2 g bands of rows and the displacement of one channel, g = 2, 4, 5, 8, 10.

    A band is rolled by o ~ U{-M..M}, M = floor(g^2 W / 100); it begins at row y ~ U{0..H} and has min(h, H - y) rows,
    h ~ U{1..H/4}. Channel c ~ U{0..C-1} moves by (dx, dy) ~ U{-2 g..2 g}^2.

    Args:
      mode: `release` takes the released code's draws for an image of this size, the same for every image: it seeds
        Python's generator with a constant for every image. `random` draws for each image.

    Raises:
      ValueError: another mode.
    """
    if mode not in MODES:
        raise ValueError(f"expected mode='release' or 'random', found {mode!r}")
    if mode == "release":
        return common.rows(shape, _released, severity)
    height, width, channels = shape
    glitch = lookup(_GLITCH, severity)
    number = jnp.floor(2 * glitch).astype(jnp.int32)
    most = jnp.floor(lookup([int(g * g / 100 * width) for g in _GLITCH], severity)).astype(jnp.int32)
    keys = jax.random.split(key, 5)
    roll = jax.random.randint(keys[0], (_MOST,), -most, most + 1)
    start = jax.random.randint(keys[1], (_MOST,), 0, height + 1)
    rows = jnp.minimum(jax.random.randint(keys[2], (_MOST,), 1, height // 4 + 1), height - start)
    shown = (jnp.arange(_MOST) < number) & (roll != 0)
    return {
        "bands": jnp.stack([roll, start, jnp.where(shown, rows, 0)], axis=1),
        "channel": jax.random.randint(keys[3], (), 0, channels),
        "offset": jax.random.randint(keys[4], (2,), -number, number + 1),
    }


def _released(shape: Sequence[int], table: str | None = None) -> dict[str, np.ndarray]:
    """Lists the released code's draws for images of a shape, by severity: see the parameters of `glitched`."""
    return _drawn(*shape[:2])


@functools.lru_cache(maxsize=64)
def _drawn(height, width):
    bands = np.zeros((len(_GLITCH), _MOST, 3), np.int32)
    offsets, channels = np.zeros((len(_GLITCH), 2), np.int32), np.zeros(len(_GLITCH), np.int32)
    for level, glitch in enumerate(_GLITCH):
        most, number = int(glitch * glitch / 100 * width), 2 * glitch
        for k in range(number):
            draw = random.Random(1 + k).randint
            if (roll := draw(-most, most)) != 0:
                start = draw(0, height)
                bands[level, k] = roll, start, min(draw(1, height // 4), height - start)
        draw = random.Random(1).randint
        channels[level], offsets[level] = draw(0, 2), (draw(-number, number), draw(-number, number))
    return {"bands": bands, "channel": channels, "offset": offsets}


_UNITS = {
    "bands": "pixels to the right, first row, rows; of 20 bands, of which those without rows do nothing",
    "channel": "the number of the displaced channel",
    "offset": "pixels: to the right, of its first row alone, and down",
}


@register(
    "digital",
    _sample,
    _UNITS,
    severity={"g": "half the bands"},
    padding=common.padding(_released),
    moves="rolls bands of rows and shifts one channel",
)
def glitched(image: Image, params: Params) -> Image:
    """Rolls bands of rows, each band over the ones before, shifts one channel, and blackens rows 0, 2, 4, ...

    Pixel (y, x) shows (y, x - o mod W), o the roll of the last band over row y, or 0. Channel c shows (y - dy mod H, x)
    of the clean image instead; its row dy mod H is also rolled by dx. Source: LAION-C, glitched (glitch-this 1.0.3).
    """
    height, width = padded.own_sides(image.shape, params)
    row, column = (jnp.arange(n, dtype=jnp.int32) for n in image.shape[:2])
    roll, start, rows = params["bands"].T
    over = (row[:, None] >= start[None]) & (row[:, None] < (start + rows)[None])
    last = jnp.max(jnp.where(over, jnp.arange(1, roll.size + 1)[None], 0), axis=1)
    shift = jnp.concatenate([jnp.zeros(1, roll.dtype), roll])[last]
    pixel = row[:, None] * image.shape[1] + (column[None] - shift[:, None]) % width
    rolled = jnp.take(image.reshape(-1, image.shape[2]), pixel.ravel(), axis=0, mode="clip").reshape(image.shape)
    right, down = params["offset"]
    shifted = jnp.take(image, (row - down) % height, axis=0, mode="clip")
    first = jnp.take(image[0], (column - right) % width, axis=0, mode="clip")
    shifted = jnp.where((row == down % height)[:, None, None], first[None], shifted)
    own = jnp.arange(image.shape[2]) == params["channel"]
    return jnp.where((row % 2 == 0)[:, None, None], 0.0, jnp.where(own[None, None], shifted, rolled))
