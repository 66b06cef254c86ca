"""Warps: bilinear interpolation at a real position per pixel of the result, with the boundary rules of the field.

Whole pixels are gathered as rows of channels; nothing is scattered. A row of three channels costs a CPU little more
than one value, a quarter of a millisecond for 224 x 224 positions.
"""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from corruptions.primitives import staging

MODES = ("symmetric", "reflect", "scipy_1_5")


def zero_padded(image: jax.Array, y: jax.Array, x: jax.Array) -> jax.Array:
    """Interpolates in an image [H, W, C] surrounded by zeros: the border fades over one pixel. Returns [H', W', C].

    `y` and `x` broadcast to [H', W'], row and column in pixels, pixel centres at whole numbers; finite.
    """
    height, width, _ = image.shape
    padded = jnp.pad(image, ((1, 2), (1, 2), (0, 0)))
    return _interpolated(padded, jnp.clip(y, -1, height), jnp.clip(x, -1, width), 1)


def clamped(image: jax.Array, y: jax.Array, x: jax.Array) -> jax.Array:
    """Interpolates in an image whose border is repeated outwards; arguments and result as of `zero_padded`."""
    height, width, _ = image.shape
    # A position on the last row or column reads its successor with weight 0.
    padded = jnp.pad(image, ((0, 1), (0, 1), (0, 0)))
    return _interpolated(padded, jnp.clip(y, 0, height - 1), jnp.clip(x, 0, width - 1), 0)


def _interpolated(padded, y, x, margin):
    # Staged as one complex array in one axis: positions are computed once, not for each look-up, and a TPU would
    # rearrange the pixels of each look-up by positions in two axes.
    y, x = jnp.broadcast_arrays(y, x)
    shape = *y.shape, padded.shape[2]
    position = staging.stage(jax.lax.complex(y.ravel(), x.ravel()))
    y, x = position.real, position.imag
    top, left = jnp.floor(y), jnp.floor(x)
    stride = padded.shape[1]
    upper_left = (top.astype(jnp.int32) + margin) * stride + left.astype(jnp.int32) + margin
    return look_up(padded.reshape(-1, padded.shape[2]), stride, upper_left, y - top, x - left).reshape(shape)


def look_up(pixels: jax.Array, stride: int, upper_left: jax.Array, down: jax.Array, right: jax.Array) -> jax.Array:
    """Weights the four pixels at, below and to the right of each position: float32 [..., C].

    `pixels` are float32 [P, C], an image row by row, `stride` pixels each; `upper_left` int32 [...], index of the
    upper left pixel of the four; `down` and `right` float32 [...] in [0, 1], the distance from it. Written with
    differences, so that equal pixels give exactly their value.
    """
    arrays = pixels, upper_left, down[..., None], right[..., None]
    by_pixels, by_differences = (functools.partial(form, stride) for form in (_look_up_pixels, _look_up_differences))
    return staging.by_platform(*arrays, cuda=by_differences, default=by_pixels)


def _look_up_pixels(stride, pixels, upper_left, down, right):
    upper = _pixel(pixels, upper_left)
    upper += right * (_pixel(pixels, upper_left + 1) - upper)
    lower_left = upper_left + stride
    lower = _pixel(pixels, lower_left)
    lower += right * (_pixel(pixels, lower_left + 1) - lower)
    return upper + down * (lower - upper)


def _look_up_differences(stride, pixels, upper_left, down, right):
    """Reads each difference once: a GPU writes to memory any look-up that is needed twice."""
    across, below = pixels[1:] - pixels[:-1], pixels[stride:] - pixels[:-stride]
    both = (pixels[stride + 1 :] - pixels[stride:-1]) - (pixels[1:-stride] - pixels[: -stride - 1])
    first, across, below, both = (_pixel(values, upper_left) for values in (pixels, across, below, both))
    return first + right * across + down * (below + right * both)


def _pixel(pixels, index):
    return pixels.at[index].get(mode="promise_in_bounds")


def fold(index: jax.Array, size: jax.Array | int, mode: str) -> jax.Array:
    """Returns the index in 0..n-1 of the pixel that the extension of an axis shows at `index`, any integers.

    The length n of the axis, `size`, may be traced. The mode is "symmetric" (cba|abcd|dcb) or "reflect" (dcb|abcd|cba),
    as in `numpy.pad`, or "scipy_1_5", at whole numbers the same as "symmetric"; ValueError for another.
    """
    period, mirrored = _mirror(size, mode)
    index = jnp.mod(index, period)
    return jnp.minimum(index, mirrored - index)


def _mirror(size, mode):
    """Returns the period of an extension, and the sum of two indices that show the same sample."""
    if mode in ("symmetric", "scipy_1_5"):
        return 2 * size, 2 * size - 1
    if mode == "reflect":
        return jnp.maximum(2 * size - 2, 1), 2 * size - 2
    raise ValueError(f"expected a boundary mode among {', '.join(MODES)}, found {mode!r}")


def positions(
    warp: Callable[[jax.Array], jax.Array], shape: Sequence[int], like: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Finds where a warp of images [H, W, C] looks each pixel up, mirrored places inside the image: rows and columns.

    Both are float32 [H, W], and differ between the devices of a `shard_map` where `like` does.
    """
    planes = jnp.moveaxis(jnp.mgrid[: shape[0], : shape[1]].astype(jnp.float32), 0, -1)
    warped = warp(planes + staging.varying_zeros((), like=like))
    return warped[..., 0], warped[..., 1]


def mirrored(
    image: jax.Array,
    row: jax.Array,
    column: jax.Array,
    row_fraction: jax.Array,
    column_fraction: jax.Array,
    sides: Sequence[int] | jax.Array,
    mode: str,
) -> jax.Array:
    """Interpolates in an image [H, W, C] mirrored about its border: float32 [H', W', C].

    Args:
      row, column: int32 [H', W'], any integers.
      row_fraction, column_fraction: float32 [H', W'] in [0, 1], the distance from (row, column) in pixels.
      sides: own height and width of the image, at least 2 each; may be traced.
      mode: how the image continues beyond its border, see `fold`. Between the last pixel and its mirror image the value is
        constant in "symmetric"; in "scipy_1_5" it goes from the last pixel to the one before it and jumps back: at -1 + t it is
        (1 - t) x[0] + t x[1], as in `scipy.ndimage.map_coordinates(order=1, mode="reflect")` of SciPy below 1.6.
    """
    # In one axis: a TPU would rearrange the pixels of each look-up by positions in two.
    top, down = _pair(row.ravel(), row_fraction.ravel(), sides[0], mode)
    left, right = _pair(column.ravel(), column_fraction.ravel(), sides[1], mode)
    stride, channels = image.shape[1:]
    seen = look_up(image.reshape(-1, channels), stride, top * stride + left, down, right)
    return seen.reshape(*row.shape, channels)


def beyond(
    row: jax.Array,
    column: jax.Array,
    row_fraction: jax.Array,
    column_fraction: jax.Array,
    sides: Sequence[int] | jax.Array,
    mode: str,
) -> jax.Array:
    """Tells where `mirrored` looks up a pixel once more: bool [H', W'], True beyond the outer edges of the border's pixels,
    of "scipy_1_5" beyond their centres.
    """
    edge = 1 if mode == "scipy_1_5" else 0
    away = [
        jnp.abs(p.astype(f.dtype) + f - (n - 1) / 2) > (n - edge) / 2
        for p, f, n in zip((row, column), (row_fraction, column_fraction), sides)
    ]
    return away[0] | away[1]


def _pair(index, fraction, size, mode):
    """Brings samples `index` and `index` + 1 to two neighbours inside an axis: the first, and the weight of the second."""
    period, mirrored = _mirror(size, mode)
    index = jnp.mod(index, period)
    first = jnp.minimum(index, mirrored - 1 - index)
    # Between the last sample and its mirror image: the weight of the second one at the lower and at the upper border.
    lower, upper = (fraction, 1 - fraction) if mode == "scipy_1_5" else (0.0, 1.0)
    fraction = jnp.where(first < index, 1 - fraction, fraction)  # mirrored, the two change places
    fraction = jnp.where(first < 0, lower, jnp.where(first > size - 2, upper, fraction))
    return jnp.clip(first, 0, size - 2), fraction


def displaced(dy: jax.Array, dx: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Splits (y + dy, x + dx) for every pixel (y, x) as `mirrored` takes it; dy, dx float32 [H, W] in pixels.

    The displacement is split before y is added, which keeps all bits of its fraction.
    """
    down, right = jnp.floor(dy), jnp.floor(dx)
    row = jnp.arange(dy.shape[0])[:, None] + down.astype(jnp.int32)
    column = jnp.arange(dy.shape[1])[None, :] + right.astype(jnp.int32)
    return row, column, dy - down, dx - right


def affine_coordinates(points: jax.Array, anchors: jax.Array, shape: Sequence[int]) -> tuple[jax.Array, jax.Array]:
    """Computes the source (y, x) of OpenCV's affine warp that takes three anchors to `points`: [H, W], in 1/32 pixel.

    With the inverse map x' = a x + b y + c, 32 x' = (rint(1024 a x) + rint(1024 (b y + c)) + 16) >> 5, and y' likewise.
    Points are float32 [3, 2] and anchors whole [3, 2], (x, y) in pixels.

    Each rounding needs 1024 a to about 2^-25, more than float32 holds. So every coefficient is a whole number, good
    to half a unit, plus a small float32 correction: the error of the whole numbers is computed in integers, exactly,
    and the correction solves for it.
    """
    height, width = shape[:2]
    target = 1024 * anchors.astype(jnp.int32)
    first, second = points[0] - points[1], points[1] - points[2]
    slope = _to_int(_solve(first, second, jnp.asarray(target[:-1] - target[1:], jnp.float32)))
    # 24 bits of a coordinate in three parts: whole pixels, 1/4096 pixels, and the rest.
    whole = jnp.floor(points)
    part = jnp.floor((points - whole) * 4096)
    rest = (points - whole) - part / 4096
    part = _product(part.astype(jnp.int32), slope)
    error = target - _product(whole.astype(jnp.int32), slope) - (part >> 12)
    constant = error[0]
    error = (
        (error - constant[None, :]).astype(jnp.float32)
        - (part & 4095).astype(jnp.float32) / 4096
        - _product(rest, slope.astype(jnp.float32))
    )
    slope_rest = _solve(first, second, error[:-1] - error[1:])
    constant_rest = error[0] - jnp.sum(slope_rest * points[:1], axis=1)
    x, y = jnp.arange(width)[None, :], jnp.arange(height)[:, None]

    def source(k):
        along_x = slope[k, 0] * x + _to_int(slope_rest[k, 0] * x.astype(jnp.float32))
        along_y = slope[k, 1] * y + constant[k] + _to_int(slope_rest[k, 1] * y.astype(jnp.float32) + constant_rest[k])
        return (along_x + along_y + 16) >> 5

    return source(1), source(0)


def _solve(first, second, images):
    """Finds the matrix [2, 2] that maps vectors `first` and `second` to the rows of `images`."""
    determinant = first[0] * second[1] - first[1] * second[0]
    # Three points on a line have no inverse map; any finite one will do.
    determinant = jnp.where(determinant == 0, 1, determinant)
    inverse = jnp.stack([second[1], -second[0], -first[1], first[0]]).reshape(2, 2) / determinant
    return images[0][:, None] * inverse[:1] + images[1][:, None] * inverse[1:]


def _product(points, slope):
    """Computes points[3, 2] @ slope[2, 2]^T by sums, exact in integers."""
    return jnp.sum(points[:, None, :] * slope[None], axis=-1)


def _to_int(x):
    """Rounds to int32, ties to even; bounded, so that products with coordinates fit int32."""
    return jnp.rint(jnp.clip(x, -(2**15), 2**15)).astype(jnp.int32)
