"""Motion blur of ImageNet-C in float64, with ImageMagick's rounding, and the published levels."""

import math

import numpy as np

TABLES = {
    "cifar": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    "tiny": ((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
    "imagenet": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    "inception": ((12, 4), (17, 6), (17, 9), (17, 13), (22, 16)),
}


def imagemagick(image, radius, sigma, degrees):
    """Float64 reference, before and after the 16-bit rounding."""
    height, width = image.shape[:2]
    i = np.arange(2 * math.ceil(radius) + 1)
    weights = np.exp(-(i**2) / (2.0 * sigma**2))
    weights /= weights.sum()
    theta = np.deg2rad(degrees)
    rows, columns = np.ceil(i * np.sin(theta) - 0.5).astype(int), np.ceil(i * np.cos(theta) - 0.5).astype(int)
    y, x = np.mgrid[:height, :width]
    total = np.zeros(image.shape)
    for weight, dy, dx in zip(weights, rows, columns, strict=True):
        total += weight * image[np.clip(y + dy, 0, height - 1), np.clip(x + dx, 0, width - 1)]
    return np.floor(257 * total + 0.5) // 257
