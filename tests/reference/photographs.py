"""Procedural photographs: smooth colours, textured surfaces and sharp edges, drawn from a seed."""

import numpy as np


def photograph(height, width, seed=0):
    """Draws uint8 [height, width, 3], levels over most of the range; another seed, another scene."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    scene = np.full((height, width, 3), rng.uniform(0.2, 0.6, 3))
    for _ in range(6):
        fy, fx, phase = [*rng.normal(0, 3, 2), rng.uniform(0, 6.3)]
        scene += np.cos(2 * np.pi * (fy * y + fx * x) + phase)[..., None] * rng.uniform(-0.08, 0.08, 3)
    for _ in range(5):
        cy, cx, radius = [*rng.uniform(0, 1, 2), rng.uniform(0.05, 0.3)]
        inside = (abs(y - cy) + abs(x - cx) < radius) if rng.random() < 0.5 else (np.hypot(y - cy, x - cx) < radius)
        scene[inside] = 0.4 * scene[inside] + 0.6 * rng.uniform(0, 1, 3)
    scene += rng.normal(0, 0.02, scene.shape)
    return np.clip(np.round(scene * 255), 0, 255).astype(np.uint8)


def photographs(number, height, width):
    """Draws uint8 [number, height, width, 3], a different scene each."""
    return np.stack([photograph(height, width, seed) for seed in range(number)])


def scene(height, width, seed=4):
    """Draws a photograph with black, grey, white and primary pixels, and almost-greys."""
    image = photograph(height, width, seed)
    image[0] = np.arange(width)[:, None] * 255 // width
    image[1, :8] = [[0, 0, 0], [255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0], [1, 0, 0], [0, 0, 1], [255] * 3]
    image[2] = np.arange(width)[:, None] * 223 // width + np.array([0, 1, 0])
    image[3:5], image[-2:] = 255, 0
    return image


def crops(number, side=32):
    """Cuts squares at random places of 64 photographs, uint8 [number, side, side, 3]: a bank of tiles."""
    whole, rng = photographs(64, 128, 128), np.random.default_rng(0)
    places = rng.integers(0, 129 - side, (number, 2))
    return np.stack([whole[k % 64, y : y + side, x : x + side] for k, (y, x) in enumerate(places)])
