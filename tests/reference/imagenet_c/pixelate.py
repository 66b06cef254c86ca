"""Pixelation of ImageNet-C by Pillow, with the published scales."""

import numpy as np
from PIL import Image

SCALES = {
    "cifar": (0.95, 0.9, 0.85, 0.75, 0.65),
    "tiny": (0.9, 0.8, 0.7, 0.6, 0.5),
    "imagenet": (0.6, 0.5, 0.4, 0.3, 0.25),
    "inception": (0.5, 0.4, 0.3, 0.25, 0.2),
}


def pillow(image, scale):
    height, width, _ = image.shape
    # In two calls, columns first: in one call Pillow 13 reduces the rows of very tall images first.
    narrow = Image.fromarray(image).resize((int(width * scale), height), Image.BOX)
    small = narrow.resize((int(width * scale), int(height * scale)), Image.BOX)
    return np.asarray(small.resize((width, height), Image.BOX))
