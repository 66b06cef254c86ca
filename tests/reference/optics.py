"""References of the lens aberrations: correlation by SciPy, polynomials and radii from the tables of optics."""

import numpy as np
import scipy.ndimage
import scipy.special

# Fringe polynomials, counted from 0.
POLYNOMIALS = {
    0: lambda r, t: np.ones_like(r),
    1: lambda r, t: r * np.cos(t),
    2: lambda r, t: r * np.sin(t),
    3: lambda r, t: 2 * r**2 - 1,
    4: lambda r, t: r**2 * np.cos(2 * t),
    5: lambda r, t: r**2 * np.sin(2 * t),
    6: lambda r, t: (3 * r**3 - 2 * r) * np.cos(t),
    7: lambda r, t: (3 * r**3 - 2 * r) * np.sin(t),
    8: lambda r, t: 6 * r**4 - 6 * r**2 + 1,
    9: lambda r, t: r**3 * np.cos(3 * t),
    10: lambda r, t: r**3 * np.sin(3 * t),
}
WAVEFRONT_RMS = {3: 3, 4: 6, 5: 6, 6: 8, 7: 8, 8: 5, 9: 8, 10: 8}  # a / sqrt of this
RADIUS = {3: 5.66, 4: 2.83, 5: 2.83, 6: 4.90, 7: 4.90, 8: 9.80, 9: 3.46, 10: 3.46}  # RMS by rays, times a q, pixels

# Measured on the kernels that OpticsBench released: RMS radius about the centroid in pixels, red/green/blue, and
# MTF50 of the green kernel in cycles per pixel; severities 1 to 5.
RELEASED_RADII = {
    3: "2.15/2.63/3.81 2.82/3.31/4.43 4.40/4.77/5.68 5.63/5.88/6.62 7.66/7.71/8.13",
    4: "3.34/2.74/2.53 4.02/3.40/3.11 5.15/4.48/3.94 6.88/6.16/5.30 8.07/7.44/6.36",
    5: "3.39/2.79/2.62 4.09/3.47/3.16 5.46/4.75/4.15 7.11/6.28/5.38 8.67/7.81/6.65",
    6: "3.99/3.37/3.09 4.95/4.42/3.94 6.65/6.12/5.61 7.57/7.06/6.49 8.19/7.74/7.13",
    7: "3.99/3.37/3.09 4.95/4.42/3.94 6.65/6.12/5.61 7.57/7.06/6.49 8.19/7.74/7.13",
    8: "3.86/3.76/4.03 4.94/4.45/4.77 6.60/6.11/5.57 7.99/7.03/5.89 9.37/8.58/6.90",
    9: "3.33/2.73/2.62 4.38/3.75/3.39 6.11/5.43/4.69 7.27/6.68/5.75 7.87/7.55/6.61",
    10: "3.34/2.74/2.55 4.36/3.76/3.34 6.09/5.43/4.72 7.26/6.69/5.79 7.81/7.43/6.48",
}
RELEASED_MTF50 = {
    3: (0.112, 0.083, 0.054, 0.043, 0.032),
    4: (0.107, 0.080, 0.058, 0.041, 0.034),
    5: (0.105, 0.079, 0.055, 0.041, 0.032),
    6: (0.097, 0.065, 0.044, 0.038, 0.035),
    7: (0.097, 0.065, 0.044, 0.038, 0.035),
    8: (0.090, 0.073, 0.046, 0.037, 0.030),
    9: (0.116, 0.076, 0.049, 0.040, 0.035),
    10: (0.116, 0.076, 0.049, 0.039, 0.035),
}
DISK_MTF50 = (0.115, 0.087, 0.058, 0.044, 0.035)  # of ImageNet-C's disks at 224 pixels


def centroid(kernel):
    """Row and column of a kernel's centre of mass, from its middle."""
    offsets = np.arange(kernel.shape[0]) - kernel.shape[0] // 2
    return np.array([kernel.sum(1) @ offsets, kernel.sum(0) @ offsets]) / kernel.sum()


def radius(kernel):
    """RMS distance of a kernel's mass from its centroid, pixels."""
    offsets = np.arange(kernel.shape[0]) - kernel.shape[0] // 2
    row, column = centroid(kernel)
    squares = (offsets[:, None] - row) ** 2 + (offsets - column) ** 2
    return np.sqrt((kernel * squares).sum() / kernel.sum())


def airy(distance, q):
    """Intensity of a point's image by a lens without aberration, 1 in the middle: (2 J1(v) / v)^2, v = pi r / q."""
    v = np.pi * np.maximum(distance, 1e-9) / q
    return (2 * scipy.special.j1(v) / v) ** 2


def diffraction_mtf(frequency, q):
    """MTF of a lens without aberration: 2 / pi (acos nu - nu sqrt(1 - nu^2)), nu = f q."""
    nu = np.minimum(frequency * q, 1)
    return 2 / np.pi * (np.arccos(nu) - nu * np.sqrt(1 - nu**2))


def filtered(image, kernel, border):
    """The image, float64 [H, W, C], correlated with a kernel, or one a channel, clipped to [0, 1]."""
    mode = {"reflect": "mirror", "zeros": "constant"}[border]
    kernels = np.broadcast_to(kernel, (image.shape[-1], *kernel.shape[-2:]))
    planes = [scipy.ndimage.correlate(image[..., c], k, mode=mode) for c, k in enumerate(kernels)]
    return np.clip(np.stack(planes, -1), 0, 1)
