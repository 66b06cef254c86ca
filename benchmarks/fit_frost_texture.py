"""Fits the constants of corruptions/primitives/frost_texture.py to the photographs of ImageNet-C.

    python -m benchmarks.fit_frost_texture

Prints AMPLITUDES and QUANTILES, and how close the textures come: some minutes. Bands are
differences of Gaussians of standard deviation 0.6 * 2^(k-1) and 0.6 * 2^k (the first band: the image
less the Gaussian of 0.6); the residual is the rest.
"""

import itertools

import jax
import numpy as np
from scipy import ndimage, optimize

from corruptions.primitives import frost_texture

# Measured on the luminance: standard deviations of the bands and of the residual; mean absolute step
# between neighbours.
BANDS = (
    (4.1, 3.8, 2.7, 1.9, 2.0, 2.5, 3.0, 3.9),
    (4.2, 4.4, 4.1, 3.9, 3.2, 2.6, 2.3, 3.2),
    (7.1, 7.2, 5.9, 4.7, 3.6, 2.5, 2.5, 4.9),
    (9.4, 8.4, 8.1, 8.0, 7.8, 6.7, 4.8, 5.6),
)
RESIDUALS = (8.9, 11.4, 11.9, 21.5)
STEPS = (7.8, 8.1, 13.6, 17.5)
SIZES = ((600, 900), (315, 560), (350, 527), (495, 660))
# The residual is aimed at this share of the measured one. It is the photographs' bright rims for a good part, which lie
# within one sheet; our slow changes go on beyond it, so that as much of them would leave too little for the rest.
RESIDUAL_SHARES = (1.0, 0.75, 0.9, 0.75)
SEEDS = 5
SPARSE = 17 * np.arange(400)  # pixels far and wide: the distribution of an endless sheet


def band_deviations(image):
    """Standard deviations of the eight bands and the residual, float [9]."""
    levels = [image] + [ndimage.gaussian_filter(image, 0.6 * 2**k) for k in range(8)]
    return np.array([*((a - b).std() for a, b in itertools.pairwise(levels)), levels[-1].std()])


def parts_of(key, rows, columns, patchiness):
    """Computes the contribution of each field at amplitude 1, [fields, H, W]."""
    unit = np.eye(len(frost_texture.SCALES), dtype=np.float32)
    return np.stack([frost_texture.height(key, rows, columns, row, patchiness) for row in unit])


def fit(look):
    """Fits amplitudes and percentiles; returns them, the textures' luminance and their band ratios."""
    target = np.array([*BANDS[look], RESIDUAL_SHARES[look] * RESIDUALS[look]])
    patchiness = frost_texture.PATCHINESS[look]
    sheet = [np.arange(size) for size in SIZES[look]]
    parts = [parts_of(jax.random.key(seed), *sheet, patchiness) for seed in range(SEEDS)]
    endless = parts_of(jax.random.key(SEEDS), SPARSE, SPARSE, patchiness)
    # Variances of the bands, linear in the squares of the amplitudes.
    response = np.mean([[band_deviations(part) ** 2 for part in sample] for sample in parts], axis=0).T
    levels = np.array(frost_texture.LEVELS[look], float)
    goal = target
    for _ in range(6):  # the spread to the measured levels changes the spectrum a little: aim off by as much
        power, _ = optimize.nnls(response / goal[:, None] ** 2, np.ones(len(goal)))
        amplitudes = np.sqrt(power).astype(np.float32)
        quantiles = np.percentile(np.tensordot(amplitudes, endless, 1), frost_texture.PERCENTILES)
        heights = [np.tensordot(amplitudes, sample, 1) for sample in parts]
        luminance = [np.asarray(frost_texture.spread(height, quantiles, levels)) for height in heights]
        deviations = np.sqrt(np.mean([band_deviations(image) ** 2 for image in luminance], axis=0))
        goal = target * np.sqrt(response @ power) / deviations
    return amplitudes, quantiles, luminance, deviations / target


def main():
    amplitudes, quantiles = [], []
    for look, name in enumerate(frost_texture.LOOKS):
        a, q, luminance, ratios = fit(look)
        amplitudes.append(tuple(np.round(a.astype(float), 1).tolist()))
        quantiles.append(tuple(np.round(q, 1).tolist()))
        step = np.diff(np.stack(luminance), axis=2)
        height, width = SIZES[look]
        crops = [x[y : y + 224, z : z + 224] for x in luminance for y in (0, height - 224) for z in (0, width - 224)]
        print(f"{name}: bands / target {np.round(ratios, 2)}, step {abs(step).mean():.1f} of {STEPS[look]},")
        print(f"  kurtosis of steps {(step**4).mean() / (step**2).mean() ** 2:.1f}, std {np.std(luminance):.1f},")
        print(
            f"  crops: deviation of means {np.std([c.mean() for c in crops]):.1f}, "
            f"inside {np.mean([c.std() for c in crops]):.1f}"
        )
    print("AMPLITUDES =", tuple(amplitudes))
    print("QUANTILES =", tuple(quantiles))


if __name__ == "__main__":
    main()
