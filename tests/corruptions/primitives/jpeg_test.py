"""The lossy half of JPEG, bit for bit with Pillow and with libjpeg 9."""

import functools
import io

import jax
import numpy as np
import pytest
from PIL import Image

from corruptions.primitives import jpeg
from tests.reference.imagenet_c import libjpeg9, pillow
from tests.reference.photographs import photograph

round_trip = jax.jit(jpeg.round_trip)
round_trip_9 = jax.jit(functools.partial(jpeg.round_trip, encoder=jpeg.LIBJPEG9))


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


@pytest.mark.parametrize("shape", [(17, 31), (32, 32), pytest.param((45, 61), marks=pytest.mark.slow)])
def test_libjpeg9_is_bit_exact_at_many_qualities(shape):
    for name, image in images(*shape).items():
        for quality in SOME:
            ours = np.asarray(round_trip_9(image.astype(np.int32), quality))
            np.testing.assert_array_equal(ours, libjpeg9.jpeg(image, quality), f"{name}, quality {quality}")


def test_either_library_reads_what_the_other_wrote():
    """Grey images have no chroma, and luma is the same: so all four ways agree. Of colours the writer and the reader count."""
    grey, colours = np.repeat(photograph(32, 32, 3)[..., :1], 3, -1), photograph(32, 32, 3)
    found = {}
    for writer in jpeg.CODECS:
        for reader in jpeg.CODECS:
            way = jax.jit(functools.partial(jpeg.round_trip, encoder=writer, decoder=reader))
            np.testing.assert_array_equal(way(grey.astype(np.int32), 50), pillow.jpeg(grey, 50))
            found[writer, reader] = np.asarray(way(colours.astype(np.int32), 50))
    assert len({each.tobytes() for each in found.values()}) == 4
    np.testing.assert_array_equal(found["libjpeg9", "libjpeg9"], libjpeg9.jpeg(colours, 50))


def test_quantization_tables_are_those_in_pillows_files():
    for quality in range(1, 101):
        file = io.BytesIO()
        Image.fromarray(np.zeros((16, 16, 3), np.uint8)).save(file, "JPEG", quality=quality)
        # Pillow lists the tables in natural order.
        tables = Image.open(file).quantization
        for ours, theirs in zip(jpeg.quantization_tables(quality), (tables[0], tables[1]), strict=True):
            np.testing.assert_array_equal(np.asarray(ours).ravel(), theirs)
