import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions.batch
from corruptions.imagenet_c import blur
from tests.corruptions import goldens
from tests.reference.imagenet_c.blur import CASES, DEFOCUS
from tests.reference.photographs import photograph


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
