"""Defocus, Gaussian and zoom blur of ImageNet-C by SciPy, in float64, with the published levels."""

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


def zoomed(x, row):
    last, step, count = row
    factors = np.arange(1, last + step / 2, step)
    assert len(factors) == count
    layers = [x]
    for factor in factors:
        crops, trims = [], []
        for size in x.shape[:2]:
            crop = int(np.ceil(size / factor))
            crops.append(slice((size - crop) // 2, (size - crop) // 2 + crop))
        layer = ndimage.zoom(x[tuple(crops)], (factor, factor, 1), order=1)
        trims = [(a - b) // 2 for a, b in zip(layer.shape[:2], x.shape[:2], strict=True)]
        layers.append(layer[trims[0] :, trims[1] :][: x.shape[0], : x.shape[1]])
    return sum(layers) / len(layers)


CASES = {"defocus_blur": (defocused, DEFOCUS), "gaussian_blur": (smoothed, GAUSSIAN), "zoom_blur": (zoomed, ZOOM)}
