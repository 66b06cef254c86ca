"""The blurs of the C-bar candidates by SciPy, in float64: 8-bit image and draws in, 8-bit image out."""

import numpy as np
import scipy.ndimage


def chromatic_aberration(image, p):
    return np.stack(
        [
            scipy.ndimage.shift(image[..., c], shift, order=3, mode="constant", prefilter=False)
            for c, shift in enumerate(np.float64(p["shifts"]))
        ],
        axis=-1,
    )


def transverse_chromatic_aberration(image, p):
    height, width = image.shape[:2]
    channels = []
    for c, (tall, wide) in enumerate(np.int64(p["sizes"])):
        factors = tall / height, wide / width
        enlarged = scipy.ndimage.zoom(image[..., c], factors, order=3, mode="constant", prefilter=False)
        assert enlarged.shape == (tall, wide)
        top, left = (tall - height) // 2, (wide - width) // 2
        channels.append(enlarged[top : top + height, left : left + width])
    return np.stack(channels, axis=-1)


def circular_motion_blur(image, p):
    turns = np.arange(-10, 11) / 10
    weights = np.exp(-2 * turns**2)
    total = sum(
        weight * scipy.ndimage.rotate(image / 255, turn * p["angle"], reshape=False, order=3, mode="constant")
        for turn, weight in zip(turns, weights, strict=True)
    )
    return np.clip(255 * total / weights.sum(), 0, 255).astype(np.uint8)
