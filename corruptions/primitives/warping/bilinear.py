"""Bilinear interpolation at a real position per pixel of the result, for warps of whole images.

The image is padded first, so that no look-up needs a mask or a bound of its own, and looked up as
rows of pixels: a row of three channels costs a CPU little more than one value, a quarter of a
millisecond for 224 x 224 positions.
"""

import functools

import jax
import jax.numpy as jnp

from corruptions.primitives import staging


def zero_padded(image: jax.Array, y: jax.Array, x: jax.Array) -> jax.Array:
    """Interpolates in an image surrounded by zeros: each of the four pixels around a position that
    lies outside counts as 0, hence a fade over one pixel at the border.

    Args:
      image: float32 [H, W, C].
      y, x: float32 of shapes that broadcast to [H', W'], row and column in pixels, pixel centres at
        whole numbers; finite.

    Returns:
      float32 [H', W', C].
    """
    height, width, _ = image.shape
    padded = jnp.pad(image, ((1, 2), (1, 2), (0, 0)))
    return _interpolate(padded, jnp.clip(y, -1, height), jnp.clip(x, -1, width), 1)


def clamped(image: jax.Array, y: jax.Array, x: jax.Array) -> jax.Array:
    """Interpolates in an image whose border is repeated outwards; arguments and result as of
    `zero_padded`.
    """
    height, width, _ = image.shape
    # A position on the last row or column reads its successor with weight 0.
    padded = jnp.pad(image, ((0, 1), (0, 1), (0, 0)))
    return _interpolate(padded, jnp.clip(y, 0, height - 1), jnp.clip(x, 0, width - 1), 0)


def look_up(pixels: jax.Array, stride: int, upper_left: jax.Array, down: jax.Array, right: jax.Array) -> jax.Array:
    """Weights the four pixels at, below and to the right of each position.

    Written with differences, so that equal pixels give exactly their value.

    Args:
      pixels: float32 [P, C], an image row by row.
      stride: pixels in a row.
      upper_left: int32 [...], index of the upper left pixel of the four.
      down, right: float32 [...] in [0, 1], distance from it.

    Returns:
      float32 [..., C].
    """

    given = pixels, upper_left, down[..., None], right[..., None]
    by_pixels, by_differences = (functools.partial(form, stride) for form in (_look_up_pixels, _look_up_differences))
    return jax.lax.platform_dependent(*given, cuda=by_differences, default=by_pixels)


def _look_up_pixels(stride, pixels, upper_left, down, right):
    upper = _pixel(pixels, upper_left)
    upper += right * (_pixel(pixels, upper_left + 1) - upper)
    upper, lower_left = staging.in_turn(upper, upper_left + stride)
    lower = _pixel(pixels, lower_left)
    lower += right * (_pixel(pixels, lower_left + 1) - lower)
    return upper + down * (lower - upper)


def _look_up_differences(stride, pixels, upper_left, down, right):
    """The same from what is looked up and needed once: what it needs twice a GPU writes to memory."""
    across, below = pixels[1:] - pixels[:-1], pixels[stride:] - pixels[:-stride]
    both = (pixels[stride + 1 :] - pixels[stride:-1]) - (pixels[1:-stride] - pixels[: -stride - 1])
    first, across, below, both = (_pixel(values, upper_left) for values in (pixels, across, below, both))
    return first + right * across + down * (below + right * both)


def _pixel(pixels, index):
    return pixels.at[index].get(mode="promise_in_bounds")


def _interpolate(padded, y, x, margin):
    # Positions are worked out once, not for each of the look-ups, and as one complex array, not
    # each from the start; in one axis, as a TPU looks pixels up: it would rearrange each look-up.
    y, x = jnp.broadcast_arrays(y, x)
    shape = *y.shape, padded.shape[2]
    position = staging.stage(jax.lax.complex(y.ravel(), x.ravel()))
    y, x = position.real, position.imag
    top, left = jnp.floor(y), jnp.floor(x)
    stride = padded.shape[1]
    upper_left = (top.astype(jnp.int32) + margin) * stride + left.astype(jnp.int32) + margin
    return look_up(padded.reshape(-1, padded.shape[2]), stride, upper_left, y - top, x - left).reshape(shape)
