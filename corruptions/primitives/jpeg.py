"""The lossy half of the JPEG codec, exactly: the pixels of an image written as a baseline JPEG file and read back.

Entropy coding loses nothing and is left out. The rest is integer arithmetic, fixed to the last bit by the accurate
integer ("islow") transform and the defaults of libjpeg-turbo: 4:2:0 chroma, quantisation tables of the standard
(ITU-T T.81, annex K) scaled by the Independent JPEG Group's quality rule, triangle-filter chroma upsampling.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import color, padded, staging

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

# The transform of 8 samples in 13-bit fixed point, row = frequency, column = position: 8192 sqrt(2) cos(...) up to
# the last bit, where the butterflies of the islow transform add rounded factors (hence 11362 beside 11363). Even
# frequencies are symmetric in position and odd ones antisymmetric, so four columns are enough.
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
    scale = jnp.where(quality < 50, jax.lax.div(5000, quality), 200 - 2 * quality)
    luma, chroma = (jax.lax.div(table * scale + 50, 100) for table in (_LUMA_TABLE, _CHROMA_TABLE))
    return jnp.clip(luma, 1, 255), jnp.clip(chroma, 1, 255)


def round_trip(levels: jax.Array, quality: jax.Array | int, size: jax.Array | None = None) -> jax.Array:
    """Writes an image as JPEG and reads it back: int32 [H, W, 3], levels 0..255.

    Equals Pillow's `save(..., "JPEG", quality=quality)` and `open` (libjpeg-turbo) bit for bit.

    Args:
      levels: [H, W, 3], RGB levels 0..255: integers, or float32 with whole values.
      quality: integer 1..100, possibly traced.
      size: int32 [2], own height and width of a padded image, whose border is repeated up to a multiple of 16; pixels
        beyond are meaningless.
    """
    height, width, _ = levels.shape
    ycc = _rgb_to_ycc(jnp.pad(levels, ((0, height % 2), (0, -width % 16), (0, 0)), mode="edge"))
    luma, chroma = ycc[:1], _halve(ycc[1:])
    if size is not None:
        # The last mean of two rows of chroma is repeated.
        half = (size + 1) // 2
        chroma = jax.vmap(lambda plane: padded.repeat_beyond(plane, (half[0], plane.shape[1])))(chroma)
    parts = [jnp.pad(planes, ((0, 0), (0, -planes.shape[1] % 8), (0, 0)), mode="edge") for planes in (luma, chroma)]
    # All blocks of all planes in one array [8, 8, blocks]: every pass is arithmetic on long rows.
    blocks = jnp.concatenate([_to_blocks(planes) for planes in parts], axis=-1).astype(jnp.int32) - 128
    blocks = color.clip(_codec(blocks, parts[0].size // 64, quality) + 128, 0, 255)
    luma, chroma = _from_blocks(blocks, [planes.shape for planes in parts])
    chroma = chroma[:, : (height + 1) // 2, : (width + 1) // 2]
    if size is not None:
        chroma = jax.vmap(lambda plane: padded.repeat_beyond(plane, half))(chroma)
    return _ycc_to_rgb(luma[0, :height, :width], *_double(chroma)[:, :height, :width])


def without_rounding(image: jax.Array) -> jax.Array:
    """Computes the image [H, W, 3] in [0, 1] that JPEG would give without any rounding.

    Luma is unchanged, chroma averaged over 2x2 and interpolated.
    """
    height, width, _ = image.shape
    highest = jax.lax.Precision.HIGHEST
    luma, *chroma = jnp.einsum("hwc,dc->dhw", image, _TO_YCC / np.float32(2**16), precision=highest)
    chroma = [jnp.pad(plane, ((0, height % 2), (0, width % 2)), mode="edge") for plane in chroma]
    small = jnp.stack([(p[0::2, 0::2] + p[1::2, 0::2] + p[0::2, 1::2] + p[1::2, 1::2]) / 4 for p in chroma])
    for axis in (1, 2):
        ends = jnp.pad(small, [(0, 0)] + [(int(a == axis),) * 2 for a in (1, 2)], mode="edge")
        before, after = (jax.lax.slice_in_dim(ends, k, k + small.shape[axis], axis=axis) for k in (0, 2))
        pairs = jnp.stack([0.75 * small + 0.25 * before, 0.75 * small + 0.25 * after], axis + 1)
        small = pairs.reshape(*(2 * n if a == axis else n for a, n in enumerate(small.shape)))
    rgb = jnp.einsum("dhw,dc->hwc", small, _CHROMA_TO_RGB / np.float32(2**16), precision=highest)
    return color.clip(luma[..., None] + rgb[:height, :width])


def _rgb_to_ycc(levels):
    """BT.601 full range in 16-bit fixed point: [H, W, 3] to uint8 planes [3, H, W]."""
    channels = [levels[..., k].astype(jnp.int32) for k in range(3)]
    sums = [sum(int(w) * x for w, x in zip(row, channels)) for row in _TO_YCC]
    planes = jnp.stack([(total + offset) >> 16 for total, offset in zip(sums, _TO_YCC_OFFSET)])
    return staging.stage_on_cpu(planes.astype(jnp.uint8))


def _ycc_to_rgb(luma, blue, red):
    blue, red = blue - 128, red - 128
    channels = [(int(b) * blue + int(r) * red)[..., None] for b, r in _CHROMA_TO_RGB.T]
    # Selected along the last axis: stacking planes there takes a CPU twice as long.
    channel = np.arange(3)[None, None]
    chroma = jnp.where(channel == 0, channels[0], jnp.where(channel == 1, *channels[1:]))
    return jnp.clip(luma[..., None] + ((chroma + 2**15) >> 16), 0, 255)


def _halve(planes):
    """Averages 2x2 of uint8 [n, H, W]; exact halves go down and up in alternate columns."""
    planes = planes.astype(jnp.int32)
    total = sum(planes[:, i::2, j::2] for i in range(2) for j in range(2))
    return ((total + 1 + np.arange(total.shape[2], dtype=np.int32)[None, None] % 2) >> 2).astype(jnp.uint8)


def _double(planes):
    """Doubles [n, h, w] by the triangle filter, 3/4 near and 1/4 far, along columns, then rows; ties as in `_halve`."""
    number, height, width = planes.shape
    ends = jnp.pad(planes, ((0, 0), (1, 1), (0, 0)), mode="edge")
    rows = jnp.stack([3 * planes + ends[:, :-2], 3 * planes + ends[:, 2:]], axis=2).reshape(number, 2 * height, width)
    ends = jnp.pad(rows, ((0, 0), (0, 0), (1, 1)), mode="edge")
    left, right = (3 * rows + ends[..., :-2] + 8) >> 4, (3 * rows + ends[..., 2:] + 7) >> 4
    return jnp.stack([left, right], axis=3).reshape(number, 2 * height, 2 * width)


def _codec(blocks, luma_blocks, quality):
    """Transforms, quantises and transforms back; the first `luma_blocks` of blocks[8, 8, n] are luma, the rest chroma."""
    is_luma = np.arange(blocks.shape[-1]) < luma_blocks
    steps = [table.astype(jnp.float32)[..., None] for table in quantization_tables(quality)]
    step = jnp.where(is_luma, *steps)
    inverse = jnp.where(is_luma, *(0.125 / s for s in steps))  # the coefficients are 8 times the orthonormal ones
    coefficients = _transform(_transform(blocks, _DCT, 1, 11), _DCT, 0, 15).astype(jnp.float32)
    # c / 8 q to the nearest whole number, halves away from zero. |c| + 4 q is whole, so half a unit more changes no
    # quotient but keeps it further from whole numbers than all rounding errors (|c| < 2^15).
    quotient = jnp.trunc(coefficients * inverse + jnp.copysign(0.5 + 0.5 * inverse, coefficients))
    decoded = (quotient * step).astype(jnp.int32)
    return _transform(_transform(decoded, _DCT.T, 0, 11), _DCT.T, 1, 18)


def _transform(x, matrix, axis, shift):
    """Computes (matrix x + 1/2 unit) >> shift along an axis of 8, as sums of slices: exact in int32, vector code."""
    parts = [x[(slice(None),) * axis + (k,)] for k in range(8)]
    rows = [_weighted(row, parts) for row in matrix]
    return jnp.stack([(row + (1 << (shift - 1))) >> shift for row in rows], axis=axis)


def _weighted(weights, parts):
    """Computes sum_k w_k x_k of eight; of four sums or differences if the weights mirror each other."""
    for sign in (1, -1):
        if (weights == sign * weights[::-1]).all():
            weights, parts = weights[:4], [a + sign * b for a, b in zip(parts[:4], parts[:3:-1], strict=True)]
            break
    return sum(int(w) * part for w, part in zip(weights, parts, strict=True))


def _to_blocks(planes):
    """Cuts [n, H, W] into [8, 8, blocks]; staged, as a CPU is slow to compute a block's place from its number."""
    number, height, width = planes.shape
    blocks = planes.reshape(number, height // 8, 8, width // 8, 8).transpose(2, 4, 0, 1, 3)
    return staging.stage_on_cpu(blocks).reshape(8, 8, -1)


def _from_blocks(blocks, shapes):
    ends = np.cumsum([math.prod(shape) // 64 for shape in shapes])[:-1]
    return [
        part.reshape(8, 8, n, h // 8, w // 8).transpose(2, 3, 0, 4, 1).reshape(n, h, w)
        for part, (n, h, w) in zip(jnp.split(blocks, ends, axis=-1), shapes, strict=True)
    ]
