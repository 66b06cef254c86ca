"""One image file to one square uint8 image: resize the shorter side, crop the centre."""

import os
import struct
import zlib

import numpy as np

# What Pillow raises on files that are cut off, are no image, or claim absurd sizes.
_DAMAGED = (OSError, ValueError, SyntaxError, EOFError, struct.error, zlib.error)


def shorter_side(image_size: int) -> int:
    """Pixels of the shorter side before the crop: image_size * 256 / 224."""
    return round(image_size * 256 / 224)


def read(path: str | os.PathLike, image_size: int) -> np.ndarray | str:
    """uint8[image_size, image_size, 3], or "path (reason)" when the file is damaged.

    A string and not an exception, because one damaged file among a million is not worth stopping for.
    """
    from PIL import Image

    try:
        with Image.open(path) as image:
            return square(image, image_size)
    except (*_DAMAGED, Image.DecompressionBombError) as error:
        return f"{path} ({type(error).__name__}: {str(error)[:80]})"


def square(image, image_size: int) -> np.ndarray:
    """A Pillow image of any mode and size as uint8[image_size, image_size, 3].

    The shorter side becomes `shorter_side(image_size)`, the longer one keeps the proportion (rounded down), bilinear
    with antialiasing; then the centre is cut out. An alpha channel is dropped.
    """
    from PIL import Image

    image = image.convert("RGB")
    short = shorter_side(image_size)
    width, height = image.size
    width, height = width * short // min(image.size), height * short // min(image.size)
    left, top = round((width - image_size) / 2), round((height - image_size) / 2)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(image.crop((left, top, left + image_size, top + image_size)))
