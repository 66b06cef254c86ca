"""Warps: bilinear interpolation at given positions, with the boundary rules of the field.

Whole pixels are gathered, all channels of a neighbour at once; nothing is scattered, so a warp costs four reads and
one write per pixel.
"""

import jax.numpy as jnp

MODES = ("edge", "symmetric", "reflect", "zero")


def fold(index, size, mode):
    """Index of the pixel that the extension of an axis shows at `index`, any integers.

    Args:
      index: int32 array, pixel 0 the first of the axis.
      size: length n of the axis.
      mode: "edge" (aaa|abcd|ddd), "symmetric" (cba|abcd|dcb), "reflect" (dcb|abcd|cba), names as in `numpy.pad`;
        "zero" as "edge", since what is beyond the border has to be masked by the caller.

    Returns:
      int32 array in 0..n-1.

    Raises:
      ValueError: another mode.
    """
    if mode in ("edge", "zero"):
        return jnp.clip(index, 0, size - 1)
    if mode == "symmetric":
        index = jnp.mod(index, 2 * size)
        return jnp.minimum(index, 2 * size - 1 - index)
    if mode == "reflect":
        period = max(2 * size - 2, 1)
        index = jnp.mod(index, period)
        return jnp.minimum(index, period - index)
    raise ValueError(f"expected a boundary mode among {', '.join(MODES)}, found {mode!r}")


def bilinear(image, row, column, row_fraction, column_fraction, mode):
    """Bilinear interpolation between the pixels (row, column) and (row + 1, column + 1).

    Args:
      image: float32 [H, W, C].
      row, column: int32 [...], any integers.
      row_fraction, column_fraction: float32 [...] in [0, 1], the distance from (row, column) in pixels.
      mode: how the image continues beyond its border, see `fold`; "zero" is black.

    Returns:
      float32 [..., C].
    """
    down, right = row_fraction[..., None], column_fraction[..., None]
    top = _pixel(image, row, column, mode) * (1 - right) + _pixel(image, row, column + 1, mode) * right
    bottom = _pixel(image, row + 1, column, mode) * (1 - right) + _pixel(image, row + 1, column + 1, mode) * right
    return top * (1 - down) + bottom * down


def bilinear_at(image, y, x, mode):
    """Bilinear interpolation at real positions.

    Args:
      image: float32 [H, W, C].
      y, x: float32 [...], row and column in pixels, pixel centres at whole numbers.
      mode: see `bilinear`.

    Returns:
      float32 [..., C].
    """
    top, left = jnp.floor(y), jnp.floor(x)
    return bilinear(image, top.astype(jnp.int32), left.astype(jnp.int32), y - top, x - left, mode)


def displace(image, dy, dx, mode):
    """The image with every pixel read from a displaced position: out(y, x) = image(y + dy, x + dx), bilinear.

    Args:
      image: float32 [H, W, C].
      dy, dx: float32 [H, W], displacement in pixels. Its fraction is kept whole: y is never added to it.
      mode: see `bilinear`.

    Returns:
      float32 [H, W, C].
    """
    height, width, _ = image.shape
    down, right = jnp.floor(dy), jnp.floor(dx)
    row = jnp.arange(height)[:, None] + down.astype(jnp.int32)
    column = jnp.arange(width) + right.astype(jnp.int32)
    return bilinear(image, row, column, dy - down, dx - right, mode)


def _pixel(image, row, column, mode):
    height, width, _ = image.shape
    pixel = image.at[fold(row, height, mode), fold(column, width, mode)].get(mode="promise_in_bounds")
    if mode != "zero":
        return pixel
    within = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    return jnp.where(within[..., None], pixel, 0)
