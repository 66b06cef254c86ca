"""LAION-C in NumPy, with Pillow's shapes, lines and filters and SciPy's search for the nearest tile."""

from collections.abc import Callable

import numpy as np

from tests.reference.laion_c import blocks, glitch, lines, shapes


def definition(name: str, bank: np.ndarray) -> Callable:
    """Finds a definition: (uint8 image, draws, severity) -> levels; `bank` holds the tiles of mosaic and stickers."""
    if name in ("mosaic", "stickers"):
        tiles = blocks.Bank(bank)
        return lambda image, params, severity: getattr(blocks, name)(image, tiles, params, severity)
    of = {"glitched": glitch, "vertical_lines": lines, "geometric_shapes": shapes}
    return of[name].reference if name in of else getattr(blocks, name)
