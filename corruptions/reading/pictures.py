"""Image files of any mode and size as uint8 RGB arrays, by the published recipes, in bounded memory and time.

Every reader of this project decodes by this module. Pixels are taken as they are stored, as in ImageNet-C and torchvision: an
orientation in EXIF data is counted, and applied only on request (`Orientations`). Pillow itself turns TIFF files.

The colour of a pixel of each Pillow mode, red, green and blue from 0 to 255 (`rgb`):

    RGB, RGBX                      unchanged; X is dropped
    L, 1                           grey; in mode 1, 0 is black and 1 is white
    P                              its colour in the palette
    LA, PA, RGBA                   alpha is dropped: the colour, however transparent
    La, RGBa                       the colour before it was multiplied by alpha: 255 c / a, rounded down
    CMYK                           (255 - C) (255 - K) / 255 for red; green from M and blue from Y in the same way
    YCbCr                          as in JPEG (JFIF 1.02): R = Y + 1.402 (Cr - 128), ...
    HSV                            hue in 256ths of a turn
    LAB                            CIE L*a*b* under D50 to sRGB, by LittleCMS: within 6 levels of the formula
    I;16, I;16L, I;16B, I;16N, I   16-bit grey, v / 257 to the nearest level; in I, below 0 is 0, above 65535 is 65535
    F                              grey in levels from 0 to 255, to the nearest level, clipped; NaN is 0; without a value above 1 but
                                   for 0 alone, refused as a picture in [0, 1]

Where Pillow has a conversion, the colour is Pillow's. The exceptions: Pillow turns 16-bit values above 255
into white, and rounds floats down.
"""

import contextlib
import io
import logging
import math
import os
import struct
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

LOG = logging.getLogger("corruptions")

LARGE = 2**26
"""Pixels of a file above which it is reduced before anything else; photographs have fewer."""
KEEP = "keep"
"""In place of the size: every image keeps its own."""
WIDE = 2**24
"""Pixels of a resized image above which only the requested box is computed."""

_TILE = 2**11  # side in pixels of the tiles that are converted in turn
_CONVERTED = ("1", "L", "LA", "P", "PA", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV", "LAB")
_SIXTEEN_BITS = ("I", "I;16", "I;16L", "I;16B", "I;16N")
_ORIENTATION, _AS_STORED = 0x0112, (None, 1)  # the tag of EXIF, and its values that turn nothing
DAMAGED = (OSError, ValueError, SyntaxError, EOFError, struct.error, zlib.error)
"""Pillow's errors for truncated files and for files that are no images."""


class Orientations:
    """Counts the files whose EXIF data hold another orientation than the stored one, and turns them on request.

    Attributes:
      turn: whether images are turned.
      found: names of the files that hold one.
    """

    def __init__(self, turn: bool = False):
        self.turn = turn
        self.found: set[str] = set()

    def warn(self, where: object, option: str = "") -> None:
        """Logs a warning with the number of files that were not turned; `option` is what turns them."""
        if self.found and not self.turn:
            LOG.warning(
                "%s: EXIF data of %d files hold an orientation (the first: %s). Pixels are read as stored, as ImageNet-C "
                "and torchvision do%s",
                *(where, len(self.found), min(self.found), option and f"; {option} turns them"),
            )


def read_image(image: str | os.PathLike | bytes | BinaryIO | Any, *, turn: bool = False) -> np.ndarray:
    """Reads an image of any mode as uint8 [H, W, 3], at its own size. Needs Pillow.

    16-bit grey is divided by 257 and floats of mode F are levels from 0 to 255, where Pillow's `convert("RGB")` clips at 255;
    alpha is dropped. All readers of the library, such as `write.from_folder`, convert in this way.

    Args:
      image: a path, encoded bytes, an open file of them, or a Pillow image.
      turn: apply the orientation that EXIF data hold; by default pixels stay as stored, with a warning.

    Raises:
      ValueError: no image, a damaged one, or one of an unknown mode.
      TypeError: neither a path, bytes, a file nor a Pillow image.
    """
    if not isinstance(image, str | bytes | os.PathLike) and not (hasattr(image, "read") or hasattr(image, "mode")):
        raise TypeError(
            f"expected a path, encoded bytes, an open file or a Pillow image, found {type(image).__name__}; an array is an image "
            "already"
        )
    orientations = Orientations(turn)
    name = "the image" if isinstance(image, bytes) else getattr(image, "filename", None) or image
    pixels = decode(image, name, lambda picture: picture, orientations)
    orientations.warn(name, "turn=True")
    return pixels


def decode(
    file: str | os.PathLike | bytes | BinaryIO | Any,
    name: object,
    prepare: Callable[[Any], Any],
    orientations: Orientations | None = None,
) -> np.ndarray:
    """Decodes a path, encoded bytes, an open file of them or a Pillow image to uint8[H, W, 3].

    `prepare` is a function image -> image, both of Pillow, see `recipe`; `orientations` counts, and says whether to turn.
    Raises ValueError, with the name of the file, for a damaged file or no image.
    """
    from PIL import Image

    try:
        if isinstance(file, Image.Image):
            return _prepared(file, name, prepare, orientations)
        with Image.open(io.BytesIO(file) if isinstance(file, bytes) else file) as image:
            return _prepared(image, name, prepare, orientations)
    except (*DAMAGED, Image.DecompressionBombError) as error:
        raise ValueError(f"{name} cannot be read as an image ({type(error).__name__}: {error})") from error


def _prepared(image, name, prepare, orientations):
    if orientations is None:
        return np.asarray(rgb(prepare(image)))
    if orientations.turn:
        from PIL import ImageOps

        return np.asarray(rgb(prepare(ImageOps.exif_transpose(image))))
    pixels = np.asarray(rgb(prepare(image)))
    with contextlib.suppress(Exception):  # damaged EXIF data leave the pixels as they are
        if image.getexif().get(_ORIENTATION) not in _AS_STORED:  # read after the pixels: in PNG it may follow them
            orientations.found.add(str(name))
    return pixels


def recipe(name: str, size: int | str | None) -> Callable[[Any], Any]:
    """Returns a preprocessing function image -> image, both of Pillow; it resizes bilinearly with antialiasing.

    Raises ValueError for an unknown name, or a size that is missing, below 16, or, unless it is `KEEP`, combined with
    `none`.
    """
    if name not in RECIPES:
        raise ValueError(f"expected a preprocess among {', '.join(RECIPES)}, found {name!r}")
    if name == "none" and size not in (None, KEEP):
        raise ValueError(
            f"expected no size, or 'keep', with preprocess 'none', found {size}; 'resize' and 'imagenet' use it"
        )
    if name != "none" and not (isinstance(size, int) and size >= 16):
        raise ValueError(f"expected a size of at least 16 pixels for preprocess {name!r}, found {size!r}")
    return lambda image: RECIPES[name](image, size)


def shorter_side(size: int) -> int:
    """Computes the shorter side in pixels before the centre of side `size` is cut out: size * 256 / 224."""
    return round(size * 256 / 224)


def centre(image: Any, size: int, short: int) -> Any:
    """Resizes the shorter side to `short` pixels and cuts out the centre, size x size.

    The longer side is resized in proportion, rounded down.
    """
    width, height = (side * short // min(image.size) for side in image.size)
    left, top = round((width - size) / 2), round((height - size) / 2)
    return resized(image, (width, height), (left, top, left + size, top + size))


def both_sides(image: Any, size: int) -> Any:
    """Resizes both sides to `size` and changes the proportions, as in Tiny-ImageNet-C and ImageNet-64x64-C."""
    return resized(image, (size, size))


def _inception(image, size):
    """The centre, 87.5 % of each side, resized to `size`: ImageNet-C for Inception (299)."""
    width, height = (round(0.875 * side) for side in image.size)
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return resized(image.crop((left, top, left + width, top + height)), (size, size))


RECIPES = {
    "none": lambda image, size: image,
    "imagenet": lambda image, size: centre(image, size, shorter_side(size)),
    "resize": both_sides,
    "inception": _inception,
}


def rgb(image: Any) -> Any:
    """Converts an image to mode RGB by the table of this module, which has all modes but those of a ValueError."""
    if image.mode == "RGB":
        return image
    if image.mode == "F":
        levels = np.nan_to_num(np.asarray(image), nan=0)
        if levels.any() and levels.max() <= 1:
            raise ValueError(
                f"expected levels from 0 to 255 in mode F, found values from {levels.min():g} to {levels.max():g}, which would be "
                "black; multiply them by 255"
            )
        return _grey(np.rint(np.clip(levels, 0, 255)))
    if image.mode in _SIXTEEN_BITS:
        return _grey((np.clip(np.asarray(image), 0, 65535).astype(np.uint32) + 128) // 257)
    if image.mode == "La":  # Pillow has no direct conversion
        return image.convert("LA").convert("RGB")
    if image.mode not in _CONVERTED:
        modes = ", ".join(("RGB", *_CONVERTED, "La", *_SIXTEEN_BITS, "F"))
        raise ValueError(f"expected an image of a mode among {modes}, found {image.mode}")
    return image.convert("RGB")


def resized(image: Any, size: tuple[int, int], box: tuple[int, int, int, int] | None = None) -> Any:
    """Resizes an image bilinearly with antialiasing and cuts a box out of the result; in RGB.

    Images up to `LARGE` pixels with a result up to `WIDE` pixels are resized as a whole and then cut. That
    covers all photographs of ImageNet, and images up to 256 times as long as wide that are resized to 256
    pixels. For larger images only the pixels behind the box are converted; where they are more than twice as
    many as requested along a side, whole factors of them are averaged first, and a large JPEG is decoded at
    1/2, 1/4 or 1/8 of its size. The colours then differ from a whole resize by a few levels at most. Memory
    stays below the size of the file's own pixels, at most Pillow's limit of 179 million, and some 200 MB.

    `image` is decoded or still to be decoded, `size` (width, height) of the resized whole, and `box` (left, top, right,
    bottom) in it; None is all of it.
    """
    from PIL import Image

    box = (0, 0, *size) if box is None else box
    if math.prod(image.size) <= LARGE and math.prod(size) <= WIDE:
        return rgb(image).resize(size, Image.Resampling.BILINEAR).crop(box)
    shape = (box[2] - box[0], box[3] - box[1])
    if image.format in ("JPEG", "MPO"):
        image.draft(None, (2 * size[0], 2 * size[1]))
    scale = (image.width / size[0], image.height / size[1])
    behind = [side * scale[i % 2] for i, side in enumerate(box)]
    # The triangle filter reaches one pixel of the result beyond the centre of a pixel.
    region = (
        *(max(0, math.floor(behind[i] - scale[i]) - 1) for i in (0, 1)),
        *(min(image.size[i], math.ceil(behind[2 + i] + scale[i]) + 1) for i in (0, 1)),
    )
    factors = tuple(max(1, math.floor(scale[i] / 2)) for i in (0, 1))
    small = _reduced(image, region, factors)
    within = [(side - region[i % 2]) / factors[i % 2] for i, side in enumerate(behind)]
    within = [*(max(0.0, side) for side in within[:2]), *(min(within[2 + i], small.size[i]) for i in (0, 1))]
    return small.resize(shape, Image.Resampling.BILINEAR, box=tuple(within))


def _reduced(image, region, factors):
    """Averages `factors` (x, y) pixels in a region of an image, in RGB, tile by tile."""
    from PIL import Image

    left, top, right, bottom = region
    small = Image.new("RGB", (-(-(right - left) // factors[0]), -(-(bottom - top) // factors[1])))
    columns, rows = (max(1, _TILE // factor) * factor for factor in factors)
    for y in range(top, bottom, rows):
        for x in range(left, right, columns):
            tile = rgb(image.crop((x, y, min(x + columns, right), min(y + rows, bottom))))
            small.paste(tile.reduce(factors), ((x - left) // factors[0], (y - top) // factors[1]))
    return small


def _grey(levels):
    from PIL import Image

    return Image.fromarray(levels.astype(np.uint8)).convert("RGB")
