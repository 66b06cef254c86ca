"""Cubic B-splines on a grid: interpolation as matrix products, and the sum of many rotations of one image.

M. Unser, "Splines: A Perfect Fit for Signal and Image Processing" (1999). A signal is f(x) = sum_i c_i B(x - i), with
samples mirrored about the end samples (`reflect` in NumPy, `mirror` in SciPy). Samples taken as the coefficients c
are not interpolated but blurred by [1/6, 2/3, 1/6].
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import filters, staging


def kernel(t: jax.Array) -> jax.Array:
    """Computes B(t): 2/3 - t^2 + |t|^3 / 2 up to |t| = 1, (2 - |t|)^3 / 6 up to 2, else 0."""
    t = jnp.abs(t)
    return jnp.where(t < 1, 2 / 3 - t * t * (1 - 0.5 * t), jnp.maximum(2 - t, 0.0) ** 3 * (1 / 6))


def sampling_matrix(size: int, positions: jax.Array) -> jax.Array:
    """Builds the matrix S, float32 [n, size], that evaluates f at positions x [n], in samples, maybe traced.

    (S c)_k = sum_i c_i B(x_k - i), mirrored; 0 outside of [0, size - 1].
    """
    x = jnp.asarray(positions)[:, None]
    column = jnp.arange(size)[None, :]
    matrix = kernel(x - column.astype(jnp.float32))
    # The mirrored coefficients in reach: before the first lies the second, after the last the last but one.
    matrix += jnp.where(column == 1, kernel(x + 1), 0.0) + jnp.where(column == size - 2, kernel(x - size), 0.0)
    return jnp.where((x >= 0) & (x <= size - 1), matrix, 0.0)


def coefficients(image: jax.Array) -> jax.Array:
    """Computes the coefficients c, [H, W, C], that interpolate an image, mirrored: c = x - F x'' / 6 along both axes.

    x'' is the second difference and F = (1 + ()'' / 6)^-1. On a surface of one colour x'' is zero, so its coefficients
    are its colour to the last bit, whatever the order in which a compiler sums the products.
    """
    for axis, subscripts in enumerate(("ih,hwc->iwc", "jw,iwc->ijc")):
        ends = [(1, 1) if axis == i else (0, 0) for i in range(3)]
        second = jnp.diff(jnp.pad(image, ends, mode="reflect"), n=2, axis=axis)
        highest = jax.lax.Precision.HIGHEST
        image = image - jnp.einsum(subscripts, _sixth_of_prefilter(image.shape[axis]), second, precision=highest)
    return image


@functools.lru_cache
def _sixth_of_prefilter(size):
    """Computes F / 6 on the host: float32 [size, size]."""
    samples = (
        np.diag(np.full(size, 2 / 3)) + np.diag(np.full(size - 1, 1 / 6), 1) + np.diag(np.full(size - 1, 1 / 6), -1)
    )
    samples[0, 1] = samples[-1, -2] = 1 / 3
    return (np.linalg.inv(samples) / 6).astype(np.float32)


def sum_of_rotations(coefficients: jax.Array, angles: jax.Array, weights: jax.Array) -> jax.Array:
    """Computes sum_j w_j f(R_j p) over rotations R_j about the centre of an image, each 0 where R_j p is outside.

    The angles, float32 [n] in radians, must come in pairs +a and -a of equal weight. A picture mirrored left to right
    or top to bottom then gives the mirrored sum: the four mirror images share the positions of a quarter of the image,
    as channels side by side in memory. The coefficients of the spline f and the result are float32 [H, W, C].
    """
    height, width, channels = coefficients.shape
    rows, columns = -(-height // 2), -(-width // 2)
    padded, stride = filters.extended(coefficients, 1, (0, 1), "reflect"), width + 2
    middle_y, middle_x = (height - 1) / 2, (width - 1) / 2
    y, x = np.mgrid[:rows, :columns].reshape(2, -1).astype(np.float32)
    y, x = y - np.float32(middle_y), x - np.float32(middle_x)

    def summed(look_up, start, y, x, unroll=1):
        def add(j, total):
            sine, cosine = jnp.sin(angles[j]), jnp.cos(angles[j])
            v, u = cosine * y + sine * x + middle_y, cosine * x - sine * y + middle_x
            inside = (v >= 0) & (v <= height - 1) & (u >= 0) & (u <= width - 1)
            top, left = jnp.clip(jnp.floor(v), 0, height - 2), jnp.clip(jnp.floor(u), 0, width - 2)
            down, across = _weights(v - top), _weights(u - left)
            top, left = top.astype(jnp.int32), left.astype(jnp.int32)
            scale = jnp.where(inside, weights[j], 0.0)
            for k in range(4):
                row = sum(across[i][..., None] * look_up(top, left, k, i) for i in range(4))
                total += (scale * down[k])[..., None] * row
            return total

        return staging.loop(len(angles), add, start, unroll)

    def side_by_side(padded):
        table = jnp.concatenate([padded, padded[:, ::-1], padded[::-1], padded[::-1, ::-1]], axis=-1)
        table = table.reshape(-1, 4 * channels)

        def look_up(top, left, k, i):
            return table.at[top * stride + left + (k * stride + i)].get(mode="promise_in_bounds")

        total = summed(look_up, jnp.zeros_like(table[: rows * columns]), y, x)
        return jnp.moveaxis(total.reshape(rows, columns, 4, channels), 2, 0)

    def one_by_one(padded):
        # A GPU's kernel reads mirrored pixels where they are, without a table four times as large.
        table = padded.reshape(-1, channels)
        # Of each mirror image of the table the first pixel, and the steps to the next row and column.
        last, end = (height + 1) * stride, stride - 1
        images = (0, end, last, last + end), (stride, stride, -stride, -stride), (1, -1, 1, -1)
        corner, down, right = (np.array(v, np.int32)[:, None] for v in images)

        def look_up(top, left, k, i):
            return table.at[corner + down * (top + k) + right * (left + i)].get(mode="promise_in_bounds")

        start = jnp.broadcast_to(jnp.zeros_like(table[None, : rows * columns]), (4, rows * columns, channels))
        total = summed(look_up, start, y[None], x[None], unroll=3)  # three in a kernel
        return total.reshape(4, rows, columns, channels)

    parts = staging.by_platform(padded, cuda=one_by_one, default=side_by_side)
    top = jnp.concatenate([parts[0], parts[1][:, : width - columns][:, ::-1]], axis=1)
    bottom = jnp.concatenate([parts[2], parts[3][:, : width - columns][:, ::-1]], axis=1)
    return jnp.concatenate([top, bottom[: height - rows][::-1]])


def _weights(fraction):
    """Computes B at the four coefficients around a position, `fraction` in [0, 1] behind the second."""
    rest = 1 - fraction
    return (
        rest**3 * (1 / 6),
        2 / 3 - fraction**2 * (1 - 0.5 * fraction),
        2 / 3 - rest**2 * (1 - 0.5 * rest),
        fraction**3 * (1 / 6),
    )
