"""Pictures and severities at the edges of what they can be."""

import numpy as np

import corruptions
from tests.reference.photographs import photograph

BATCH = 20


def pictures(height, width, rng):
    """Twenty pictures at the edges of what an image can be, uint8 [20, height, width, 3]."""
    shape = (height, width, 3)

    def constant(*color):
        return np.broadcast_to(np.array(color, np.uint8), shape)

    def spotted(ground, value, channel=slice(None)):
        image = np.full(shape, ground, np.uint8)
        image[rng.integers(height), rng.integers(width), channel] = value
        return image

    y, x = np.mgrid[0:height, 0:width]
    return np.stack([
        constant(0, 0, 0), constant(255, 255, 255), constant(1, 1, 1), constant(254, 254, 254), constant(128, 128, 128),
        constant(255, 0, 0), constant(0, 255, 0), constant(0, 0, 255), constant(0, 255, 255), constant(255, 255, 0),
        spotted(0, 255), spotted(255, 0), spotted(0, 1), spotted(0, 255, 2),
        rng.integers(0, 256, shape, np.uint8), rng.integers(0, 2, shape, np.uint8) * np.uint8(255),
        np.where(((y + x) % 2)[..., None], constant(255, 255, 255), constant(0, 0, 0)),
        np.where((x < width // 2)[..., None], constant(255, 0, 255), constant(0, 255, 0)),
        np.repeat(np.uint8(255 * y / (height - 1))[..., None], 3, -1),
        photograph(height, width, int(rng.integers(1000))),
    ])  # fmt: skip


def draw_severities(scale, number, rng):
    """Severities of a batch, float32 [number]: the ends of the scale, its levels, and values in between."""
    if isinstance(scale, corruptions.Levels):
        several = rng.uniform(1, scale.count, number)
        return np.where(rng.random(number) < 0.6, np.round(several), several).astype(np.float32)
    return rng.choice([0.0, 1.0, *rng.random(3)], number).astype(np.float32)
