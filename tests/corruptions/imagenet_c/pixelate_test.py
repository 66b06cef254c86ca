import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import corruptions.batch
from corruptions.imagenet_c.pixelate import _LONGEST, _by_products, _by_shifts, _rounded_means, _taps, pixelate
from tests.corruptions import goldens
from tests.reference.imagenet_c.pixelate import SCALES, pillow
from tests.reference.photographs import photograph


# 26 and 30 have pixel centres on block borders, 71 has them when enlarging.
@pytest.mark.parametrize("shape", [(16, 17), (26, 30), (71, 33), (64, 224)])
@pytest.mark.parametrize("table", SCALES)
def test_is_bit_exact_with_pillow(table, shape):
    noise = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    images = np.stack([photograph(*shape), noise])
    for severity, scale in enumerate(SCALES[table], 1):
        found = corruptions.batch.corrupt(jax.random.key(0), images, pixelate, severity, table=table)
        np.testing.assert_array_equal(found, np.stack([pillow(image, scale) for image in images]))


def test_taps_are_pillows_at_all_sizes():
    for source in range(16, 300, 3):  # 19 among them
        row = np.random.default_rng(source).integers(0, 256, (1, source), dtype=np.uint8)
        for target in {int(source * scale) for scales in SCALES.values() for scale in scales}:
            start, stop = _taps(source, target)
            assert (stop - start).max() <= _LONGEST and (np.diff(start) > 0).all()
            small = np.asarray(Image.fromarray(row).resize((target, 1), Image.BOX))[0]
            means = [row[0, a:b].mean() for a, b in zip(start, stop, strict=True)]
            # Within 1/2 of a mean, and 2**-20 for the fixed point of the weights.
            np.testing.assert_allclose(small, means, rtol=0, atol=0.5 + 1e-4)
            shown, _ = _taps(target, source)
            large = np.asarray(Image.fromarray(small[None]).resize((source, 1), Image.BOX))[0]
            np.testing.assert_array_equal(large, small[shown])


@pytest.mark.parametrize("table", ["cifar", "inception"])
def test_products_and_shifts_give_the_same_bits(table):
    image = photograph(33, 40)
    params = pixelate.sample(jax.random.key(0), image.shape, 5, table=table)
    means = [jax.jit(lambda x, p, form=form: form(_rounded_means, x, p)) for form in (_by_products, _by_shifts)]
    expected, found = (form(image, params) for form in means)
    assert expected.dtype == np.uint8 and np.ptp(expected) > 100
    np.testing.assert_array_equal(found, expected)


def test_real_severities_take_sizes_between_two_levels():
    image = jnp.asarray(photograph(100, 100), jnp.float32) / 255
    found = jax.jit(lambda x: pixelate(jax.random.key(0), x, 1.5, table="imagenet", interpolate=True))(image)
    expected = pillow(photograph(100, 100), 0.55)
    np.testing.assert_array_equal(np.rint(255 * np.asarray(found)), expected)


@pytest.mark.parametrize("size", [32, 224])
def test_pixels_match_the_original(shared, size):
    goldens.assert_pixels(shared, pixelate, size, (0,) * 5)
