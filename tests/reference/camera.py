"""References of the camera corruptions in NumPy and SciPy, float64, given the draws; and the exact law of a sensor."""

import numpy as np
import scipy.ndimage
import scipy.stats

DARK = ((0.60, 600, 0.008), (0.50, 250, 0.012), (0.40, 120, 0.018), (0.30, 50, 0.026), (0.20, 30, 0.038))
ISO = (0.056, 0.084, 0.126, 0.182, 0.266)


def exposed(light, photons, uniform, noise):
    """uint8 of clip(min(K / N, 1) + noise), K the quantile of the Poisson law of mean N light."""
    counts = scipy.stats.poisson.ppf(uniform, photons * light)
    return np.floor(255 * np.clip(np.minimum(counts / photons, 1) + noise, 0, 1) + 1e-9)


def dark(image, level, uniform, noise):
    scale, photons, _ = DARK[level]
    low, high = image.min(), image.max()
    stretched = image if high == low else (image - low) / (high - low)
    return exposed(scale * stretched**2, photons, uniform, noise)


def iso_noise(image, level, uniform, noise):
    return exposed(image, 25, uniform, noise)


def elastic_noise(uniform, alpha):
    """A displacement of imagecorruptions' elastic_transform from its uniform numbers in (-1, 1)."""
    height, width = uniform.shape
    field = 0.005 * height * uniform
    return alpha * scipy.ndimage.gaussian_filter(field, (0.01 * height, 0.01 * width), mode="reflect", truncate=3)


def displaced(image, dx, dy):
    rows, columns = np.mgrid[: image.shape[0], : image.shape[1]]
    places = (rows + dy, columns + dx)
    return np.stack(
        [scipy.ndimage.map_coordinates(c, places, order=1, mode="reflect") for c in np.moveaxis(image, -1, 0)], -1
    )


def law(light, photons, sigma):
    """Mean and standard deviation of the uint8 output of one value."""
    counts = np.arange(int(photons * light + 12 * np.sqrt(photons * light) + 30))
    weights = scipy.stats.poisson.pmf(counts, photons * light)
    levels = np.arange(1, 256)
    above = scipy.stats.norm.cdf((np.minimum(counts / photons, 1)[:, None] - levels / 255) / sigma)
    survival = weights @ above
    mean = survival.sum()
    return mean, np.sqrt(((2 * levels - 1) * survival).sum() - mean**2)
