"""Corruptions made of squares: luminance_checkerboard, mosaic and stickers, square by square, with Pillow and SciPy."""

import functools

import numpy as np
import PIL.Image
from scipy import spatial

GRIDS = {"cifar": (16, 11, 8, 5, 3), "imagenet": (56, 112 / 3, 28, 14, 8)}


def luminance_checkerboard(image, params, severity):
    low, high = ((0, 50), (50, 100), (100, 125), (125, 150), (150, 255))[severity - 1]
    side = max(1, round(14 * min(image.shape[:2]) / 224))
    found, amplitude = image.astype(np.float64), np.float64(params["amplitude"])
    assert low <= amplitude.min() and amplitude.max() < high
    for i, row in enumerate(range(0, image.shape[0], side)):
        for j, column in enumerate(range(0, image.shape[1], side)):
            found[row : row + side, column : column + side] += (-1) ** (i + j) * amplitude[i, j]
    return np.clip(found, 0, 255)


def tile_of(image, side):
    """A square uint8 image as Pillow resizes it."""
    return np.asarray(PIL.Image.fromarray(image).resize((side, side), PIL.Image.BILINEAR))


def reduced(image, side):
    """uint8 [H, W, 3] to a pixel for each cell of a grid in the middle: Pillow's BICUBIC where cells fit, else its kernel
    pixel by pixel.
    """
    height, width, _ = image.shape
    if height % side == width % side == 0:
        return np.asarray(PIL.Image.fromarray(image).resize((width // side, height // side), PIL.Image.BICUBIC))
    for axis in (1, 0):
        size = image.shape[axis]
        number = int(np.ceil(size / side))
        first, cells = (number * side - size) // 2, []
        for k in range(number):
            x = np.abs((np.arange(size) + 0.5 + first) / side - (k + 0.5))
            weight = np.where(
                x < 1, 1.5 * x**3 - 2.5 * x**2 + 1, np.where(x < 2, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2, 0)
            )
            mean = np.tensordot(weight / weight.sum(), image.astype(np.float64), (0, axis))
            cells.append(np.clip(np.floor(mean + 0.5), 0, 255))
        image = np.stack(cells, axis)
    return image


class Bank:
    """Tiles of images uint8 [N, S, S, 3], and trees of their colours, by side."""

    def __init__(self, images):
        self.tiles = functools.cache(lambda side: np.stack([tile_of(one, side) for one in images]))
        self.tree = functools.cache(lambda side: spatial.cKDTree(self.tiles(side).mean((1, 2), dtype=np.float64)))


def mosaic(image, bank, params, severity):
    height, width, _ = image.shape
    grid = GRIDS["cifar" if min(height, width) <= 84 else "imagenet"][severity - 1]
    side = max(1, round(min(height, width) / grid))
    _, nearest = bank.tree(side).query(reduced(image, side))
    whole = np.concatenate([np.concatenate(list(bank.tiles(side)[row]), axis=1) for row in nearest], axis=0)
    top, left = ((n - size) // 2 for n, size in zip(whole.shape, image.shape[:2]))
    return whole[top : top + height, left : left + width]


def stickers(image, bank, params, severity):
    height, width, _ = image.shape
    side = max(1, round(16 * min(height, width) / 224))
    assert params["count"] == round((100, 200, 400, 600, 1200)[severity - 1] * height * width / min(height, width) ** 2)
    found, tiles = image.copy(), bank.tiles(side)
    for k in range(int(params["count"])):
        row, column = params["row"][k], params["column"][k]
        found[row : row + side, column : column + side] = tiles[params["tile"][k]]
    return found
