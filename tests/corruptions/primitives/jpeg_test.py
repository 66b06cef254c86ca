"""The lossy half of JPEG, bit for bit with Pillow."""

import io

import jax
import numpy as np
import pytest
from PIL import Image

from corruptions.primitives import jpeg
from tests.reference.imagenet_c import pillow
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


EVERY, SOME = range(1, 101), (1, *range(5, 100, 10), 100)
SHAPES = (16, 16), (40, 23), (50, 34)


@pytest.mark.parametrize(
    "shape, qualities",
    [
        ((17, 31), EVERY),
        *((shape, SOME) for shape in SHAPES),
        *(pytest.param(shape, EVERY, marks=pytest.mark.slow) for shape in SHAPES),
    ],
)
def test_round_trip_is_bit_exact_at_every_quality(shape, qualities):
    for name, image in images(*shape).items():
        for quality in qualities:
            ours = np.asarray(round_trip(image.astype(np.int32), quality))
            np.testing.assert_array_equal(ours, pillow.jpeg(image, quality), f"{name}, quality {quality}")


def test_round_trip_is_bit_exact_at_imagenet_size():
    for image in images(224, 224).values():
        for quality in (1, 7, 25, 85, 100):
            ours = np.asarray(round_trip(image.astype(np.int32), quality))
            np.testing.assert_array_equal(ours, pillow.jpeg(image, quality))


def test_quantization_tables_are_those_in_pillows_files():
    for quality in range(1, 101):
        file = io.BytesIO()
        Image.fromarray(np.zeros((16, 16, 3), np.uint8)).save(file, "JPEG", quality=quality)
        # Pillow lists the tables in natural order.
        tables = Image.open(file).quantization
        for ours, theirs in zip(jpeg.quantization_tables(quality), (tables[0], tables[1]), strict=True):
            np.testing.assert_array_equal(np.asarray(ours).ravel(), theirs)
