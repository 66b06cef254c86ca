"""Corruptions made of squares: luminance_checkerboard, square by square, in float64."""

import numpy as np


def luminance_checkerboard(image, params, severity):
    """uint8 [H, W, 3] -> levels, float64 [H, W, 3]."""
    low, high = ((0, 50), (50, 100), (100, 125), (125, 150), (150, 255))[severity - 1]
    side = max(1, round(14 * min(image.shape[:2]) / 224))
    found, amplitude = image.astype(np.float64), np.float64(params["amplitude"])
    assert low <= amplitude.min() and amplitude.max() < high
    for i, row in enumerate(range(0, image.shape[0], side)):
        for j, column in enumerate(range(0, image.shape[1], side)):
            found[row : row + side, column : column + side] += (-1) ** (i + j) * amplitude[i, j]
    return np.clip(found, 0, 255)
