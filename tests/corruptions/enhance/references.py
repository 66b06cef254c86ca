"""The enhancements in NumPy, written apart from ours: loops over tiles, shifts and pixels."""

import itertools
import math

import numpy as np


def clipped(counts, limit):
    """Cut off, and given back in equal parts, the rest at equal distances."""
    excess = np.maximum(counts - limit, 0).sum()
    counts = np.minimum(counts, limit) + excess // 256
    rest = excess % 256
    if rest:
        counts[:: max(256 // rest, 1)][:rest] += 1
    return counts


def skimage_clahe(value):
    """scikit-image's `equalize_adapthist` of one 8-bit channel, in [0, 1]."""
    highest = 16383
    stretch = lambda x, top: (x - x.min()) / (x.max() - x.min()) * top if x.max() > x.min() else np.minimum(x, top)  # noqa: E731
    levels = np.rint(stretch(257.0 * value, highest)).astype(int)
    sides = [max(size // 8, 1) for size in value.shape]
    around = [(k // 2, (k - n % k) % k + math.ceil(k / 2)) for n, k in zip(value.shape, sides)]
    padded = np.pad(levels, around, mode="reflect") // 65
    (h, w), (rows, columns) = sides, [n // k - 1 for n, k in zip(padded.shape, sides)]
    tables = np.zeros((rows, columns, 256))
    for i, j in itertools.product(range(rows), range(columns)):
        tile = padded[h // 2 + i * h :, w // 2 + j * w :][:h, :w]
        counts = skimage_clipped(np.bincount(tile.ravel(), minlength=256), max(int(0.01 * h * w), 1))
        tables[i, j] = np.minimum(np.cumsum(counts) * highest // (h * w), highest)
    tables = np.pad(tables, ((1, 1), (1, 1), (0, 0)), mode="edge")
    out = np.empty(value.shape)
    for row, column in np.ndindex(value.shape):
        (i, v), (j, u) = divmod(row + h // 2, h), divmod(column + w // 2, w)
        level = padded[row + h // 2, column + w // 2]
        upper, lower = (tables[k, j, level] * (1 - u / w) + tables[k, j + 1, level] * (u / w) for k in (i, i + 1))
        out[row, column] = int(upper * (1 - v / h) + lower * (v / h))
    return stretch(out, 1.0)


def skimage_clipped(counts, limit):
    """Cut off, and given back so that no bin passes the limit."""
    total, counts = counts.sum(), np.minimum(counts, limit)
    part = (total - counts.sum()) // len(counts)
    counts = np.array([c + part if c < limit - part else c for c in counts])
    counts[counts >= limit - part] = limit
    left, start = total - counts.sum(), 0
    while left > 0:
        step = max(1, (counts < limit).sum() // left)
        for level in range(start, len(counts), step):
            if counts[level] < limit:
                counts[level] += 1
                left -= 1
        start = (start + 1) % len(counts)
    return counts


def noise(image):
    """Median of the finest diagonal wavelets, by the sums of their definition, float64."""
    taps = np.array([-0.48296291314469025, 0.836516303737469, -0.22414386804185735, -0.12940952255092145])

    def matrix(size):
        rows = np.zeros(((size + 3) // 2, size))
        for k, j in itertools.product(range(len(rows)), range(4)):
            place = 2 * k + 1 - j
            place = -1 - place if place < 0 else place
            rows[k, 2 * size - 1 - place if place >= size else place] += taps[j]
        return rows

    down, right = matrix(image.shape[0]), matrix(image.shape[1])
    bands = (down @ image[..., c].astype(float) @ right.T for c in range(image.shape[2]))
    return np.mean([np.median(np.abs(band[band != 0])) / 0.6744897501960817 for band in bands])


def non_local_means(image, h, patch, distance, sigma=0.0):
    """Computes in float64 by loops over pixels and shifts."""
    height, width, channels = image.shape
    o, d = patch // 2, distance
    padded = np.pad(image.astype(float), ((o + d,) * 2, (o + d,) * 2, (0, 0)), mode="reflect")
    out = np.zeros(image.shape)
    for y, x in np.ndindex(height, width):
        total = 0.0
        window = lambda i, j: padded[i + d + 1 : i + d + 1 + 2 * o, j + d + 1 : j + d + 1 + 2 * o]  # noqa: E731
        for down, right in itertools.product(range(-d, d + 1), repeat=2):
            squares = (window(y, x) - window(y + down, x + right)) ** 2 - 2 * sigma**2
            far = max(squares.sum(), 0) / (channels * h**2 * patch**2)
            weight = math.exp(-far) if far <= 5 else 0.0
            out[y, x] += weight * padded[y + o + d + down, x + o + d + right]
            total += weight
        out[y, x] /= total
    return out
