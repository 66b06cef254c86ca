"""JPEG compression of ImageNet-C by Pillow, with the published qualities."""

import io

import numpy as np
from PIL import Image

QUALITIES = {
    "cifar": (80, 65, 58, 50, 40),
    "tiny": (65, 58, 50, 40, 25),
    "imagenet": (25, 18, 15, 10, 7),
    "inception": (23, 16, 13, 8, 5),
}


def pillow(image, quality):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))
