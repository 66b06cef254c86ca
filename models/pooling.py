"""Pooling of NHWC maps, sizes as in PyTorch."""

import jax.numpy as jnp
import numpy as np
from jax import lax


def max_pool(x, size, stride, padding=0, *, ceil=False):
    """Maximum over windows of size x size pixels, [N, H, W, C] -> [N, H', W', C].

    H' = floor((H + 2 padding - size) / stride) + 1. With `ceil` it is rounded up, so that the last
    window may reach over the edge; a window that would start in the upper padding or beyond is left
    out. What lies outside the image never is the maximum.

    Raises:
      ValueError: the maps are too small for one window.
    """
    smallest = size - 2 * padding - (stride - 1 if ceil else 0)
    if min(x.shape[1:3]) < smallest:
        raise ValueError(f"expected maps of at least {smallest} pixels to pool, found {x.shape[1:3]}")
    pads = [(padding, padding + (_overhang(full, size, stride, padding) if ceil else 0)) for full in x.shape[1:3]]
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), [(0, 0), *pads, (0, 0)])


def _overhang(full, size, stride, padding):
    """Pixels by which the last window of `ceil` reaches over the padded edge."""
    last = -(-(full + 2 * padding - size) // stride) * stride  # where it starts, in padded pixels
    if last >= full + padding:
        last -= stride
    return max(0, last + size - full - 2 * padding)


def mean_pool(x):
    """Mean of each 2x2 block, [N, H, W, C] -> [N, H // 2, W // 2, C]; odd rests are cut."""
    n, h, w, c = x.shape
    if min(h, w) < 2:
        raise ValueError(f"expected maps of at least 2 pixels to halve, found {(h, w)}")
    return x[:, : h // 2 * 2, : w // 2 * 2].reshape(n, h // 2, 2, w // 2, 2, c).mean((2, 4))


def adaptive_mean_pool(x, size):
    """Averages over size x size windows that cover any map: [N, H, W, C] -> [N, size, size, C].

    Window i has the rows floor(i H / size) ... ceil((i + 1) H / size) - 1; they overlap where size
    does not divide H, and repeat pixels where the map is smaller than `size`. PyTorch's
    AdaptiveAvgPool2d.
    """
    if x.shape[1:3] == (size, size):
        return x
    rows, columns = (jnp.asarray(_windows(full, size)) for full in x.shape[1:3])
    y = jnp.einsum("ph,nhwc,qw->npqc", rows, x.astype(jnp.float32), columns, precision="highest")
    return y.astype(x.dtype)


def _windows(full, size):
    """float32 [size, full]: row i weighs the pixels of window i equally."""
    i, pixel = np.arange(size)[:, None], np.arange(full)
    inside = (pixel >= i * full // size) & (pixel < -(-(i + 1) * full // size))
    return (inside / inside.sum(1, keepdims=True)).astype(np.float32)
