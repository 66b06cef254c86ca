"""Glass blur of ImageNet-C as its double loop over pixels, with the published levels."""

import numpy as np
from scipy import ndimage

TABLES = {
    "cifar": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    "tiny": ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
    "imagenet": ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    "inception": ((0.8, 1, 3), (1, 3, 1), (1.1, 2, 4), (1.2, 4, 2), (1.6, 5, 2)),
}


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


def reference(image, row, shifts):
    """Float64 levels of the whole corruption with given shifts [passes, 2, H, W]."""
    sigma, reach, passes = row

    def smooth(x):
        return ndimage.gaussian_filter(x, (sigma, sigma, 0), mode="nearest", truncate=4.0)

    pixels = np.uint8(smooth(image / 255.0) * 255)
    for i in range(passes):
        pixels = scrambled(pixels, shifts[i], reach)
    return 255 * np.clip(smooth(pixels / 255.0), 0, 1)
