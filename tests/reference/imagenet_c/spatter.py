"""Spatter of ImageNet-C in NumPy and SciPy, stage by stage, with the published levels by image side.

The stages follow the documented algorithms of OpenCV (whose results they were once compared with, level by level).
"""

import numpy as np
from scipy import ndimage

# (mean, deviation, blur, threshold, gain or mud blur, mud) as published.
LEVELS = {
    32: ((.62, .1, .7, .7, .5, 0), (.65, .1, .8, .7, .5, 0), (.65, .3, 1, .69, .5, 0), (.65, .1, .7, .69, .6, 1), (.65, .1, .5, .68, .6, 1)),
    64: ((.62, .1, .7, .7, .6, 0), (.65, .1, .8, .7, .6, 0), (.65, .3, 1, .69, .6, 0), (.65, .1, .7, .68, .6, 1), (.65, .1, .5, .67, .6, 1)),
    224: ((.65, .3, 4, .69, .6, 0), (.65, .3, 3, .68, .6, 0), (.65, .3, 2, .68, .5, 0), (.65, .3, 1, .65, 1.5, 1), (.67, .4, 1, .65, 1.5, 1)),
    299: ((.65, .3, 4, .69, .9, 0), (.65, .3, 3.5, .68, .9, 0), (.65, .3, 3, .68, .8, 0), (.65, .3, 1.2, .65, 1.8, 1), (.67, .4, 1.2, .65, 1.8, 1)),
}  # fmt: skip
WATER, MUD = np.array([175, 238, 238]) / 255, np.array([63, 42, 20]) / 255


def liquid(noise, blur, threshold):
    layer = ndimage.gaussian_filter(noise.astype(np.float64), blur, mode="nearest", truncate=4.0)
    layer[layer < threshold] = 0
    return layer


def canny(levels, low, high):
    """Gradient, suppression and hysteresis one pixel at a time, as a textbook has it."""
    levels = levels.astype(np.int64)
    gx = ndimage.correlate(levels, np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]), mode="nearest")
    gy = ndimage.correlate(levels, np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]]), mode="nearest")
    magnitude = np.zeros(np.array(levels.shape) + 2, np.int64)
    magnitude[1:-1, 1:-1] = abs(gx) + abs(gy)
    kept = np.zeros(levels.shape, bool)
    for y, x in zip(*np.nonzero(magnitude[1:-1, 1:-1] > low)):
        here, a, b = magnitude[y + 1, x + 1], abs(gx[y, x]), abs(gy[y, x])
        if b * 2**15 < a * 13573:
            kept[y, x] = here > magnitude[y + 1, x] and here >= magnitude[y + 1, x + 2]
        elif b * 2**15 > a * (13573 + 2**16):
            kept[y, x] = here > magnitude[y, x + 1] and here >= magnitude[y + 2, x + 1]
        else:
            side = -1 if (gx[y, x] < 0) != (gy[y, x] < 0) else 1
            kept[y, x] = here > magnitude[y, x + 1 - side] and here > magnitude[y + 2, x + 1 + side]
    components, _ = ndimage.label(kept, np.ones((3, 3)))
    strong = np.unique(components[kept & (magnitude[1:-1, 1:-1] > high)])
    return np.isin(components, strong[strong > 0])


def chamfer(edges, sweeps=20):
    """Relaxation: every pixel takes the cheapest of 16 moves, again and again, in float32."""
    moves = [(y, x) for y in range(-2, 3) for x in range(-2, 3) if x * x + y * y in (1, 2, 5)]
    cost = {1: np.float32(1), 2: np.float32(1.4), 5: np.float32(2.1969)}
    height, width = edges.shape
    distance = np.where(edges, 0, np.inf).astype(np.float32)
    for _ in range(sweeps):
        padded = np.pad(distance, 2, constant_values=np.inf)
        for y, x in moves:
            moved = padded[2 + y : 2 + y + height, 2 + x : 2 + x + width] + cost[x * x + y * y]
            distance = np.minimum(distance, moved)
    return np.minimum(distance, np.float32(20))


def mean_of_nine(x):
    return ndimage.uniform_filter(x.astype(np.float64), 3, mode="mirror")


def floor_of_mean(distance):
    # The sum of nine in float64 is exact; the mean is stored in float32 before it is truncated.
    total = ndimage.correlate(distance.astype(np.float64), np.ones((3, 3)), mode="mirror")
    return (total * (1 / 9)).astype(np.float32).astype(np.uint8)


def equalize(levels):
    histogram = np.bincount(levels.ravel(), minlength=256)
    lowest = np.nonzero(histogram)[0][0]
    if histogram[lowest] == levels.size:
        return levels
    histogram[lowest] = 0
    scale = np.float32(255) / np.float32(levels.size - (levels == lowest).sum())
    return np.rint(np.cumsum(histogram).astype(np.float32) * scale).astype(np.uint8)[levels]


def sharpen(levels):
    kernel = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])
    sharp = np.clip(ndimage.correlate(levels.astype(np.int64), kernel, mode="mirror"), 0, 255)
    return np.rint(mean_of_nine(sharp)).astype(np.uint8)


def relief(drops):
    return sharpen(equalize(floor_of_mean(chamfer(canny(drops, 50, 150)))))


def water(image, layer, gain):
    drops = (layer * 255).astype(np.int64).astype(np.uint8)
    mask = drops.astype(np.float64) * relief(drops)
    mask = gain * mask / max(mask.max(), 1)
    return 255 * np.clip(image / 255 + mask[..., None] * WATER, 0, 1)


def mud(image, layer, sigma, threshold):
    mask = ndimage.gaussian_filter((layer > threshold).astype(np.float64), sigma, mode="nearest", truncate=4.0)
    mask[mask < 0.8] = 0
    mask = mask[..., None]
    return 255 * np.clip(image / 255 * (1 - mask) + mask * MUD, 0, 1)
