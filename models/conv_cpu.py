"""2-D convolution, NHWC, HWIO, whose backward pass is fast on a CPU, also inside `lax.scan`.

XLA's CPU compiler has fast convolution kernels, but they are chosen only for the canonical layout (`b01f_01io->b01f`),
and convolutions are rewritten to that layout only in the entry computation. The two backward convolutions that JAX
derives are not canonical, so inside `lax.scan` or `fori_loop` (every scanned training step) they fall to a scalar loop
that is tens of times slower. Here the three convolutions are written in canonical form by hand:

* forward: as it stands;
* input gradient: output gradient * flipped, transposed kernel; with stride s all s x s phases of
  the input are computed as channels of one stride-1 convolution and interleaved (no multiplication
  with inserted zeros);
* weight gradient: images transposed to [C_in, H, W, N], output gradient used as the kernel
  [H', W', N, C_out].

Reverse mode only (a `jax.custom_vjp`), to any order. Results equal `lax.conv_general_dilated` to float32 rounding.

Grouped convolutions have no fast kernel at all: `grouped_conv2d` writes them as one matrix product per group, or, where each
channel is a group of its own, as a sum of shifted images.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

_DIMENSIONS = ("NHWC", "HWIO", "NHWC")


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def conv2d(images, kernel, strides, padding):
    """Cross-correlation y[n, i, j] = sum_(a, b) x[n, s i + a - lo, s j + b - lo] w[a, b].

    Args:
      images: float[N, H, W, C_in].
      kernel: float[K_h, K_w, C_in, C_out].
      strides: two positive ints.
      padding: ((lo, hi), (lo, hi)) in pixels, not negative.

    Returns:
      float[N, H', W', C_out] with H' = (H + lo + hi - K_h) // s + 1.
    """
    if kernel.shape[:2] == (1, 1) and not any(map(any, padding)):
        return images[:, :: strides[0], :: strides[1]] @ kernel[0, 0]
    return _canonical(images, kernel, padding, strides)


def _forward(images, kernel, strides, padding):
    return conv2d(images, kernel, strides, padding), (images, kernel)


def _backward(strides, padding, residuals, grad):
    images, kernel = residuals
    return (
        input_gradient(grad, kernel, images.shape, strides, padding),
        weight_gradient(grad, images, kernel.shape, strides, padding),
    )


conv2d.defvjp(_forward, _backward)


def input_gradient(grad, kernel, shape, strides, padding):
    """Computes dL/dx of `conv2d`, float[N, H, W, C_in].

    Args:
      grad: dL/dy, float[N, H', W', C_out].
      kernel, strides, padding: as in `conv2d`.
      shape: shape of the images.
    """
    n, height, width, c_in = shape
    size, c_out = kernel.shape[:2], kernel.shape[3]
    (top, _), (left, _) = padding
    if size == (1, 1) and not any(map(any, padding)):
        columns = grad @ kernel[0, 0].T
        holes = [
            (0, full - (s * (out - 1) + 1), s - 1) for full, out, s in zip((height, width), grad.shape[1:3], strides)
        ]
        return lax.pad(columns, jnp.zeros((), grad.dtype), [(0, 0, 0), *holes, (0, 0, 0)])
    if strides == (1, 1):
        flipped = jnp.flip(kernel, (0, 1)).swapaxes(2, 3)
        pads = [(k - 1 - lo, k - 1 - hi) for k, (lo, hi) in zip(size, padding)]
        return _canonical(grad, flipped, pads)
    # Padded row p = s q + r receives sum_m grad[q - m] kernel[r + s m]: phase r is a set of output channels.
    taps = [-(-k // s) for k, s in zip(size, strides)]
    kernel = jnp.pad(kernel, [(0, m * s - k) for m, s, k in zip(taps, strides, size)] + [(0, 0), (0, 0)])
    kernel = kernel.reshape(taps[0], strides[0], taps[1], strides[1], c_in, c_out)
    kernel = jnp.flip(kernel, (0, 2)).transpose(0, 2, 5, 1, 3, 4).reshape(*taps, c_out, -1)
    rows, cols = -(-(height + top) // strides[0]), -(-(width + left) // strides[1])
    pads = [(m - 1, q - g) for m, q, g in zip(taps, (rows, cols), grad.shape[1:3])]
    phases = _canonical(grad, kernel, pads).reshape(n, rows, cols, *strides, c_in)
    padded = phases.transpose(0, 1, 3, 2, 4, 5).reshape(n, rows * strides[0], cols * strides[1], c_in)
    return padded[:, top : top + height, left : left + width]


def weight_gradient(grad, images, shape, strides, padding):
    """Computes dL/dw of `conv2d`, float[K_h, K_w, C_in, C_out].

    Args:
      grad: dL/dy, float[N, H', W', C_out].
      images, strides, padding: as in `conv2d`.
      shape: shape of the kernel.
    """
    if shape[:2] == (1, 1) and not any(map(any, padding)):
        columns = images[:, :: strides[0], :: strides[1]].reshape(-1, shape[2])
        return (columns.T @ grad.reshape(-1, shape[3])).reshape(shape)
    # One more row and column where their number is even: planes a power of two apart would share a few cache sets.
    extra = [1 - full % 2 for full in images.shape[1:3]]
    columns = jnp.pad(images.transpose(3, 1, 2, 0), [(0, 0), (0, extra[0]), (0, extra[1]), (0, 0)])
    pads = [
        (lo, k + (out - 1) * s - full - lo)
        for k, out, s, full, (lo, _) in zip(shape, grad.shape[1:3], strides, columns.shape[1:3], padding)
    ]
    # Dilating both operands by 2 along the rows and reading every second result changes nothing in the sum, but keeps
    # XLA from handing this convolution, whose kernel is as large as the image, to YNNPACK, which is 2-3 times slower.
    (top, bottom), sides = pads
    result = lax.conv_general_dilated(
        columns,
        grad.transpose(1, 2, 0, 3),
        (2, 1),
        [(2 * top, 2 * bottom), sides],
        lhs_dilation=(2, 1),
        rhs_dilation=(2 * strides[0], strides[1]),
        dimension_numbers=_DIMENSIONS,
    )
    return result.transpose(1, 2, 0, 3)


def _canonical(images, kernel, padding, strides=(1, 1)):
    if min(images.shape[1:3]) < max(kernel.shape[:2]):  # no fast path: 2x2 maps of 256 channels take 20 times as long
        return grouped_conv2d(images, kernel, strides, padding, 1)
    return lax.conv_general_dilated(images, kernel, strides, padding, dimension_numbers=_DIMENSIONS)


def grouped_conv2d(images, kernel, strides, padding, groups):
    """Convolves each of `groups` runs of channels by its own kernels, as matrix products; one channel by one kernel as a sum of
    products, which is one loop over the result: a sixth to a 22nd of the CPU time of XLA's convolution
    (`benchmarks/results/depthwise_cpu.md`).

    With few channels a group, as in ResNeXt, a training step is 4 to 10 times as fast in `lax.scan` as with
    `lax.conv_general_dilated`, and 80 to 130 times outside of it (two cores, 32 groups of 4 and 16 channels).

    Args:
      images: float[N, H, W, C_in].
      kernel: float[K_h, K_w, C_in / groups, C_out]; output channels are ordered by group.
      strides, padding: as in `conv2d`.
      groups: divides C_in and C_out.

    Returns:
      float[N, H', W', C_out].
    """
    (k_h, k_w, c_in, c_out), n = kernel.shape, images.shape[0]
    padded = jnp.pad(images, [(0, 0), *padding, (0, 0)])
    rows, cols = ((full - k) // s + 1 for full, k, s in zip(padded.shape[1:3], (k_h, k_w), strides))
    ends = [(out - 1) * s + 1 for out, s in zip((rows, cols), strides)]
    windows = [
        padded[:, a : a + ends[0] : strides[0], b : b + ends[1] : strides[1]] for a in range(k_h) for b in range(k_w)
    ]
    if c_in == 1 and c_out == groups:
        taps = kernel.reshape(-1, 1, 1, 1, c_out)
        return sum((window * tap for window, tap in zip(windows[1:], taps[1:])), windows[0] * taps[0])
    windows = jnp.stack(windows, -2).reshape(n * rows * cols, k_h * k_w, groups, c_in)
    windows = windows.transpose(2, 0, 1, 3).reshape(groups, n * rows * cols, -1)
    kernels = kernel.reshape(k_h * k_w * c_in, groups, c_out // groups).transpose(1, 0, 2)
    return (windows @ kernels).transpose(1, 0, 2).reshape(n, rows, cols, c_out)
