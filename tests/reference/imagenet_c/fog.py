"""Fog of ImageNet-C in float64: the diamond-square fractal in place, and the published levels."""

import numpy as np

# Sides and levels of the four tables: (table, side, map side, strengths, decays).
TABLES = [
    ("cifar", 32, 32, (0.2, 0.5, 0.75, 1, 1.5), (3, 3, 2.5, 2, 1.75)),
    ("tiny", 64, 64, (0.4, 0.7, 1, 1.5, 2), (3, 3, 2.5, 2, 1.75)),
    ("imagenet", 224, 256, (1.5, 2, 2.5, 2.5, 3), (2, 2, 1.7, 1.5, 1.4)),
    ("inception", 299, 512, (1.5, 2, 2.5, 2.5, 3), (2, 2, 1.8, 1.6, 1.5)),
]


def reference_map(side, decay, stream):
    """Makes the fractal in float64, in steps of side, side/2, ...; `stream` yields U(-1, 1)."""
    grid = np.zeros((side, side))
    step, wibble = side, 100.0
    while step >= 2:
        half, n = step // 2, side // step

        def moved(mean, wibble=wibble, n=n):
            return mean + wibble * wibble * stream(n * n).reshape(n, n)

        corner = grid[::step, ::step]
        square = corner + np.roll(corner, -1, 0)
        square = square + np.roll(square, -1, 1)
        grid[half::step, half::step] = moved(square / 4)
        centre, corner = grid[half::step, half::step], grid[::step, ::step]
        above = centre + np.roll(centre, 1, 0) + corner + np.roll(corner, -1, 1)
        grid[::step, half::step] = moved(above / 4)
        beside = centre + np.roll(centre, 1, 1) + corner + np.roll(corner, -1, 0)
        grid[half::step, ::step] = moved(beside / 4)
        step, wibble = half, wibble / decay
    return grid


def reference_fog(image, strength, decay, side, uniforms):
    position = iter(np.split(uniforms, np.cumsum([n for k in range(side.bit_length() - 1) for n in [4**k] * 3])))
    grid = reference_map(side, decay, lambda count: next(position))
    thickness = (grid - grid.min()) / np.ptp(grid)
    x = image / 255.0
    x_fog = x + strength * thickness[: image.shape[0], : image.shape[1], None]
    return 255 * np.clip(x_fog * x.max() / (x.max() + strength), 0, 1)
