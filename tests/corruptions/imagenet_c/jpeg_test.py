import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import corruptions.batch
from corruptions.imagenet_c.jpeg import jpeg_compression, store
from corruptions.primitives import jpeg
from tests.corruptions import goldens
from tests.reference.imagenet_c.jpeg import QUALITIES, pillow
from tests.reference.photographs import photograph

round_trip = jax.jit(jpeg.round_trip)


def images(height, width):
    rng = np.random.default_rng(height * width)
    return {
        "photograph": photograph(height, width, 3),
        "noise": rng.integers(0, 256, (height, width, 3), dtype=np.uint8),
        "black and primary colours": (rng.random((height, width, 3)) > 0.5).astype(np.uint8) * 255,
        "white": np.full((height, width, 3), 255, np.uint8),
    }


@pytest.mark.parametrize("shape", [(16, 16), (17, 31), (40, 23), (50, 34)])
def test_round_trip_is_bit_exact_at_every_quality(shape):
    for name, image in images(*shape).items():
        for quality in range(1, 101):
            ours = np.asarray(round_trip(image.astype(np.int32), quality))
            np.testing.assert_array_equal(ours, pillow(image, quality), f"{name}, quality {quality}")


def test_round_trip_is_bit_exact_at_imagenet_size():
    for image in images(224, 224).values():
        for quality in (1, 7, 25, 85, 100):
            ours = np.asarray(round_trip(image.astype(np.int32), quality))
            np.testing.assert_array_equal(ours, pillow(image, quality))


def test_quantization_tables_are_those_in_pillows_files():
    for quality in range(1, 101):
        file = io.BytesIO()
        Image.fromarray(np.zeros((16, 16, 3), np.uint8)).save(file, "JPEG", quality=quality)
        # Pillow lists the tables in natural order.
        tables = Image.open(file).quantization
        for ours, theirs in zip(jpeg.quantization_tables(quality), (tables[0], tables[1]), strict=True):
            np.testing.assert_array_equal(np.asarray(ours).ravel(), theirs)


@pytest.mark.parametrize("table", QUALITIES)
def test_corruption_writes_jpeg_at_the_tables_qualities(table):
    batch = np.stack([photograph(33, 47, seed) for seed in range(2)])
    for severity, quality in enumerate(QUALITIES[table], 1):
        found = corruptions.batch.corrupt(jax.random.key(0), batch, jpeg_compression, severity, table=table)
        np.testing.assert_array_equal(found, np.stack([pillow(image, quality) for image in batch]))


def test_storage_is_jpeg_of_quality_85():
    image = photograph(40, 40, 1)
    stored = jax.jit(store)(jnp.asarray(image, jnp.float32) / 255)
    np.testing.assert_array_equal(np.rint(np.asarray(stored) * 255), pillow(image, 85))


@pytest.mark.parametrize("size", [32, 224])
def test_pixels_match_the_original(shared, size):
    goldens.assert_pixels(shared, jpeg_compression, size, (0,) * 5)
