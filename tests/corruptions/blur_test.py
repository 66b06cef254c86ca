import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

import corruptions.batch
from corruptions.imagenet_c import blur
from tests.corruptions import goldens
from tests.corruptions.photographs import photograph

DEFOCUS = {
    "cifar": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    "tiny": ((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
    "imagenet": ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    "inception": ((4, 0.1), (5, 0.5), (7, 0.5), (10, 0.5), (12, 0.5)),
}
GAUSSIAN = {
    "cifar": (0.4, 0.6, 0.7, 0.8, 1),
    "tiny": (0.5, 0.75, 1, 1.25, 1.5),
    "imagenet": (1, 2, 3, 4, 6),
    "inception": (1.5, 2.5, 3.5, 4.5, 6.5),
}
# Last factor, step and number of factors.
SMALL = ((1.06, 0.01, 7), (1.11, 0.01, 12), (1.15, 0.01, 16), (1.20, 0.01, 21), (1.25, 0.01, 26))
LARGE = ((1.11, 0.01, 12), (1.15, 0.01, 16), (1.20, 0.02, 11), (1.24, 0.02, 13), (1.30, 0.03, 11))
ZOOM = {"cifar": SMALL, "tiny": SMALL, "imagenet": LARGE, "inception": LARGE}


def disk(radius, alias):
    """The original's kernel, straight from its description, with SciPy's filter for the anti-aliasing."""
    reach = 8 if radius <= 8 else radius
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    kernel = (x**2 + y**2 <= radius**2).astype(float)
    kernel /= kernel.sum()
    t = np.arange(-1, 2) if radius <= 8 else np.arange(-2, 3)
    taps = np.exp(-0.5 * (t / alias) ** 2)
    taps /= taps.sum()
    return ndimage.correlate1d(ndimage.correlate1d(kernel, taps, 0, mode="mirror"), taps, 1, mode="mirror")


def defocused(x, row):
    kernel = disk(*row)
    return np.stack([ndimage.correlate(x[..., c], kernel, mode="mirror") for c in range(3)], -1)


def smoothed(x, sigma):
    return ndimage.gaussian_filter(x, (sigma, sigma, 0), mode="nearest", truncate=4.0)


def zoomed(x, row):
    last, step, count = row
    factors = np.arange(1, last + step / 2, step)
    assert len(factors) == count
    layers = [x]
    for factor in factors:
        crops, trims = [], []
        for size in x.shape[:2]:
            crop = int(np.ceil(size / factor))
            crops.append(slice((size - crop) // 2, (size - crop) // 2 + crop))
        layer = ndimage.zoom(x[tuple(crops)], (factor, factor, 1), order=1)
        trims = [(a - b) // 2 for a, b in zip(layer.shape[:2], x.shape[:2], strict=True)]
        layers.append(layer[trims[0] :, trims[1] :][: x.shape[0], : x.shape[1]])
    return sum(layers) / len(layers)


CASES = {
    "defocus_blur": (defocused, DEFOCUS),
    "gaussian_blur": (smoothed, GAUSSIAN),
    "zoom_blur": (zoomed, ZOOM),
}


@pytest.mark.parametrize("shape", [(32, 32), (41, 60)])
@pytest.mark.parametrize("table", ["cifar", "tiny", "imagenet", "inception"])
@pytest.mark.parametrize("name", CASES)
def test_exact_before_truncation(name, table, shape):
    reference, rows = CASES[name]
    corruption = getattr(blur, name)
    image = photograph(*shape)
    image[:3], image[-2:] = 255, 0
    x = image / 255.0
    call = jax.jit(lambda image, severity: corruption(jax.random.key(0), image, severity, table=table))
    for severity, row in enumerate(rows[table], 1):
        expected = 255 * np.clip(reference(x, row), 0, 1)
        found = 255 * np.asarray(call(jnp.asarray(x, jnp.float32), severity), np.float64)
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_disk_kernels_keep_the_originals_sums():
    sums = {row: blur.disk_kernel(*row).sum() for row in DEFOCUS["imagenet"]}
    assert abs(sums[8, 0.5] - 1.01298) < 1e-5 and abs(sums[10, 0.5] - 1.01079) < 1e-5
    assert all(abs(s - 1) < 1e-12 for row, s in sums.items() if row[0] < 8)
    pixels = {0.5: 1, 1: 5, 1.5: 9, 2.5: 21, 3: 29, 4: 49, 6: 113, 8: 197, 10: 317}
    for radius, count in pixels.items():
        assert np.sum(blur.disk_kernel(radius, 0.01) > 1e-9) == count


@pytest.mark.parametrize("name", CASES)
def test_real_severities_lie_between(name):
    image = jnp.asarray(photograph(48, 48) / 255.0, jnp.float32)
    corruption = getattr(blur, name)
    low, middle, high = (corruption(jax.random.key(0), image, s, interpolate=True) for s in (1, 1.5, 2))
    assert float(jnp.abs(middle - low).mean()) < float(jnp.abs(high - low).mean())
    assert float(jnp.abs(middle - high).mean()) < float(jnp.abs(high - low).mean())


# Levels whose kernels are plain means of 5, 9 or 29 pixels hit whole numbers all the time: their
# floor is decided by the last bit of the original's float32 weights.
MEANS = {32: (0.01, 0.01, 0.01, 0.07, 0.07), 224: (0.07, 1e-4, 1e-4, 1e-4, 1e-4)}


@pytest.mark.parametrize("size", [32, 224])
@pytest.mark.parametrize("name", CASES)
def test_matches_golden(shared, name, size):
    budget = MEANS[size] if name == "defocus_blur" else (1e-3,) * 5
    goldens.assert_pixels(shared, getattr(blur, name), size, budget)


def test_constant_images_stay_constant():
    images = np.full((2, 40, 32, 3), 200, np.uint8)
    images[1] = 0
    for name in CASES:
        for severity in (1, 3):  # levels whose kernels sum to one
            found = corruptions.batch.corrupt(jax.random.key(0), images, getattr(blur, name), severity)
            assert np.abs(np.asarray(found).astype(int) - images).max() <= 1
