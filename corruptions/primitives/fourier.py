"""Wide filters by the fast Fourier transform."""

import jax
import jax.numpy as jnp
import numpy as np


def filter_symmetric(image: jax.Array, kernel: jax.Array) -> jax.Array:
    """Correlates every channel with a kernel that is even along both axes, borders mirrored.

    The mirror axis is the border sample itself (OpenCV: reflect-101). The image is mirrored by the
    kernel's reach and transformed; an even kernel has a real spectrum, two small cosine sums.

    Args:
      image: float32 [H, W, C], H and W above the kernel's reach.
      kernel: float32 [2 r + 1, 2 r + 1], may be traced; k[a, b] = k[-a, b] = k[a, -b] about its
        centre.

    Returns:
      float32 [H, W, C].
    """
    height, width = image.shape[:2]
    reach = kernel.shape[0] // 2
    sides = (fast_size(height + 2 * reach), fast_size(width + 2 * reach))
    planes = jnp.moveaxis(image, -1, 0)
    planes = jnp.pad(planes, ((0, 0), (reach, reach), (reach, reach)), mode="reflect")
    spectrum = jnp.fft.rfft2(planes, s=sides)
    cosines = [np.cos(2 * np.pi * np.outer(np.arange(n), np.arange(-reach, reach + 1)) / n) for n in sides]
    vertical, horizontal = (jnp.asarray(c, jnp.float32) for c in cosines)
    highest = jax.lax.Precision.HIGHEST
    transfer = jnp.matmul(
        vertical, jnp.matmul(kernel, horizontal[: sides[1] // 2 + 1].T, precision=highest), precision=highest
    )
    filtered = jnp.fft.irfft2(spectrum * transfer.astype(spectrum.dtype)[None], s=sides)
    return jnp.moveaxis(filtered[:, reach : reach + height, reach : reach + width], 0, -1)


def fast_size(minimum: int) -> int:
    """Returns the smallest whole number from `minimum` on without prime factors above 5."""
    size = minimum
    while True:
        rest = size
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return size
        size += 1
