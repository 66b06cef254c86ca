"""Pillow images of any mode and any size as RGB, in bounded memory and time.

Which colour a pixel of each mode is, red, green and blue from 0 to 255 (`rgb`):

    RGB, RGBX                      as it is; X is dropped
    L, 1                           grey; of 1, 0 is black and 1 is white
    P                              its colour in the palette
    LA, PA, RGBA                   alpha is dropped: the colour, however transparent
    La, RGBa                       the colour before it was multiplied by alpha: 255 c / a, rounded down
    CMYK                           (255 - C) (255 - K) / 255, and so of M and Y
    YCbCr                          of JPEG (JFIF 1.02): R = Y + 1.402 (Cr - 128), ...
    HSV                            hue in 256ths of a turn
    LAB                            CIE L*a*b* under D50 to sRGB, by LittleCMS: within 6 levels of the formula
    I;16, I;16L, I;16B, I;16N, I   grey of 16 bits, v / 257 to the nearest level; of I, below 0 is 0, above 65535 is 65535
    F                              grey in levels from 0 to 255, to the nearest level; beyond is cut off, NaN is 0

Where Pillow has a conversion it is Pillow's, but of 16 bits it would take all above 255 for white,
and of floats round down.
"""

import math
from typing import Any

import numpy as np

LARGE = 2**26
"""Pixels of a file above which it is made smaller before anything else; photographs have fewer."""
WIDE = 2**24
"""Pixels of a resized image above which no more of it is computed than is asked for."""

_TILE = 2**11  # pixels of a side of what is converted at a time, about
_CONVERTED = ("1", "L", "LA", "P", "PA", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV", "LAB")
_SIXTEEN_BITS = ("I", "I;16", "I;16L", "I;16B", "I;16N")


def rgb(image: Any) -> Any:
    """Converts an image to mode RGB, as the module says; one that is RGB is returned itself.

    Raises:
      ValueError: of another mode.
    """
    if image.mode == "RGB":
        return image
    if image.mode == "F":
        return _grey(np.rint(np.clip(np.nan_to_num(np.asarray(image), nan=0), 0, 255)))
    if image.mode in _SIXTEEN_BITS:
        return _grey((np.clip(np.asarray(image), 0, 65535).astype(np.uint32) + 128) // 257)
    if image.mode == "La":  # Pillow knows no shorter way
        return image.convert("LA").convert("RGB")
    if image.mode not in _CONVERTED:
        modes = ", ".join(("RGB", *_CONVERTED, "La", *_SIXTEEN_BITS, "F"))
        raise ValueError(f"expected an image of a mode among {modes}, found {image.mode}")
    return image.convert("RGB")


def resized(image: Any, size: tuple[int, int], box: tuple[int, int, int, int] | None = None) -> Any:
    """Resizes an image, bilinear with antialiasing, and cuts a box out of the result; in RGB.

    Files up to `LARGE` pixels whose result has up to `WIDE` are resized as a whole and then cut:
    all the photographs of ImageNet, and what is no more than 256 times as long as it is wide,
    resized to 256 pixels. Of others only the pixels behind the box are converted; more than twice
    as many of them as asked for are averaged to that by whole factors first, and a large JPEG is
    decoded at 1/2, 1/4 or 1/8 of its size. Colours then differ by a few levels at most from those
    of the whole. So memory stays below that of the file's own pixels, at most Pillow's limit of 179
    million, and some 200 MB.

    Args:
      image: of Pillow, of any mode; still to be decoded, or decoded.
      size: (width, height) in pixels of the whole when resized.
      box: (left, top, right, bottom) in the resized image; None is all of it.
    """
    from PIL import Image

    box = (0, 0, *size) if box is None else box
    if math.prod(image.size) <= LARGE and math.prod(size) <= WIDE:
        return rgb(image).resize(size, Image.Resampling.BILINEAR).crop(box)
    asked = (box[2] - box[0], box[3] - box[1])
    if image.format in ("JPEG", "MPO"):
        image.draft(None, (2 * size[0], 2 * size[1]))
    scale = (image.width / size[0], image.height / size[1])
    behind = [side * scale[i % 2] for i, side in enumerate(box)]
    # A triangle filter reaches one step of the result beyond the centre of a pixel.
    region = (
        *(max(0, math.floor(behind[i] - scale[i]) - 1) for i in (0, 1)),
        *(min(image.size[i], math.ceil(behind[2 + i] + scale[i]) + 1) for i in (0, 1)),
    )
    factors = tuple(max(1, math.floor(scale[i] / 2)) for i in (0, 1))
    small = _reduced(image, region, factors)
    within = [(side - region[i % 2]) / factors[i % 2] for i, side in enumerate(behind)]
    within = [*(max(0.0, side) for side in within[:2]), *(min(within[2 + i], small.size[i]) for i in (0, 1))]
    return small.resize(asked, Image.Resampling.BILINEAR, box=tuple(within))


def _reduced(image, region, factors):
    """A region of an image in RGB, means over `factors` (x, y) pixels; converted tile by tile."""
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
