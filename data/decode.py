"""One image file to one square uint8 image: resize the shorter side, crop the centre."""

import os
import struct
import zlib
from typing import BinaryIO

import numpy as np

# What Pillow raises on files that are cut off, are no image, or claim absurd sizes.
DAMAGED = (OSError, ValueError, SyntaxError, EOFError, struct.error, zlib.error)


def shorter_side(image_size: int) -> int:
    """Pixels of the shorter side before the crop: image_size * 256 / 224."""
    return round(image_size * 256 / 224)


def sides(image_size: int, train_size: int | None = None) -> dict[str, tuple[int, int]]:
    """(side, shorter side before the crop) in pixels of the images of each split.

    Raises:
      ValueError: a size is below 1, or training images are smaller than those for testing.
    """
    if image_size < 1:
        raise ValueError(f"expected image_size >= 1, found {image_size}")
    usual = (image_size, shorter_side(image_size))
    if train_size in (None, image_size):
        return {"train": usual, "test": usual}
    if train_size < image_size:
        raise ValueError(f"expected train_size of at least image_size {image_size}, found {train_size}")
    return {"train": (train_size, train_size), "test": usual}


def description(sides: dict[str, tuple[int, int]]) -> str:
    """What was done to the images, for people."""
    parts = {split: f"shorter side {short}, centre crop {size}" for split, (size, short) in sides.items()}
    same = parts["train"] == parts["test"]
    both = parts["test"] if same else f"train: {parts['train']}; test: {parts['test']}"
    return f"{both}, bilinear (Pillow)"


def read(
    file: str | os.PathLike | BinaryIO, image_size: int, short: int | None = None, name: str | None = None
) -> np.ndarray | str:
    """uint8[image_size, image_size, 3], or "name (reason)" when the file is damaged.

    A string and not an exception, because one damaged file among a million is not worth stopping for.

    Args:
      file: a path, or an open file of encoded bytes.
      image_size: side of the result in pixels.
      short: see `square`.
      name: of the file in messages; None is its path.
    """
    from PIL import Image

    try:
        with Image.open(file) as image:
            return square(image, image_size, short)
    except (*DAMAGED, Image.DecompressionBombError) as error:
        return f"{name or file} ({type(error).__name__}: {str(error)[:80]})"


def square(image, image_size: int, short: int | None = None) -> np.ndarray:
    """A Pillow image of any mode and size as uint8[image_size, image_size, 3].

    The shorter side becomes `short` pixels (None: `shorter_side(image_size)`), the longer one keeps the proportion
    (rounded down), bilinear with antialiasing; then the centre is cut out. An alpha channel is dropped.
    """
    from PIL import Image

    image = image.convert("RGB")
    short = shorter_side(image_size) if short is None else short
    width, height = image.size
    width, height = width * short // min(image.size), height * short // min(image.size)
    left, top = round((width - image_size) / 2), round((height - image_size) / 2)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(image.crop((left, top, left + image_size, top + image_size)))
