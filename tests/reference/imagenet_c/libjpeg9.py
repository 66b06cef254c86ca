"""JPEG written and read by libjpeg 9 in NumPy's integers; the matrices were measured by calling its compiled transforms."""

import numpy as np

_MATRICES = "tests/fixtures/libjpeg9_matrices.npz"
_LUMA = """16 11 10 16 24 40 51 61 12 12 14 19 26 58 60 55 14 13 16 24 40 57 69 56 14 17 22 29 51 87 80 62 18 22 37 56 68 109 103 77
24 35 55 64 81 104 113 92 49 64 78 87 103 121 120 101 72 92 95 98 112 100 103 99"""
_CHROMA = (
    """17 18 24 47 99 99 99 99 18 21 26 66 99 99 99 99 24 26 56 99 99 99 99 99 47 66 99 99 99 99 99 99""" + " 99" * 32
)


def _plane(plane, side, table, quality):
    """Pads a plane, cuts it into blocks, quantises their coefficients and transforms them back."""
    with np.load(_MATRICES) as arrays:
        forward, back = (arrays[f"{which}{side}"].astype(np.int64) for which in "FI")
    height, width = plane.shape
    padded = np.pad(plane, ((0, -height % side), (0, -width % side)), mode="edge")
    blocks = padded.reshape(padded.shape[0] // side, side, -1, side).swapaxes(1, 2) - 128
    halfway = (blocks @ forward.T + 1024) >> 11
    shift = 15 if side == 8 else 17
    coefficients = (forward @ halfway + (1 << (shift - 1))) >> shift
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    steps = np.clip((np.array(table.split(), np.int64).reshape(8, 8) * scale + 50) // 100, 1, 255)
    levels = np.sign(coefficients) * ((abs(coefficients) + 4 * steps) // (8 * steps)) * steps
    samples = (((back @ levels + 1024) >> 11) @ back.T + 2**17) >> 18
    return np.clip(samples + 128, 0, 255).swapaxes(1, 2).reshape(padded.shape)[:height, :width]


def jpeg(image, quality):
    red, green, blue = np.moveaxis(image.astype(np.int64), -1, 0)
    luma = (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16
    cb = (-11058 * red - 21710 * green + 32768 * blue + 8421375) >> 16
    cr = (32768 * red - 27439 * green - 5329 * blue + 8421375) >> 16
    luma = _plane(luma, 8, _LUMA, quality)
    cb, cr = (_plane(plane, 16, _CHROMA, quality) - 128 for plane in (cb, cr))
    red = luma + ((91881 * cr + 32768) >> 16)
    green = luma + ((-22553 * cb - 46802 * cr + 32768) >> 16)
    blue = luma + ((116130 * cb + 32768) >> 16)
    return np.clip(np.stack([red, green, blue], -1), 0, 255).astype(np.uint8)
