"""Wide filters by Fourier and cosine transforms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import trigonometry

_product = functools.partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)


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
    return jax.lax.platform_dependent(
        image, kernel, tpu=filter_by_cosines, cuda=filter_by_halves, default=_filter_by_transforms
    )


def _filter_by_transforms(image, kernel):
    height, width = image.shape[:2]
    reach = kernel.shape[0] // 2
    sides = (fast_size(height + 2 * reach), fast_size(width + 2 * reach))
    planes = jnp.moveaxis(image, -1, 0)
    planes = jnp.pad(planes, ((0, 0), (reach, reach), (reach, reach)), mode="reflect")
    spectrum = jnp.fft.rfft2(planes, s=sides)
    transfer = _transfer(kernel, sides, sides[1] // 2 + 1)
    filtered = jnp.fft.irfft2(spectrum * transfer.astype(spectrum.dtype)[None], s=sides)
    return jnp.moveaxis(filtered[:, reach : reach + height, reach : reach + width], 0, -1)


def filter_by_halves(image: jax.Array, kernel: jax.Array) -> jax.Array:
    """Does what `filter_symmetric` does by transforms of complex planes, on any platform: their real
    part is the upper half of the image, their imaginary part the lower one.

    A real filter keeps both apart. On a GPU real planes take two transposed copies more.
    """
    reach, (height, width) = kernel.shape[0] // 2, image.shape[:2]
    half = -(-height // 2)
    planes = jnp.moveaxis(image, -1, 0)
    planes = jnp.pad(planes, ((0, 0), (reach, reach), (reach, reach)), mode="reflect")
    planes = jnp.pad(planes, ((0, 0), (0, 2 * half - height), (0, 0)))
    sides = (fast_size(half + 2 * reach), fast_size(width + 2 * reach))
    spectrum = jnp.fft.fft2(jax.lax.complex(planes[:, : half + 2 * reach], planes[:, half:]), s=sides)
    filtered = jnp.fft.ifft2(spectrum * _transfer(kernel, sides, sides[1]).astype(spectrum.dtype)[None])
    filtered = filtered[:, reach : reach + half, reach : reach + width]
    return jnp.moveaxis(jnp.concatenate([filtered.real, filtered.imag], axis=1)[:, :height], 0, -1)


def _transfer(kernel, sides, frequencies):
    """The spectrum of an even kernel, real, the first frequencies along rows: [sides[0], frequencies]."""
    reach = kernel.shape[0] // 2
    cosines = [np.cos(2 * np.pi * np.outer(np.arange(n), np.arange(-reach, reach + 1)) / n) for n in sides]
    vertical, horizontal = (jnp.asarray(c, jnp.float32) for c in cosines)
    highest = jax.lax.Precision.HIGHEST
    return jnp.matmul(vertical, jnp.matmul(kernel, horizontal[:frequencies].T, precision=highest), precision=highest)


def filter_by_cosines(image: jax.Array, kernel: jax.Array) -> jax.Array:
    """Does what `filter_symmetric` does by four real matrix products, on any platform.

    Mirrored about its ends an axis of n samples is even with period 2 (n - 1): n cosines are its
    transform (the discrete cosine transform of type I, its own inverse but for a factor), and an
    even kernel multiplies them.
    """
    reach, (height, width) = kernel.shape[0] // 2, image.shape[:2]
    (down, vertical), (right, horizontal) = (_cosines(size, reach) for size in (height, width))
    transfer = _product("ua,ab,vb->uv", vertical, kernel, horizontal)
    spectrum = _product("vx,uxc->uvc", right, _product("uy,yxc->uxc", down, image)) * transfer[..., None]
    return _product("xv,yvc->yxc", right, _product("yu,uvc->yvc", down, spectrum))


def _cosines(size, reach):
    """The transform of a mirrored axis, scaled to be its own inverse, [size, size], and the cosines
    of a kernel's offsets, [size, 2 reach + 1].
    """
    side = 2 * (size - 1)
    ends = np.full(size, 2 / np.sqrt(side), np.float32)  # all but the ends count for their mirrored ones, too
    ends[[0, -1]] /= 2
    transform = waves(jnp.arange(size), side, size)[0] * ends[None]
    return transform, waves(jnp.abs(jnp.arange(-reach, reach + 1)), side, size)[0]


def filter_by_products(image: jax.Array, transfer: jax.Array, reach: int) -> jax.Array:
    """Repeats the image's border, multiplies its spectrum and transforms back, in four matrix
    products.

    A TPU does them faster than its Fourier transform, which it also takes long to compile; on a CPU
    the transform is faster.

    Args:
      image: float32 [H, W, C].
      transfer: float32 [2, H', W' // 2 + 1], the real and the imaginary part, H' = H + 2 reach and
        W' = W + 2 reach.
      reach: pixels by which the image is extended on all sides.

    Returns:
      float32 [H, W, C].
    """
    down, up = _transforms(image.shape[0], reach, False)
    right, left = _transforms(image.shape[1], reach, True)
    spectrum = _product("kuy,yxc->kuxc", down[:, :, 0], image)
    real, imaginary = _product("qvkx,kuxc->quvc", right, spectrum)
    real, imaginary = (
        transfer[0, ..., None] * real - transfer[1, ..., None] * imaginary,
        transfer[0, ..., None] * imaginary + transfer[1, ..., None] * real,
    )
    columns = _product("qyku,kuvc->qyvc", up, jnp.stack([real, imaginary]))
    return _product("xkv,kyvc->yxc", left[0], columns)


def real_inverse(spectrum: jax.Array, width: int) -> jax.Array:
    """Computes `irfft2`: on a TPU by two matrix products, as `filter_by_products` does.

    Args:
      spectrum: complex64 [..., H, W // 2 + 1].
      width: W.

    Returns:
      float32 [..., H, W].
    """

    def transform(spectrum):
        return jnp.fft.irfft2(spectrum, s=(spectrum.shape[-2], width))

    return jax.lax.platform_dependent(spectrum, tpu=lambda x: inverse_by_products(x, width), default=transform)


def inverse_by_products(spectrum: jax.Array, width: int) -> jax.Array:
    """Does what `real_inverse` does, by two products on any platform."""
    (_, up), (_, left) = _transforms(spectrum.shape[-2], 0, False), _transforms(width, 0, True)
    columns = _product("qyku,k...uv->q...yv", up, jnp.stack([spectrum.real, spectrum.imag]))
    return _product("xkv,k...yv->...yx", left[0], columns)


def waves(offsets: jax.Array, side: int, frequencies: int) -> jax.Array:
    """Computes the cosines and sines of 2 pi u offset / side, u = 0, ..., frequencies - 1.

    Args:
      offsets: int32 [n], below `side` in magnitude.
      side: samples along the axis, at most 46,340.
      frequencies: at most `side`.

    Returns:
      float32 [2, frequencies, n].
    """
    turns = (jnp.outer(jnp.arange(frequencies), offsets) % side).astype(jnp.float32)
    return jnp.stack(trigonometry.sine_cosine(turns * np.float32(2 * np.pi / side))[::-1])


def _transforms(size, reach, half):
    """Matrices of the transform of an extended axis and of its inverse without what was extended.

    Both act on the real and the imaginary part: [2, frequencies, 2, size], [2, size, 2,
    frequencies]. Half of the frequencies are enough where the result is real. They are computed on
    the device: other platforms trace this, too, and are not to build matrices for nothing.
    """
    side = size + 2 * reach
    frequencies = side // 2 + 1 if half else side
    whole = waves(jnp.arange(side), side, frequencies)
    inside = whole[..., reach : reach + size]
    # Each end of the axis counts for all that repeat it, too.
    first, last = (part.sum(-1, keepdims=True) for part in (whole[..., : reach + 1], whole[..., reach + size - 1 :]))
    cosine, sine = jnp.concatenate([first, inside[..., 1:-1], last], -1)
    u = np.arange(frequencies)
    twice = np.where((u == 0) | (2 * u == side), 1, 2 if half else 1)
    back = jnp.swapaxes(inside, 1, 2) * np.float32(twice / side)[None, None]
    return _on_parts(cosine, -sine), _on_parts(*back)


def _on_parts(real, imaginary):
    """A complex matrix [n, m] as one for real and imaginary parts, [2, n, 2, m]."""
    return jnp.stack([jnp.stack([real, -imaginary], 1), jnp.stack([imaginary, real], 1)])


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
