"""Point spread functions of lenses by Fourier optics, from Zernike coefficients; NumPy, on the host.

A wavefront W, in wavelengths, over the unit disk of the pupil gives the amplitude A of a point's image, its Fourier
transform; the point spread function is |A|^2 averaged over the area of each pixel (Goodman, Introduction to Fourier
Optics).
"""

import functools
import math
from collections.abc import Mapping

import numpy as np

NUMBERS = range(37)  # the Fringe set, counted from 0
_ANGLES = np.deg2rad(np.arange(0, 180, 15))


def zernike(number: int, rho: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Evaluates the Fringe polynomial Z_number = R_n^m(rho) cos(m theta) or sin(m theta), 1 at the rim.

    `rho` in [0, 1] and `theta` in radians are points of the pupil. Fringe order (University of Arizona) counted from
    0: 0 piston, 1 and 2 tilt, 3 defocus, 4 and 5 astigmatism, 6 and 7 coma, 8 spherical aberration, 9 and 10 trefoil,
    up to 36. Raises ValueError for another number.
    """
    if number not in NUMBERS:
        raise ValueError(f"expected Zernike numbers 0 to {NUMBERS[-1]} of the Fringe set, found {number!r}")
    group = math.isqrt(number)
    place = number - group**2
    m = group - place // 2
    n = 2 * group - m
    radial = np.zeros_like(rho)
    for k in range((n - m) // 2 + 1):
        divisor = math.factorial(k) * math.factorial((n + m) // 2 - k) * math.factorial((n - m) // 2 - k)
        radial += (-1) ** k * math.factorial(n - k) / divisor * rho ** (n - 2 * k)
    return radial * (np.sin(m * theta) if m and place % 2 else np.cos(m * theta))


@functools.lru_cache
def _pupil(samples):
    """Makes the coordinates of the pupil's samples: their X, and rho and theta of the square of them."""
    axis = (2 * np.arange(samples) + 1 - samples) / samples
    return axis, np.hypot(axis, axis[:, None]), np.arctan2(axis[:, None], axis)


def psf(
    coefficients: Mapping[int, float],
    q: float,
    *,
    shift: float = 0.0,
    size: int = 25,
    samples: int = 96,
    parts: int | None = None,
) -> np.ndarray:
    """Computes the point spread function of a lens, cut to a square and divided by its sum.

    A(x, y) = sum over the pupil of exp(2 pi i W) exp(-2 pi i (X x + Y y) / (2 q)), W = sum_k c_k Z_k.

    Args:
      coefficients: {Zernike number: c_k in wavelengths}.
      q: wavelength times f-number over the pixel pitch: the size of the diffraction pattern, pixels.
      shift: displacement to the right and down, pixels.
      size: side of the result, odd, pixels.
      samples: samples of the pupil along an axis; the field repeats after `samples` q pixels.
      parts: parts of a pixel along an axis, over which |A|^2 is averaged; None resolves the pattern, 2 / q.

    Returns:
      float64 [size, size], rows from above, columns from the left.

    Raises:
      ValueError: a Zernike number that does not exist, a coefficient that is not finite, a `q` that is not positive, an
        even `size`, or a field that repeats within it.
    """
    if not (np.isfinite(q) and q > 0):
        raise ValueError(f"expected a positive q in pixels, found {q!r}")
    if size < 1 or size % 2 == 0:
        raise ValueError(f"expected an odd size in pixels, found {size!r}")
    if samples * q < size:
        raise ValueError(
            f"expected samples of the pupil whose field does not repeat within {size} pixels, {math.ceil(size / q)} or more with "
            f"q={q:g}, found {samples}"
        )
    wrong = {k: c for k, c in coefficients.items() if not np.isfinite(c)}
    if wrong:
        raise ValueError(f"expected finite Zernike coefficients in wavelengths, found {wrong}")
    parts = math.ceil(2 / q) if parts is None else parts
    axis, rho, theta = _pupil(samples)
    wavefront = sum((c * zernike(k, rho, theta) for k, c in coefficients.items()), np.zeros_like(rho))
    field = np.where(rho <= 1, np.exp(2j * np.pi * wavefront), 0)
    places = (np.arange(size * parts) + 0.5) / parts - size / 2 - shift
    waves = np.exp(-1j * np.pi * np.outer(places, axis) / q)
    intensity = np.abs(waves @ field @ waves.T) ** 2
    kernel = intensity.reshape(size, parts, size, parts).sum((1, 3))
    return kernel / kernel.sum()


def mtf(kernel: np.ndarray, frequency: float) -> float:
    """Computes the modulation transfer function of a kernel [n, n], n odd, at a frequency in cycles per pixel: |OTF|
    averaged over angles 0, 15, ..., 165.
    """
    offsets = np.arange(kernel.shape[0]) - kernel.shape[0] // 2
    rows, columns = (np.exp(-2j * np.pi * frequency * np.outer(f(_ANGLES), offsets)) for f in (np.sin, np.cos))
    return float(np.abs(np.einsum("ka,ab,kb->k", rows, kernel, columns)).mean() / kernel.sum())


def mtf50(kernel: np.ndarray) -> float:
    """Finds the frequency at which `mtf` first falls to one half, cycles per pixel; 0.5 where it does not before."""
    frequencies = np.linspace(0, 0.5, 501)
    values = np.array([mtf(kernel, f) for f in frequencies])
    if (values >= 0.5).all():
        return 0.5
    i = int(np.argmax(values < 0.5))
    return float(np.interp(0.5, values[[i, i - 1]], frequencies[[i, i - 1]]))


def waves_matching(kernel: np.ndarray, number: int, q: float, size: int) -> float:
    """Finds the coefficient with which one aberration blurs as much as a kernel, in wavelengths.

    The smallest c >= 0 for which `psf({number: c}, q)` has the kernel's `mtf` at the kernel's `mtf50`, to 1e-4: both are
    one half there, or both have the kernel's value at 0.5 cycles per pixel, where the kernel's stays above one half.

    Args:
      kernel: [n, n], n odd, milder than no kernel but stronger than the lens without aberration.
      number: a Zernike number.
      q, size: see `psf`.
    """
    frequency = mtf50(kernel)
    wanted = mtf(kernel, frequency)

    def milder(waves):
        return mtf(psf({number: waves}, q, size=size), frequency) > wanted

    low, high = 0.0, 0.04
    while milder(high):
        low, high = high, high + 0.05
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if milder(middle) else (low, middle)
    return high
