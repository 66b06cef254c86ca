"""The blurs of ImageNet-C in float64, with the published levels: by SciPy, as ImageMagick's sum, as loops over pixels."""

import numpy as np
from scipy import ndimage

DEFOCUS = {
    "cifar": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    "tiny": ((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
    "imagenet": ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    "inception": ((4, 0.1), (5, 0.5), (7, 0.5), (10, 0.5), (12, 0.5)),
}
GAUSSIAN = {
    "cifar": (0.4, 0.6, 0.7, 0.8, 1),
    "tiny": (0.5, 0.75, 1, 1.25, 1.5),
    "imagenet": (1, 2, 3, 4, 6),
    "inception": (1.5, 2.5, 3.5, 4.5, 6.5),
}
# Last factor, step and number of factors.
SMALL = ((1.06, 0.01, 7), (1.11, 0.01, 12), (1.15, 0.01, 16), (1.20, 0.01, 21), (1.25, 0.01, 26))
LARGE = ((1.11, 0.01, 12), (1.15, 0.01, 16), (1.20, 0.02, 11), (1.24, 0.02, 13), (1.30, 0.03, 11))
ZOOM = {"cifar": SMALL, "tiny": SMALL, "imagenet": LARGE, "inception": LARGE}
MOTION = {
    "cifar": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    "tiny": ((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
    "imagenet": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    "inception": ((12, 4), (17, 6), (17, 9), (17, 13), (22, 16)),
}
GLASS = {
    "cifar": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    "tiny": ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
    "imagenet": ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    "inception": ((0.8, 1, 3), (1, 3, 1), (1.1, 2, 4), (1.2, 4, 2), (1.6, 5, 2)),
}


def disk(radius, alias):
    """Makes the original's kernel from its description, anti-aliased by SciPy's filter."""
    reach = 8 if radius <= 8 else radius
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    kernel = (x**2 + y**2 <= radius**2).astype(float)
    kernel /= kernel.sum()
    t = np.arange(-1, 2) if radius <= 8 else np.arange(-2, 3)
    taps = np.exp(-0.5 * (t / alias) ** 2)
    taps /= taps.sum()
    return ndimage.correlate1d(ndimage.correlate1d(kernel, taps, 0, mode="mirror"), taps, 1, mode="mirror")


def defocused(x, row):
    kernel = disk(*row)
    return np.stack([ndimage.correlate(x[..., c], kernel, mode="mirror") for c in range(3)], -1)


def smoothed(x, sigma):
    return ndimage.gaussian_filter(x, (sigma, sigma, 0), mode="nearest", truncate=4.0)


def clipped_zoom(x, factor):
    """Crops the centre, zooms it linearly, trims it; images need not be square, and may have channels."""
    crops = [int(np.ceil(size / factor)) for size in x.shape[:2]]
    middle = tuple(slice((n - k) // 2, (n - k) // 2 + k) for n, k in zip(x.shape, crops))
    layer = ndimage.zoom(x[middle], (factor, factor, 1)[: x.ndim], order=1)
    top, left = ((a - b) // 2 for a, b in zip(layer.shape[:2], x.shape))
    return layer[top : top + x.shape[0], left : left + x.shape[1]]


def zoomed(x, row):
    last, step, count = row
    factors = np.arange(1, last + step / 2, step)
    assert len(factors) == count
    return (x + sum(clipped_zoom(x, factor) for factor in factors)) / (count + 1)


CASES = {"defocus_blur": (defocused, DEFOCUS), "gaussian_blur": (smoothed, GAUSSIAN), "zoom_blur": (zoomed, ZOOM)}


def imagemagick(image, radius, sigma, degrees):
    """ImageMagick's one-sided motion blur of levels [H, W] or [H, W, C], rounded to 16 bits and cut to 8."""
    height, width = image.shape[:2]
    i = np.arange(2 * int(np.ceil(radius)) + 1)
    weights = np.exp(-(i**2) / (2.0 * sigma**2))
    weights /= weights.sum()
    theta = np.deg2rad(degrees)
    rows, columns = np.ceil(i * np.sin(theta) - 0.5).astype(int), np.ceil(i * np.cos(theta) - 0.5).astype(int)
    y, x = np.mgrid[:height, :width]
    total = np.zeros(image.shape)
    for weight, dy, dx in zip(weights, rows, columns, strict=True):
        total += weight * image[np.clip(y + dy, 0, height - 1), np.clip(x + dx, 0, width - 1)]
    return np.floor(257 * total + 0.5) // 257


def scrambled(pixels, shifts, reach):
    """The original's double loop, its swap of array views included."""
    x = pixels.copy()
    height, width = x.shape[:2]
    for h in range(height - reach, reach, -1):
        for w in range(width - reach, reach, -1):
            dy, dx = shifts[:, h, w]
            h_prime, w_prime = h + dy, w + dx
            # Both sides are views of one array: this copies, it does not swap.
            x[h, w], x[h_prime, w_prime] = x[h_prime, w_prime], x[h, w]
    return x


def glass(image, row, shifts):
    """Float64 levels of the whole corruption with given shifts [passes, 2, H, W]."""
    sigma, reach, passes = row
    pixels = np.uint8(smoothed(image / 255.0, sigma) * 255)
    for i in range(passes):
        pixels = scrambled(pixels, shifts[i], reach)
    return 255 * np.clip(smoothed(pixels / 255.0, sigma), 0, 1)
