"""Filters and noise by Fourier and cosine transforms."""

import functools
import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import special, staging

_product = functools.partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)


def filter_symmetric(image: jax.Array, kernel: jax.Array) -> jax.Array:
    """Correlates every channel of an image [H, W, C] with a kernel that is even along both axes, borders mirrored.

    The kernel is float32 [2 r + 1, 2 r + 1], k[a, b] = k[-a, b] = k[a, -b] about its centre, and may be traced; H and
    W are above r. The mirror axis is the border sample itself (OpenCV: reflect-101). The image is mirrored by r. Its
    rows are transformed; there each frequency has its own even column of weights, real sums of cosines.
    """
    return staging.by_platform(image, kernel, tpu=filter_by_cosines, default=_filter_by_transforms)


def _filter_by_transforms(image, kernel):
    """Transforms whole rows of W C values, in which the samples of a channel are C apart: no plane is cut out."""
    (height, width, channels), reach = image.shape, kernel.shape[0] // 2
    side = fast_size(width + 2 * reach)
    # What stands beyond the reach, up to a size that transforms fast, touches no sample of the result.
    rows = jnp.pad(image, ((reach, reach), (reach, side - width - reach), (0, 0)), mode="reflect")
    rows = jnp.fft.rfft(rows.reshape(height + 2 * reach, -1))
    cosines = np.cos(2 * np.pi / side * np.outer(np.arange(reach + 1), np.arange(rows.shape[1])))
    cosines[1:] *= 2  # the same sample to the left and to the right
    weights = _product("ab,bv->av", kernel[reach:, reach:], cosines.astype(np.float32))[:, None].astype(rows.dtype)
    filtered = weights[0] * rows[reach : reach + height]
    for a in range(1, reach + 1):
        filtered += weights[a] * (rows[reach - a :][:height] + rows[reach + a :][:height])
    filtered = jnp.fft.irfft(filtered, side * channels)[:, reach * channels :]
    return filtered[:, : width * channels].reshape(image.shape)


def correlate(image: jax.Array, kernel: jax.Array) -> jax.Array:
    """Correlates an image with a kernel where the kernel lies inside of it: y[i, j] = sum_ab k[a, b] x[i + a, j + b].

    The image is float32 [H + 2 r, W + 2 r, C], extended by the kernel's reach r; the kernel [2 r + 1, 2 r + 1], or
    one for each channel [C, 2 r + 1, 2 r + 1]; may be traced. The result is [H, W, C].
    """
    size = kernel.shape[-1]
    sides = [fast_size(side) for side in image.shape[:2]]
    down, across = (np.exp(2j * np.pi * np.outer(np.arange(n), np.arange(size)) / n) for n in sides)
    across = across[: sides[1] // 2 + 1]
    columns = _product("...ab,pvb->...apv", kernel, np.stack([across.real, across.imag]).astype(np.float32))
    both = _product("qua,...apv->...qpuv", np.stack([down.real, down.imag]).astype(np.float32), columns)
    transfer = jax.lax.complex(
        both[..., 0, 0, :, :] - both[..., 1, 1, :, :], both[..., 0, 1, :, :] + both[..., 1, 0, :, :]
    )
    spectrum = jnp.fft.rfft2(jnp.moveaxis(image, -1, 0), s=sides)
    filtered = jnp.fft.irfft2(spectrum * transfer.reshape(-1, *transfer.shape[-2:]), s=sides)
    height, width = (side - size + 1 for side in image.shape[:2])
    return jnp.moveaxis(filtered[:, :height, :width], 0, -1)


def filter_by_cosines(image: jax.Array, kernel: jax.Array) -> jax.Array:
    """Computes `filter_symmetric` by four real matrix products, on any platform.

    An axis of n samples mirrored about its ends is even with period 2 (n - 1): n cosines are its transform (the
    discrete cosine transform of type I, its own inverse up to a factor), and an even kernel multiplies them.
    """
    reach, (height, width) = kernel.shape[0] // 2, image.shape[:2]
    (down, vertical), (right, horizontal) = (_cosines(size, reach) for size in (height, width))
    transfer = _product("ua,ab,vb->uv", vertical, kernel, horizontal)
    spectrum = _product("vx,uxc->uvc", right, _product("uy,yxc->uxc", down, image)) * transfer[..., None]
    return _product("xv,yvc->yxc", right, _product("yu,uvc->yvc", down, spectrum))


def _cosines(size, reach):
    """Makes the transform of a mirrored axis, scaled to be its own inverse, [size, size], and the cosines of a
    kernel's offsets, [size, 2 reach + 1].
    """
    side = 2 * (size - 1)
    ends = np.full(size, 2 / np.sqrt(side), np.float32)  # all samples but the ends have a mirror image
    ends[[0, -1]] /= 2
    transform = waves(jnp.arange(size), side, size)[0] * ends[None]
    return transform, waves(jnp.abs(jnp.arange(-reach, reach + 1)), side, size)[0]


def filter_by_products(image: jax.Array, transfer: jax.Array, reach: int) -> jax.Array:
    """Extends an image [H, W, C] by `reach` pixels of its border, multiplies its spectrum and transforms back.

    That takes four matrix products. A TPU is faster at these than at its Fourier transform, which it also takes long to
    compile; on a CPU the transform is faster. The transfer is float32 [2, H', W' // 2 + 1], the real and the imaginary
    part, with H' = H + 2 reach and W' = W + 2 reach.
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
    """Computes `irfft2` of complex64 [..., H, W // 2 + 1] for a `width` W; on a TPU by two matrix products."""

    def transform(spectrum):
        return jnp.fft.irfft2(spectrum, s=(spectrum.shape[-2], width))

    return staging.by_platform(spectrum, tpu=lambda x: inverse_by_products(x, width), default=transform)


def inverse_by_products(spectrum: jax.Array, width: int) -> jax.Array:
    """Computes `real_inverse` by two products, on any platform."""
    (_, up), (_, left) = _transforms(spectrum.shape[-2], 0, False), _transforms(width, 0, True)
    columns = _product("qyku,k...uv->q...yv", up, jnp.stack([spectrum.real, spectrum.imag]))
    return _product("xkv,k...yv->...yx", left[0], columns)


def waves(offsets: jax.Array, side: int, frequencies: int) -> jax.Array:
    """Computes the cosines and sines of 2 pi u offset / side, u = 0, ..., frequencies - 1: float32 [2, frequencies, n].

    `offsets`, int32 [n], are below `side` in magnitude; `side` is at most 46,340, and `frequencies` at most `side`.
    """
    turns = (jnp.outer(jnp.arange(frequencies), offsets) % side).astype(jnp.float32)
    return jnp.stack(special.sine_cosine(turns * np.float32(2 * np.pi / side))[::-1])


def _transforms(size, reach, half):
    """Makes the matrices of the transform of an extended axis, and of its inverse without the extension.

    Both act on the real and the imaginary part: [2, frequencies, 2, size], [2, size, 2, frequencies]. Half of the
    frequencies are enough for a real result. They are computed on the device: other platforms trace them too and must
    not build matrices in vain.
    """
    side = size + 2 * reach
    frequencies = side // 2 + 1 if half else side
    whole = waves(jnp.arange(side), side, frequencies)
    inside = whole[..., reach : reach + size]
    # The ends of the axis also count for the samples that repeat them.
    first, last = (part.sum(-1, keepdims=True) for part in (whole[..., : reach + 1], whole[..., reach + size - 1 :]))
    cosine, sine = jnp.concatenate([first, inside[..., 1:-1], last], -1)
    u = np.arange(frequencies)
    twice = np.where((u == 0) | (2 * u == side), 1, 2 if half else 1)
    back = jnp.swapaxes(inside, 1, 2) * np.float32(twice / side)[None, None]
    return _on_parts(cosine, -sine), _on_parts(*back)


def _on_parts(real, imaginary):
    """Writes a complex matrix [n, m] for real and imaginary parts: [2, n, 2, m]."""
    return jnp.stack([jnp.stack([real, -imaginary], 1), jnp.stack([imaginary, real], 1)])


def fast_size(minimum: int) -> int:
    """Returns the smallest whole number from `minimum` on without prime factors above 5."""
    return next(size for size in itertools.count(minimum) if 30**20 % size == 0)  # 2, 3 and 5, up to 20 times each


def phase_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Returns the shape of the phases of a `spectral_field`: (H, W / 2), both sides first rounded up to even."""
    height, width = _even(shape)
    return height, width // 2


def blue(distance: np.ndarray) -> np.ndarray:
    """Returns an amplitude that grows with the frequency d: no low frequencies, mean zero."""
    return distance


def brown(distance: np.ndarray) -> np.ndarray:
    """Returns the amplitude 1 / (d^2 + 1): mostly low frequencies; the largest is the random mean itself."""
    return 1 / (distance**2 + 1)


def spectral_field(
    phases: jax.Array, shape: tuple[int, ...], amplitude: Callable[[np.ndarray], np.ndarray]
) -> jax.Array:
    """Computes noise of a spectrum: the real part of the inverse transform of A exp(i phase), divided by its standard
    deviation, mean kept.

    A = amplitude(d), d the distance of a frequency from 0, in steps of 1 / min(H, W) cycles a pixel. The phases are
    the left half of the spectrum, frequency 0 being at (H / 2, W / 2); the right half is the left one turned by 180
    degrees, the sign unchanged. As index H - 1 - i is not the opposite frequency, the spectrum is not Hermitian and
    amplitudes vary: the original's noise is like that. Odd sides are cropped from the next even ones.

    Args:
      phases: float32 [..., *phase_shape(shape)], radians.
      shape: (H, W) or (H, W, 3); the result is float32 [..., H, W], within 1e-5 standard deviations.
      amplitude: `blue` or `brown`.
    """
    height, width = _even(shape)
    sine, cosine = special.sine_cosine(phases)
    both = staging.stage(jax.lax.complex(cosine, sine))
    sine, cosine = _around(both.imag), _around(both.real)
    # Hermitian part of the spectrum. The phase of the opposite frequency stands one row and one column before.
    real = cosine[..., 1:] + jnp.roll(cosine[..., :-1], 1, axis=-2)
    imaginary = sine[..., 1:] - jnp.roll(sine[..., :-1], 1, axis=-2)
    side = min(height, width)
    distance = np.hypot(np.fft.fftfreq(height, 1 / side)[:, None], np.fft.rfftfreq(width, 1 / side))
    gain = amplitude(distance).astype(np.float32)
    spectrum = jnp.roll(jax.lax.complex(real, imaginary), height // 2, axis=-2)
    spectrum *= gain.astype(np.complex64).reshape((1,) * (spectrum.ndim - 2) + gain.shape)
    field, mean = real_inverse(spectrum, width), spectrum[..., :1, :1].real / (height * width)
    field /= jnp.sqrt(jnp.mean((field - mean) ** 2, axis=(-2, -1), keepdims=True))
    return field[..., : shape[0], : shape[1]]


def _even(shape):
    return tuple(n + n % 2 for n in shape[:2])


def _around(left):
    """Returns columns W / 2 - 1 to W (which is column 0) of the whole spectrum, from its left half."""
    return jnp.concatenate([left[..., -1:], left[..., ::-1, ::-1], left[..., :1]], axis=-1)
