"""LAION-C luminance_checkerboard: squares in turn brighter and darker."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from corruptions.core.corruption import Image, Key, Params, Severity, Shape
from corruptions.core.severity import lookup
from corruptions.laion_c import common
from corruptions.laion_c.common import register, scale
from corruptions.primitives import color, padded, random

_AMPLITUDES = ((0, 50), (50, 100), (100, 125), (125, 150), (150, 255))
_BLOCK = 14


def _sample(key: Key, shape: Shape, severity: Severity) -> Params:
    """Draws the amplitude of each square, in levels: U[0, 50), U[50, 100), U[100, 125), U[125, 150), U[150, 255).

    The released code draws once for each pair of images, here each image has its own draw. Squares of 14 pixels are for
    224 and scale with min(H, W).
    """
    block = padded.tables(shape, None, _block)["block"][0]
    height, width = (-(-side // block) for side in padded.own(shape)[:2])
    if isinstance(shape, padded.Shape):  # its own size is traced: draw as many squares as fit at most
        board: tuple[int, ...] = padded.Shape(tuple(shape[:2]), (height, width))
    else:
        board = int(height), int(width)
    low, high = lookup(_AMPLITUDES, severity)
    return {"amplitude": random.uniform(key, board, low, high), "block": jnp.asarray(block, jnp.int32)}


def _block(shape: Sequence[int], table: str | None = None) -> dict[str, np.ndarray]:
    return {"block": np.full(1, max(1, round(_BLOCK * scale(shape))), np.int32)}


_UNITS = {"amplitude": "levels, by row and column of squares", "block": "pixels"}


@register("digital", _sample, _UNITS, severity={"low": "levels", "high": "levels"}, padding=common.padding(_block))
def luminance_checkerboard(image: Image, params: Params) -> Image:
    """Adds the amplitude a of its square to all channels where row plus column of the square is even, and subtracts it
    elsewhere: clip(x +- a / 255, 0, 1).

    Source: LAION-C, luminance_checkerboard.
    """
    row, column = (jnp.arange(side, dtype=jnp.int32) // params["block"] for side in image.shape[:2])
    change = jnp.take(jnp.take(params["amplitude"], row, axis=0, mode="clip"), column, axis=1, mode="clip")
    change = jnp.where((row[:, None] + column[None]) % 2 == 0, change, -change)
    return color.clip(image + change[..., None] / 255)
