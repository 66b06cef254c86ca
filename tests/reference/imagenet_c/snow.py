"""Snow of ImageNet-C in float64, layer by layer, with the published levels."""

import numpy as np

from tests.reference.imagenet_c.blur import clipped_zoom

# (mean, deviation, zoom, threshold, radius, sigma, mix) as published.
SMALL = (
    (0.1, 0.2, 1, 0.6, 8, 3),
    (0.1, 0.2, 1, 0.5, 10, 4),
    (0.15, 0.3, 1.75, 0.55, 10, 4),
    (0.25, 0.3, 2.25, 0.6, 12, 6),
    (0.3, 0.3, 1.25, 0.65, 14, 12),
)
LARGE = (
    (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
    (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
    (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
)
LEVELS = {
    32: tuple((*row, mix) for row, mix in zip(SMALL, (0.95, 0.9, 0.9, 0.85, 0.8))),
    64: tuple((*row, mix) for row, mix in zip(SMALL, (0.8, 0.8, 0.7, 0.65, 0.6))),
    224: LARGE,
    299: LARGE,
}


def reference_flakes(noise, factor, threshold):
    layer = clipped_zoom(noise, factor)
    layer[layer < threshold] = 0
    return np.floor(255 * np.clip(layer, 0, 1)).astype(int)


def reference_composite(image, streaks, mix):
    x = image / 255
    grey = x @ np.array([0.299, 0.587, 0.114])
    x = mix * x + (1 - mix) * np.maximum(x, grey[..., None] * 1.5 + 0.5)
    snow_layer = streaks[..., None] / 255
    return 255 * np.clip(x + snow_layer + np.rot90(snow_layer, 2), 0, 1)
