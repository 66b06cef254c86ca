"""From encoded images of any size to uint8 arrays of one size, by the published recipes."""

import io
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from corruptions.write import pixels

# What Pillow raises on files that are cut off or are no image.
_DAMAGED = (OSError, ValueError, SyntaxError, EOFError)


def _unchanged(image, size):
    del size
    return image


def shorter_side(size: int) -> int:
    """Computes the pixels of the shorter side before the centre of `size` is cut out: size * 256 /
    224.
    """
    return round(size * 256 / 224)


def centre(image: Any, size: int, short: int) -> Any:
    """Resizes the shorter side to `short` pixels, the longer one in proportion (rounded down), and
    cuts out the centre, size x size.
    """
    width, height = (side * short // min(image.size) for side in image.size)
    left, top = round((width - size) / 2), round((height - size) / 2)
    return pixels.resized(image, (width, height), (left, top, left + size, top + size))


def both_sides(image: Any, size: int) -> Any:
    """Resizes both sides to size, proportions not kept: Tiny-ImageNet-C, ImageNet-64x64-C."""
    return pixels.resized(image, (size, size))


def _imagenet(image, size):
    """The test images of ImageNet, hence ImageNet-C."""
    return centre(image, size, shorter_side(size))


def _inception(image, size):
    """The centre 87.5 % of each side, then both sides to size: ImageNet-C for Inception (299)."""
    width, height = (round(0.875 * side) for side in image.size)
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return pixels.resized(image.crop((left, top, left + width, top + height)), (size, size))


PREPROCESS = {"none": _unchanged, "imagenet": _imagenet, "resize": both_sides, "inception": _inception}


def get(name: str, size: int | None) -> Callable[[Any], Any]:
    """Returns the function image -> image, both of Pillow; bilinear with antialiasing where it
    resizes.

    Raises:
      ValueError: an unknown name, or a size that is missing, below 16, or given to `none`.
    """
    if name not in PREPROCESS:
        raise ValueError(f"expected a preprocess among {', '.join(PREPROCESS)}, found {name!r}")
    if name == "none" and size is not None:
        raise ValueError(f"expected no size with preprocess 'none', found {size}; 'resize' and 'imagenet' use it")
    if name != "none" and (size is None or size < 16):
        raise ValueError(f"expected a size of at least 16 pixels for preprocess {name!r}, found {size}")
    return lambda image: PREPROCESS[name](image, size)


def decode(file: str | os.PathLike | bytes, what: object, prepare: Callable[[Any], Any]) -> np.ndarray:
    """Decodes a path or encoded bytes to uint8[H, W, 3].

    Raises:
      ValueError: the file is damaged or no image; `what` names it.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(file) if isinstance(file, bytes) else file) as image:
            return np.asarray(pixels.rgb(prepare(image)))
    except (*_DAMAGED, Image.DecompressionBombError) as error:
        raise ValueError(f"{what} cannot be read as an image ({type(error).__name__}: {error})") from error
