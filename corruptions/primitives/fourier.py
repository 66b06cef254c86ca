"""Wide filters by the fast Fourier transform."""

import functools

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


def filter_by_products(image: jax.Array, transfer: jax.Array, reach: int, mode: str) -> jax.Array:
    """Extends the image, multiplies its spectrum and transforms back, in four matrix products.

    A TPU does them faster than its Fourier transform, which it also takes long to compile; on a CPU
    the transform is faster.

    Args:
      image: float32 [H, W, C].
      transfer: float32 [2, H', W' // 2 + 1], the real and the imaginary part, H' = H + 2 reach and
        W' = W + 2 reach.
      reach: pixels by which the image is extended on all sides.
      mode: of `numpy.pad`.

    Returns:
      float32 [H, W, C].
    """
    down, up = _transforms(image.shape[0], reach, mode, False)
    right, left = _transforms(image.shape[1], reach, mode, True)
    product = functools.partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)
    spectrum = product("kuy,yxc->kuxc", down[:, :, 0], image)
    real, imaginary = product("qvkx,kuxc->quvc", right, spectrum)
    real, imaginary = (
        transfer[0, ..., None] * real - transfer[1, ..., None] * imaginary,
        transfer[0, ..., None] * imaginary + transfer[1, ..., None] * real,
    )
    columns = product("qyku,kuvc->qyvc", up, jnp.stack([real, imaginary]))
    return product("xkv,kyvc->yxc", left[0], columns)


@functools.lru_cache
def _transforms(size, reach, mode, half):
    """Matrices of the transform of an extended axis and of its inverse without what was extended.

    Both act on the real and the imaginary part: [2, frequencies, 2, size], [2, size, 2,
    frequencies]. Half of the frequencies are enough where the result is real.
    """
    side = size + 2 * reach
    frequencies = side // 2 + 1 if half else side
    wave = np.exp(-2j * np.pi / side * (np.outer(np.arange(frequencies), np.arange(side)) % side))
    forward = wave @ np.pad(np.eye(size), ((reach, reach), (0, 0)), mode=mode)
    twice = np.where((np.arange(frequencies) == 0) | (2 * np.arange(frequencies) == side), 1, 2 if half else 1)
    back = wave[:, reach : reach + size].conj().T * (twice / side)
    return tuple(
        np.array([[m.real, -m.imag], [m.imag, m.real]], np.float32).transpose(0, 2, 1, 3) for m in (forward, back)
    )


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
