"""JPEG compression and pixelation of ImageNet-C by Pillow, with the published qualities and scales."""

import io

import numpy as np
from PIL import Image

QUALITIES = {
    "cifar": (80, 65, 58, 50, 40),
    "tiny": (65, 58, 50, 40, 25),
    "imagenet": (25, 18, 15, 10, 7),
    "inception": (23, 16, 13, 8, 5),
}
SCALES = {
    "cifar": (0.95, 0.9, 0.85, 0.75, 0.65),
    "tiny": (0.9, 0.8, 0.7, 0.6, 0.5),
    "imagenet": (0.6, 0.5, 0.4, 0.3, 0.25),
    "inception": (0.5, 0.4, 0.3, 0.25, 0.2),
}


def jpeg(image, quality):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


def pixelated(image, scale):
    height, width, _ = image.shape
    # In two calls, columns first: in one call Pillow 13 reduces the rows of very tall images first.
    narrow = Image.fromarray(image).resize((int(width * scale), height), Image.BOX)
    small = narrow.resize((int(width * scale), int(height * scale)), Image.BOX)
    return np.asarray(small.resize((width, height), Image.BOX))
