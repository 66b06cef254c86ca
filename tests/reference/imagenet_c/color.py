"""Brightness, contrast, saturation of ImageNet-C by the standard library, and published levels."""

import colorsys

import numpy as np

ADDED = {
    "cifar": (0.05, 0.1, 0.15, 0.2, 0.3),
    "tiny": (0.1, 0.2, 0.3, 0.4, 0.5),
    "imagenet": (0.1, 0.2, 0.3, 0.4, 0.5),
    "inception": (0.1, 0.2, 0.3, 0.4, 0.5),
}
GAIN = {
    "cifar": (0.75, 0.5, 0.4, 0.3, 0.15),
    "tiny": (0.4, 0.3, 0.2, 0.1, 0.05),
    "imagenet": (0.4, 0.3, 0.2, 0.1, 0.05),
    "inception": (0.4, 0.3, 0.2, 0.1, 0.05),
}
SATURATION = {
    "cifar": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    "tiny": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
    "imagenet": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
    "inception": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
}


def through_hsv(image, change):
    """Float64 levels after `change(h, s, v)` of every pixel, by the standard library."""
    pixels = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*rgb))) for rgb in (image / 255.0).reshape(-1, 3)]
    return 255 * np.clip(np.array(pixels).reshape(image.shape), 0, 1)


def brighter(image, added):
    return through_hsv(image, lambda h, s, v: (h, s, min(v + added, 1)))


def lower_contrast(image, gain):
    x = image / 255.0
    mean = x.mean((0, 1))
    return 255 * np.clip((x - mean) * gain + mean, 0, 1)


def saturated(image, parameters):
    factor, added = parameters
    return through_hsv(image, lambda h, s, v: (h, min(s * factor + added, 1), v))


CASES = {"brightness": (brighter, ADDED), "contrast": (lower_contrast, GAIN), "saturate": (saturated, SATURATION)}
