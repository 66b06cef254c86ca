"""Noise of a given spectrum: random phases, one inverse Fourier transform."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from corruptions.primitives import fourier, staging
from corruptions.primitives.trigonometry import sine_cosine


def phase_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Returns the shape of the phases that a field needs: (H, W / 2), both sides rounded up to even
    ones.
    """
    height, width = _even(shape)
    return height, width // 2


def blue(distance: np.ndarray) -> np.ndarray:
    """Returns an amplitude that grows with the frequency d: no low frequencies, mean zero."""
    return distance


def brown(distance: np.ndarray) -> np.ndarray:
    """Returns the amplitude 1 / (d^2 + 1): mostly low frequencies; the largest is the mean itself,
    which is random.
    """
    return 1 / (distance**2 + 1)


def spectral_field(
    phases: jax.Array, shape: tuple[int, ...], amplitude: Callable[[np.ndarray], np.ndarray]
) -> jax.Array:
    """Computes the real part of the inverse transform of A exp(i phase), divided by its standard
    deviation (mean kept).

    A = amplitude(d), d the distance of a frequency from 0, in steps of 1 / min(H, W) cycles a
    pixel. The phases are the left half of the spectrum, frequency 0 being at (H / 2, W / 2); the
    right half is the left one turned by 180 degrees, the sign unchanged. As index H - 1 - i is not
    the opposite frequency, the spectrum is not Hermitian, and amplitudes vary: that is the
    original's noise. Odd sides are cropped from the next even ones.

    Args:
      phases: float32 [..., *phase_shape(shape)], radians.
      shape: (H, W) or (H, W, 3).
      amplitude: `blue` or `brown`.

    Returns:
      float32 [..., H, W]; float32 arithmetic costs less than 1e-5 standard deviations.
    """
    height, width = _even(shape)

    def as_one_array(sine, cosine):
        waves = staging.stage(jax.lax.complex(cosine, sine))  # in one kernel of a GPU; a TPU compiles it longer
        return waves.imag, waves.real

    def stacked(*waves):
        return tuple(staging.stage(jnp.stack(waves)))

    waves = jax.lax.platform_dependent(*sine_cosine(phases), tpu=stacked, default=as_one_array)
    sine, cosine = map(_around, waves)
    # Hermitian part of the spectrum. The phase of the opposite frequency stands one row and one
    # column before.
    real = cosine[..., 1:] + jnp.roll(cosine[..., :-1], 1, axis=-2)
    imaginary = sine[..., 1:] - jnp.roll(sine[..., :-1], 1, axis=-2)
    gain = amplitude(_distance(height, width)).astype(np.float32)
    spectrum = jnp.roll(jax.lax.complex(real, imaginary), height // 2, axis=-2)
    spectrum *= gain.astype(np.complex64).reshape((1,) * (spectrum.ndim - 2) + gain.shape)
    field = fourier.real_inverse(spectrum, width)
    # A TPU has no reason to read the field less: it would keep the spectrum longer.
    mean = jax.lax.platform_dependent(
        field,
        spectrum[..., :1, :1].real / (height * width),
        tpu=lambda field, _: jnp.mean(field, axis=(-2, -1), keepdims=True),
        default=lambda _, mean: mean,
    )
    field /= jnp.sqrt(jnp.mean((field - mean) ** 2, axis=(-2, -1), keepdims=True))
    return field[..., : shape[0], : shape[1]]


def _even(shape):
    return tuple(n + n % 2 for n in shape[:2])


def _around(left):
    """Columns W / 2 - 1 to W (which is column 0) of the whole spectrum, from its left half."""
    return jnp.concatenate([left[..., -1:], left[..., ::-1, ::-1], left[..., :1]], axis=-1)


def _distance(height, width):
    """Distances of frequencies from 0 in the order of irfft2, [H, W / 2 + 1]."""
    side = min(height, width)
    return np.hypot(np.fft.fftfreq(height, 1 / side)[:, None], np.fft.rfftfreq(width, 1 / side))
