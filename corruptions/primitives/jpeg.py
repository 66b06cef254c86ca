"""The lossy half of the JPEG codec, exactly: the pixels of an image written as a baseline JPEG file and read back.

Entropy coding loses nothing and is left out. The rest is integer arithmetic, fixed to the last bit by the accurate
integer ("islow") transforms and the defaults of two libraries: 4:2:0 chroma, quantisation tables of the standard
(ITU-T T.81, annex K) scaled by the Independent JPEG Group's quality rule. They differ in how chroma is halved and doubled:

    libjpeg-turbo  means of 2x2 pixels; a triangle filter, across blocks (Pillow's wheels from 9.0 on, for Linux)
    libjpeg9       the 8x8 lowest frequencies of 16x16 pixels, and back (libjpeg 9b to 9d; Pillow's wheels 4.3 to 8.4)
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import color, padded, staging

TURBO, LIBJPEG9 = CODECS = ("libjpeg-turbo", "libjpeg9")

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
# libjpeg 9's eight lowest frequencies of 16 samples, and the places where its way back differs, by the same rounding.
_HALF_DCT_16 = np.array(
    [
        [8192, 8192, 8192, 8192, 8192, 8192, 8192, 8192],
        [11529, 11086, 10217, 8956, 7350, 5461, 3363, 1135],
        [11363, 9633, 6436, 2260, -2260, -6436, -9633, -11363],
        [11086, 7350, 1136, -5461, -10217, -11529, -8956, -3363],
        [10703, 4433, -4433, -10703, -10703, -4433, 4433, 10703],
        [10217, 1136, -8955, -11086, -3363, 7350, 11529, 5461],
        [9633, -2260, -11363, -6437, 6437, 11363, 2260, -9633],
        [8956, -5461, -11086, 1137, 11530, 3363, -10217, -7350],
    ]
)
_HALF_BACK_16 = _HALF_DCT_16.copy()
_HALF_BACK_16[[1, 2, 3, 5, 7], [7, 2, 6, 5, 4]] = 1136, 6437, -8955, 7349, 11529
_HALF_BACK_16[[2, 6, 6, 6, 6], [5, 0, 3, 4, 7]] = -6437, 9632, -6436, 6436, -9632
_DCT, _DCT_16, _BACK_16 = (
    np.concatenate([half, half[:, ::-1] * (-1) ** np.arange(8)[:, None]], axis=1)
    for half in (_HALF_DCT, _HALF_DCT_16, _HALF_BACK_16)
)

# Colour conversion in 16-bit fixed point.
_TO_YCC = np.array([[19595, 38470, 7471], [-11059, -21709, 32768], [32768, -27439, -5329]], np.float32)
_TO_YCC_OFFSET = np.array([0, 2**23, 2**23], np.int32) + np.array([2**15, 2**15 - 1, 2**15 - 1], np.int32)
_CHROMA_TO_RGB = {
    codec: np.array([[0, green, 116130], [91881, -46802, 0]]) for codec, green in ((TURBO, -22554), (LIBJPEG9, -22553))
}


def quantization_tables(quality: jax.Array | int) -> tuple[jax.Array, jax.Array]:
    """Computes the quantisation steps of luma and chroma, int32[8, 8], at a quality 1..100."""
    quality = jnp.clip(jnp.asarray(quality, jnp.int32), 1, 100)
    scale = jnp.where(quality < 50, jax.lax.div(5000, quality), 200 - 2 * quality)
    luma, chroma = (jax.lax.div(table * scale + 50, 100) for table in (_LUMA_TABLE, _CHROMA_TABLE))
    return jnp.clip(luma, 1, 255), jnp.clip(chroma, 1, 255)


def round_trip(
    levels: jax.Array,
    quality: jax.Array | int,
    size: jax.Array | None = None,
    encoder: str = TURBO,
    decoder: str | None = None,
) -> jax.Array:
    """Writes an image as JPEG and reads it back: int32 [H, W, 3], levels 0..255.

    Equals Pillow's `save(..., "JPEG", quality=quality)` and `open` with these libraries bit for bit.

    Args:
      levels: [H, W, 3], RGB levels 0..255: integers, or float32 with whole values.
      quality: integer 1..100, possibly traced.
      size: int32 [2], own height and width of a padded image, whose border is repeated up to a multiple of 16; pixels
        beyond are meaningless.
      encoder: the library that writes, one of `CODECS`.
      decoder: the one that reads; None is the encoder.
    """
    height, width, _ = levels.shape
    decoder = decoder or encoder
    half = (size + 1) // 2 if size is not None else ((height + 1) // 2, (width + 1) // 2)
    tall, wide = -(-height // 16) * 8, -(-width // 16) * 8  # halved chroma, in whole blocks
    shapes = (1, -(-height // 8) * 8, 2 * wide), (2, tall, wide)
    luma_blocks = math.prod(shapes[0]) // 64
    steps = [table.astype(jnp.float32)[..., None] for table in quantization_tables(quality)]
    more = 2 * tall - height if encoder == LIBJPEG9 else height % 2
    ycc = _rgb_to_ycc(jnp.pad(levels, ((0, more), (0, -width % 16), (0, 0)), mode="edge"))
    if encoder == LIBJPEG9:
        coefficients = _forward(_to_blocks(ycc[:1, : shapes[0][1]], 8)), _forward_16(_to_blocks(ycc[1:], 16))
        parts = list(map(_quantized, coefficients, steps))
    else:
        chroma = _halve(ycc[1:])
        if size is not None:
            # The last mean of two rows of chroma is repeated.
            chroma = jax.vmap(lambda plane: padded.repeat_beyond(plane, (half[0], plane.shape[1])))(chroma)
        planes = [jnp.pad(part, ((0, 0), (0, -part.shape[1] % 8), (0, 0)), mode="edge") for part in (ycc[:1], chroma)]
        # All blocks of all planes in one array [8, 8, blocks]: every pass is arithmetic on long rows.
        both = _forward(jnp.concatenate([_to_blocks(part, 8) for part in planes], axis=-1))
        both = _quantized(both, jnp.where(np.arange(both.shape[-1]) < luma_blocks, *steps))
        parts = [both[..., :luma_blocks], both[..., luma_blocks:]]
    if decoder == LIBJPEG9:
        bytes_of = lambda x: staging.stage_on_cpu(x.astype(jnp.uint8))  # noqa: E731
        luma = bytes_of(_from_blocks(bytes_of(_back(_staged(parts[0]))), shapes[0])).astype(jnp.int32)
        chroma = bytes_of(_from_blocks(bytes_of(_back_16(_staged(parts[1]))), (2, 2 * tall, 2 * wide))).astype(
            jnp.int32
        )
    else:
        whole = jnp.concatenate(parts, axis=-1) if encoder == LIBJPEG9 else both
        blocks = jnp.split(_back(whole), [luma_blocks], axis=-1)
        luma, chroma = map(_from_blocks, blocks, shapes)
        chroma = chroma[:, : (height + 1) // 2, : (width + 1) // 2]
        if size is not None:
            chroma = jax.vmap(lambda plane: padded.repeat_beyond(plane, half))(chroma)
        chroma = _double(chroma)
    return _ycc_to_rgb(luma[0, :height, :width], chroma[:, :height, :width], _CHROMA_TO_RGB[decoder])


def without_rounding(image: jax.Array, codec: str = TURBO) -> jax.Array:
    """Computes the image [H, W, 3] in [0, 1] that JPEG would give without any rounding.

    Luma is unchanged. Chroma is averaged over 2x2 and interpolated; with libjpeg 9 it keeps the 8x8 lowest frequencies of
    each 16x16 pixels.
    """
    height, width, _ = image.shape
    highest = jax.lax.Precision.HIGHEST
    ycc = jnp.einsum("hwc,dc->dhw", image, _TO_YCC / np.float32(2**16), precision=highest)
    luma, chroma = ycc[0], ycc[1:]
    if codec == LIBJPEG9:
        chroma = jnp.pad(chroma, ((0, 0), (0, -height % 16), (0, -width % 16)), mode="edge")
        cosines = np.cos(np.outer(np.arange(8), 2 * np.arange(16) + 1) * np.pi / 32)
        kept = jnp.asarray(cosines.T @ np.diag([1, *[2] * 7]) @ cosines / 16, jnp.float32)
        blocks = chroma.reshape(2, chroma.shape[1] // 16, 16, chroma.shape[2] // 16, 16)
        small = jnp.einsum("niajb,ac,bd->nicjd", blocks, kept, kept, precision=highest).reshape(chroma.shape)
    else:
        small = _averaged_and_interpolated(chroma)
    rgb = jnp.einsum("dhw,dc->hwc", small, (_CHROMA_TO_RGB[codec] / 2**16).astype(np.float32), precision=highest)
    return color.clip(luma[..., None] + rgb[:height, :width])


def _averaged_and_interpolated(chroma):
    pad = [(0, 0), *((0, side % 2) for side in chroma.shape[1:])]
    p = jnp.pad(chroma, pad, mode="edge")
    small = (p[:, 0::2, 0::2] + p[:, 1::2, 0::2] + p[:, 0::2, 1::2] + p[:, 1::2, 1::2]) / 4
    for axis in (1, 2):
        ends = jnp.pad(small, [(0, 0)] + [(int(a == axis),) * 2 for a in (1, 2)], mode="edge")
        before, after = (jax.lax.slice_in_dim(ends, k, k + small.shape[axis], axis=axis) for k in (0, 2))
        pairs = jnp.stack([0.75 * small + 0.25 * before, 0.75 * small + 0.25 * after], axis + 1)
        small = pairs.reshape(*(2 * n if a == axis else n for a, n in enumerate(small.shape)))
    return small


def _rgb_to_ycc(levels):
    """BT.601 full range in 16-bit fixed point: [H, W, 3] to uint8 planes [3, H, W]."""
    channels = [levels[..., k].astype(jnp.int32) for k in range(3)]
    sums = [sum(int(w) * x for w, x in zip(row, channels)) for row in _TO_YCC]
    planes = jnp.stack([(total + offset) >> 16 for total, offset in zip(sums, _TO_YCC_OFFSET)])
    return staging.stage_on_cpu(planes.astype(jnp.uint8))


def _ycc_to_rgb(luma, chroma, weights):
    blue, red = chroma - 128
    channels = [(int(b) * blue + int(r) * red)[..., None] for b, r in weights.T]
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


def _quantized(coefficients, step):
    """Rounds coefficients [8, 8, n], 8 times the orthonormal ones, to multiples of the steps that go with them."""
    inverse = 0.125 / step
    coefficients = coefficients.astype(jnp.float32)
    # c / 8 q to the nearest whole number, halves away from zero. |c| + 4 q is whole, so half a unit more changes no
    # quotient but keeps it further from whole numbers than all rounding errors (|c| < 2^15).
    quotient = jnp.trunc(coefficients * inverse + jnp.copysign(0.5 + 0.5 * inverse, coefficients))
    return (quotient * step).astype(jnp.int32)


def _forward(blocks):
    """Transforms blocks [8, 8, n] of bytes to coefficients."""
    return _transform(_transform(blocks.astype(jnp.int32) - 128, _DCT, 1, 11), _DCT, 0, 15)


def _back(coefficients):
    """Transforms coefficients to blocks [8, 8, n] of levels."""
    return color.clip(_transform(_transform(coefficients, _DCT.T, 0, 11), _DCT.T, 1, 18) + 128, 0, 255)


def _forward_16(blocks):
    """Transforms blocks [16, 16, n] of bytes to the coefficients [8, 8, n] of their lowest frequencies."""
    x = blocks.astype(jnp.int32) - 128
    # Even frequencies are symmetric, odd ones antisymmetric. Staged: each row would compute the sums again.
    rows = _alternating(_staged(x[:, :8] + x[:, :7:-1]), _staged(x[:, :8] - x[:, :7:-1]), 1)
    x = _staged(_shifted(rows, 11, 1))
    return _shifted(_alternating(x[:8] + x[:7:-1], x[:8] - x[:7:-1], 0), 17, 0)


def _alternating(sums, differences, axis):
    """Computes the eight frequencies of 16 samples from sums and differences of mirrored ones, each [.., 8, ..]."""
    even, odd = (_products(_DCT_16[k::2, :8], part, axis) for k, part in enumerate((sums, differences)))
    return [row for pair in zip(even, odd, strict=True) for row in pair]


def _back_16(coefficients):
    """Transforms coefficients [8, 8, n] to blocks [16, 16, n] of levels."""
    even, odd = (_products(_BACK_16[k::2, :8].T, coefficients[k::2], 0) for k in (0, 1))
    even, odd = (staging.stage_on_cpu(jnp.stack(rows)) for rows in (even, odd))
    x = _staged((jnp.concatenate([even + odd, (even - odd)[::-1]]) + 2**10) >> 11)
    even, odd = (jnp.stack(_products(_BACK_16[k::2, :8].T, x[:, k::2], 1), 1) for k in (0, 1))
    x = (jnp.concatenate([even + odd, (even - odd)[:, ::-1]], 1) + 2**17) >> 18
    return color.clip(x + 128, 0, 255)


def _staged(x):
    """Stages whole numbers of 16 bits on a CPU."""
    return staging.stage_on_cpu(x.astype(jnp.int16)).astype(jnp.int32)


def _transform(x, matrix, axis, shift):
    """Computes (matrix x + 1/2 unit) >> shift along an axis, as sums of slices: exact in int32, vector code."""
    return _shifted(_products(matrix, x, axis), shift, axis)


def _shifted(rows, shift, axis):
    return jnp.stack([(row + (1 << (shift - 1))) >> shift for row in rows], axis=axis)


def _products(matrix, x, axis):
    """Computes the rows of the product of a matrix and `x` along an axis."""
    parts = [x[(slice(None),) * axis + (k,)] for k in range(x.shape[axis])]
    return [_weighted(row, parts) for row in matrix]


def _weighted(weights, parts):
    """Computes sum_k w_k x_k; of half as many sums or differences if the weights mirror each other."""
    half = len(parts) // 2
    for sign in (1, -1):
        if (weights == sign * weights[::-1]).all():
            weights, parts = (
                weights[:half],
                [a + sign * b for a, b in zip(parts[:half], parts[: half - 1 : -1], strict=True)],
            )
            break
    return sum(int(w) * part for w, part in zip(weights, parts, strict=True))


def _to_blocks(planes, side):
    """Cuts [n, H, W] into [side, side, blocks]; staged, as a CPU is slow to compute a block's place from its number."""
    number, height, width = planes.shape
    blocks = planes.reshape(number, height // side, side, width // side, side).transpose(2, 4, 0, 1, 3)
    return staging.stage_on_cpu(blocks).reshape(side, side, -1)


def _from_blocks(blocks, shape):
    number, height, width = shape
    side = len(blocks)
    blocks = blocks.reshape(side, side, number, height // side, width // side)
    return blocks.transpose(2, 3, 0, 4, 1).reshape(shape)
