"""The JPEG codec's lossy half, exactly: what writing a baseline JPEG file and reading it back does
to the pixels.

Entropy coding loses nothing and is left out. All the rest is integer arithmetic, fixed to the last
bit by the accurate integer ("islow") transform and the defaults of libjpeg-turbo: 4:2:0 chroma,
quantisation tables of the standard (ITU-T T.81, annex K) scaled by the Independent JPEG Group's
quality rule, triangle-filter chroma upsampling.
"""

import jax
import jax.numpy as jnp
import numpy as np

from corruptions import padded

_LUMA_TABLE = np.array(
    [
        [16, 11, 10, 16, 24, 40, 51, 61],
        [12, 12, 14, 19, 26, 58, 60, 55],
        [14, 13, 16, 24, 40, 57, 69, 56],
        [14, 17, 22, 29, 51, 87, 80, 62],
        [18, 22, 37, 56, 68, 109, 103, 77],
        [24, 35, 55, 64, 81, 104, 113, 92],
        [49, 64, 78, 87, 103, 121, 120, 101],
        [72, 92, 95, 98, 112, 100, 103, 99],
    ],
    np.int32,
)
_CHROMA_TABLE = np.full((8, 8), 99, np.int32)
_CHROMA_TABLE[:4, :4] = [[17, 18, 24, 47], [18, 21, 26, 66], [24, 26, 56, 99], [47, 66, 99, 99]]

# The transform of 8 samples in 13-bit fixed point, row = frequency, column = position: 8192 sqrt(2)
# cos(...) up to the last bit, where the butterflies of the islow transform add up rounded factors
# (hence 11362 beside 11363). Even frequencies are symmetric in position and odd ones antisymmetric,
# so four columns say all.
_HALF_DCT = np.array(
    [
        [8192, 8192, 8192, 8192],
        [11363, 9633, 6437, 2260],
        [10703, 4433, -4433, -10703],
        [9633, -2259, -11362, -6436],
        [8192, -8192, -8192, 8192],
        [6437, -11362, 2261, 9633],
        [4433, -10704, 10704, -4433],
        [2260, -6436, 9633, -11363],
    ]
)
_DCT = np.concatenate([_HALF_DCT, _HALF_DCT[:, ::-1] * (-1) ** np.arange(8)[:, None]], axis=1)

# Colour conversion in 16-bit fixed point.
_TO_YCC = np.array([[19595, 38470, 7471], [-11059, -21709, 32768], [32768, -27439, -5329]], np.float32)
_TO_YCC_OFFSET = np.array([0, 2**23, 2**23], np.int32) + np.array([2**15, 2**15 - 1, 2**15 - 1], np.int32)
_CHROMA_TO_RGB = np.array([[0, -22554, 116130], [91881, -46802, 0]], np.float32)


def quantization_tables(quality: jax.Array | int) -> tuple[jax.Array, jax.Array]:
    """Computes the quantisation steps of luma and chroma, int32[8, 8], at a quality 1..100."""
    quality = jnp.clip(jnp.asarray(quality, jnp.int32), 1, 100)
    scale = jnp.where(quality < 50, 5000 // quality, 200 - 2 * quality)
    luma, chroma = (jnp.clip((table * scale + 50) // 100, 1, 255) for table in (_LUMA_TABLE, _CHROMA_TABLE))
    return luma, chroma


def round_trip(levels: jax.Array, quality: jax.Array | int, size: jax.Array | None = None) -> jax.Array:
    """Writes an image as JPEG and reads it back.

    Bit for bit what Pillow's `save(..., "JPEG", quality=quality)` and `open` give (libjpeg-turbo).

    Args:
      levels: [H, W, 3], RGB levels 0..255: integers, or float32 with whole values.
      quality: integer 1..100, possibly traced.
      size: int32 [2], own height and width of an image whose border is repeated up to a multiple of
        16; what lies beyond is to be ignored.

    Returns:
      int32[H, W, 3], the decoded levels 0..255.
    """
    height, width, _ = levels.shape
    even = _pad(levels, height % 2, -width % 16)
    luma, blue, red = _rgb_to_ycc(even)
    planes = [luma, _halve(blue), _halve(red)]
    if size is not None:
        # Of chroma it is the last mean of two rows that is repeated.
        half = (size + 1) // 2
        planes[1:] = (padded.repeat_border(plane, (half[0], plane.shape[1])) for plane in planes[1:])
    planes = [_pad(plane, -plane.shape[0] % 8, 0) for plane in planes]
    # All blocks of all planes in one array [8, 8, blocks], so that every pass is arithmetic on long
    # rows.
    blocks = jnp.concatenate([_to_blocks(plane) for plane in planes], axis=-1) - 128
    blocks = jnp.clip(_codec(blocks, planes[0].size // 64, quality) + 128, 0, 255)
    luma, blue, red = _from_blocks(blocks, [plane.shape for plane in planes])
    chroma = [plane[: (height + 1) // 2, : (width + 1) // 2] for plane in (blue, red)]
    if size is not None:
        chroma = [padded.repeat_border(plane, half) for plane in chroma]
    chroma = [_double(plane)[:height, :width] for plane in chroma]
    return _ycc_to_rgb(luma[:height, :width], *chroma)


def without_rounding(image: jax.Array) -> jax.Array:
    """Computes what JPEG would give without any rounding: chroma at half the resolution.

    Args:
      image: float32[H, W, 3] in [0, 1].

    Returns:
      The image, same shape and range; luma as it is, chroma averaged over 2x2 and interpolated.
    """
    height, width, _ = image.shape
    highest = jax.lax.Precision.HIGHEST
    luma, *chroma = jnp.einsum("hwc,dc->dhw", image, _TO_YCC / np.float32(2**16), precision=highest)
    chroma = [_pad(plane, height % 2, width % 2) for plane in chroma]
    small = jnp.stack([(p[0::2, 0::2] + p[1::2, 0::2] + p[0::2, 1::2] + p[1::2, 1::2]) / 4 for p in chroma])
    for axis in (1, 2):
        ends = jnp.pad(small, [(0, 0)] + [(int(a == axis),) * 2 for a in (1, 2)], mode="edge")
        before, after = (jax.lax.slice_in_dim(ends, k, k + small.shape[axis], axis=axis) for k in (0, 2))
        pairs = jnp.stack([0.75 * small + 0.25 * before, 0.75 * small + 0.25 * after], axis + 1)
        small = pairs.reshape(*(2 * n if a == axis else n for a, n in enumerate(small.shape)))
    rgb = jnp.einsum("dhw,dc->hwc", small, _CHROMA_TO_RGB / np.float32(2**16), precision=highest)
    return jnp.clip(luma[..., None] + rgb[:height, :width], 0.0, 1.0)


def _rgb_to_ycc(levels):
    """BT.601 full range in 16-bit fixed point: [H, W, 3] to three planes."""
    # Whole numbers below 2^24: exact in a float32 product, which is also much the fastest way on a
    # CPU.
    ycc = jnp.einsum("hwc,dc->dhw", levels.astype(jnp.float32), _TO_YCC, precision=jax.lax.Precision.HIGHEST)
    return (ycc.astype(jnp.int32) + _TO_YCC_OFFSET[:, None, None]) >> 16


def _ycc_to_rgb(luma, blue, red):
    blue, red = blue - 128, red - 128
    channels = [(int(b) * blue + int(r) * red)[..., None] for b, r in _CHROMA_TO_RGB.T]
    # Selected along the last axis: a CPU takes twice as long over planes that are put side by side there.
    channel = np.arange(3)[None, None]
    chroma = jnp.where(channel == 0, channels[0], jnp.where(channel == 1, *channels[1:]))
    return jnp.clip(luma[..., None] + ((chroma + 2**15) >> 16), 0, 255)


def _halve(plane):
    """Means of 2x2; exact halves go down and up in alternate columns."""
    total = plane[0::2, 0::2] + plane[1::2, 0::2] + plane[0::2, 1::2] + plane[1::2, 1::2]
    return (total + 1 + np.arange(total.shape[1], dtype=np.int32)[None, :] % 2) >> 2


def _double(plane):
    """Triangle filter, 3/4 near and 1/4 far, along columns and then rows; ties alternate as in
    `_halve`.
    """
    height, width = plane.shape
    padded = jnp.pad(plane, ((1, 1), (0, 0)), mode="edge")
    rows = jnp.stack([3 * plane + padded[:-2], 3 * plane + padded[2:]], axis=1).reshape(2 * height, width)
    padded = jnp.pad(rows, ((0, 0), (1, 1)), mode="edge")
    left, right = (3 * rows + padded[:, :-2] + 8) >> 4, (3 * rows + padded[:, 2:] + 7) >> 4
    return jnp.stack([left, right], axis=2).reshape(2 * height, 2 * width)


def _codec(blocks, luma_blocks, quality):
    """Transform, quantisation and back; the first `luma_blocks` of blocks[8, 8, n] are luma, the
    others chroma.
    """
    is_luma = np.arange(blocks.shape[-1]) < luma_blocks
    steps = [table.astype(jnp.float32)[..., None] for table in quantization_tables(quality)]
    step = jnp.where(is_luma, *steps)
    inverse = jnp.where(is_luma, *(0.125 / s for s in steps))  # the coefficients are 8 times the orthonormal ones
    coefficients = _transform(_transform(blocks, _DCT, 1, 11), _DCT, 0, 15).astype(jnp.float32)
    # c / 8 q to the nearest whole number, halves away from zero. |c| + 4 q is whole, so half a unit
    # more changes no quotient but keeps it clear of whole numbers by more than all rounding errors
    # (|c| < 2^15).
    quotient = jnp.trunc(coefficients * inverse + jnp.copysign(0.5 + 0.5 * inverse, coefficients))
    decoded = (quotient * step).astype(jnp.int32)
    return _transform(_transform(decoded, _DCT.T, 0, 11), _DCT.T, 1, 18)


def _transform(x, matrix, axis, shift):
    """(matrix x + 1/2 unit) >> shift along an axis of 8, as sums of slices: exact in int32, and
    plain vector code.
    """
    parts = [x[(slice(None),) * axis + (k,)] for k in range(8)]
    rows = [sum(int(m) * part for m, part in zip(row, parts, strict=True)) for row in matrix]
    return jnp.stack([(row + (1 << (shift - 1))) >> shift for row in rows], axis=axis)


def _pad(x, bottom, right):
    return jnp.pad(x, ((0, bottom), (0, right)) + ((0, 0),) * (x.ndim - 2), mode="edge")


def _to_blocks(plane):
    height, width = plane.shape
    return plane.reshape(height // 8, 8, width // 8, 8).transpose(1, 3, 0, 2).reshape(8, 8, -1)


def _from_blocks(blocks, shapes):
    ends = np.cumsum([h * w // 64 for h, w in shapes])[:-1]
    return [
        part.reshape(8, 8, h // 8, w // 8).transpose(2, 0, 3, 1).reshape(h, w)
        for part, (h, w) in zip(jnp.split(blocks, ends, axis=-1), shapes, strict=True)
    ]
