"""Decodes one image file to a square of uint8: the shorter side resized and the centre cropped, or both sides resized."""

import os
from typing import BinaryIO

import numpy as np

from corruptions.reading import pictures

RESIZE = ("crop", "squash")
"""Ways to a square: the shorter side, then the centre; or both sides, proportions not kept."""
BOTH = 0
"""In place of the shorter side before the crop: both sides become the side of the square."""


def sides(image_size: int, train_size: int | None = None, resize: str = "crop") -> dict[str, tuple[int, int]]:
    """Returns {split: (side, shorter side before the crop)} in pixels; (side, `BOTH`) where `resize` is `squash`.

    Raises ValueError for a size below 1, training images smaller than test images, or a `resize` that is not in
    `RESIZE`.
    """
    if resize not in RESIZE:
        raise ValueError(f"expected resize {' or '.join(map(repr, RESIZE))}, found {resize!r}")
    if image_size < 1:
        raise ValueError(f"expected image_size >= 1, found {image_size}")
    squash = resize == "squash"
    usual = (image_size, BOTH if squash else pictures.shorter_side(image_size))
    if train_size in (None, image_size):
        return {"train": usual, "test": usual}
    if train_size < image_size:
        raise ValueError(f"expected train_size of at least image_size {image_size}, found {train_size}")
    return {"train": (train_size, BOTH if squash else train_size), "test": usual}


def description(sides: dict[str, tuple[int, int]]) -> str:
    """Describes the preprocessing in words."""
    parts = {
        split: f"both sides {size}" if short == BOTH else f"shorter side {short}, centre crop {size}"
        for split, (size, short) in sides.items()
    }
    same = parts["train"] == parts["test"]
    both = parts["test"] if same else f"train: {parts['train']}; test: {parts['test']}"
    return f"{both}, bilinear (Pillow)"


def read(
    file: str | os.PathLike | BinaryIO,
    image_size: int,
    short: int | None = None,
    name: str | None = None,
    border: int = 0,
    orientations: pictures.Orientations | None = None,
) -> np.ndarray | str:
    """Decodes a path, or an open file of encoded bytes, to uint8[image_size, image_size, 3].

    Returns "name (reason)" when it is damaged: one damaged file among a million is no reason to stop. `short` as of `square`;
    `name` is the file's name in messages, None its path; `border` pixels are cut off on every side first; `orientations`
    counts the files with an orientation.
    """
    what = printable(name or file)
    if what != str(name or file):
        return f"{what} (its name is not valid UTF-8)"

    def prepare(image):
        inside = (border, border, image.width - border, image.height - border)
        return _squared(image.crop(inside) if border else image, image_size, short)

    try:
        return pictures.decode(file, what, prepare, orientations)
    except ValueError as error:
        cause = error.__cause__ or error
        return f"{what} ({type(cause).__name__}: {printable(cause)[:80]})"


def printable(name: object) -> str:
    """Makes a file's name printable: bytes that are not UTF-8 become `\\udce9`."""
    return str(name).encode("utf-8", "backslashreplace").decode()


def square(image, image_size: int, short: int | None = None) -> np.ndarray:
    """Converts a Pillow image of any mode and size to uint8[image_size, image_size, 3].

    The shorter side becomes `short` pixels (None: image_size * 256 / 224), the longer one keeps the proportion (rounded
    down), bilinear with antialiasing; then the centre is cut out. With `BOTH` as `short`, both sides become image_size.
    `corruptions.reading.pictures` has the colours of each mode and the bound on memory.
    """
    return np.asarray(_squared(image, image_size, short))


def _squared(image, image_size, short):
    if short == BOTH:
        return pictures.both_sides(image, image_size)
    return pictures.centre(image, image_size, pictures.shorter_side(image_size) if short is None else short)
