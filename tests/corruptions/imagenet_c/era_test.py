"""Images that ImageNet-C's code made with the libraries of 2018 (NumPy 1.14, SciPy 1.0, OpenCV 3.4.2, Pillow 5.0 with libjpeg
9b), from four photographs of 32x32, and of two of 224x224 (needs JAXC_SHARED).
"""

import hashlib
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.ndimage

import corruptions
from corruptions import imagenet_c
from tests.reference.photographs import photograph
from tests.refusing import refuses

FIXTURE = pathlib.Path("tests/fixtures/imagenet_c_2018.npz")
# (alpha, sigma, jitter) in the unit in pixels.
FIELDS = {
    32: (32, ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03))),
    224: (244, ((2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02))),
}


def images(arrays, name):
    """Images are stored as steps along a row, modulo 256."""
    return np.cumsum(arrays[f"{name}_steps"], axis=-2, dtype=np.uint8)


def fields(seed, size, severity):
    """Returns dx and dy as the original draws them, float32 in pixels; its draws of the points come before."""
    alpha, sigma, jitter = (FIELDS[size][0] * value for value in FIELDS[size][1][severity - 1])
    generator = np.random.RandomState(seed)
    generator.uniform(-jitter, jitter, (3, 2))
    found = []
    for _ in range(2):
        noise = generator.uniform(-1, 1, (size, size))
        smooth = scipy.ndimage.gaussian_filter(noise, sigma, mode="reflect", truncate=3) if sigma else noise
        found.append((smooth * alpha).astype(np.float32))
    return found


def elastic_differences(arrays, size):
    """Yields (severity, image, differences in levels) of elastic_transform."""
    clean, made = images(arrays, f"input_{size}"), images(arrays, f"elastic_{size}")
    apply = jax.jit(imagenet_c.elastic_transform.apply)
    for severity, of_severity in enumerate(made, 1):
        for number, expected in enumerate(of_severity):
            dx, dy = fields(int(arrays[f"elastic_seed_{size}"][severity - 1, number]), size, severity)
            if (known := arrays.get(f"elastic_fields_sha256_{size}")) is not None:
                assert hashlib.sha256(dx.tobytes() + dy.tobytes()).hexdigest() == known[severity - 1, number]
            params = {"points": arrays[f"elastic_points_{size}"][severity - 1, number], "dx": dx, "dy": dy}
            found = apply(jnp.asarray(clean[number], jnp.float32) / 255, params)
            yield severity, number, np.abs(np.floor(np.float32(255) * np.asarray(found)) - expected)


def test_elastic_transform_is_that_of_2018():
    """Within a level; the values a level off are whole ones up to rounding, which either side may truncate downwards."""
    with np.load(FIXTURE) as arrays:
        for severity, number, off in elastic_differences(dict(arrays), 32):
            assert off.max() <= 1 and (off > 0).mean() <= 4e-3, (severity, number)


def jpeg_differences(arrays, size):
    """Counts the values of jpeg_compression that differ, at each severity, in a batch of bytes."""
    clean, made, key = images(arrays, f"input_{size}"), images(arrays, f"jpeg_{size}"), jax.random.key(0)
    for severity, expected in enumerate(made, 1):
        found = corruptions.corrupt(key, clean, "jpeg_compression", severity, codec="libjpeg9")
        yield int((np.asarray(found) != expected).sum())


def test_jpeg_of_libjpeg9_is_that_of_2018_in_every_value():
    with np.load(FIXTURE) as arrays:
        assert list(jpeg_differences(arrays, 32)) == [0] * 5
        each = corruptions.corrupt_each(
            jax.random.key(0), list(images(arrays, "input_32")), "jpeg_compression", 3, codec="libjpeg9", table="cifar"
        )
        np.testing.assert_array_equal(list(each), images(arrays, "jpeg_32")[2])


@pytest.mark.slow
def test_jpeg_of_libjpeg9_is_that_of_2018_at_imagenet_size(shared):
    with np.load(shared / "golden" / "eras_refs.npz") as arrays:
        assert list(jpeg_differences(arrays, 224)) == [0] * 5


@pytest.mark.parametrize("shape", [(32, 32, 3), (40, 23, 3)])
def test_images_of_libjpeg9_lie_around_those_without_rounding(shape):
    """At quality 100 all that is left of JPEG is the loss of chroma's high frequencies, and rounding."""
    image = jnp.asarray(photograph(*shape[:2], 3), jnp.float32) / 255
    params = {"quality": jnp.float32(100), "libjpeg9": jnp.int32(1)}
    made = imagenet_c.jpeg_compression.apply(image, params)
    smooth = imagenet_c.jpeg_compression.with_gradient("straight_through")
    of_smooth = jax.jvp(lambda x: smooth.apply(x, params), (image,), (image,))[1]
    other = jax.jvp(lambda x: smooth.apply(x, {"quality": params["quality"]}), (image,), (image,))[1]
    inside = (image > 0.05) & (image < 0.95)
    apart = [float(jnp.abs(jnp.where(inside, x - made, 0)).mean() * 255) for x in (of_smooth, other)]
    assert apart[0] < 0.7 < apart[1]


def test_an_unknown_codec_is_refused_in_a_line():
    image = np.zeros((1, 32, 32, 3), np.uint8)
    refuses(
        lambda: corruptions.corrupt(jax.random.key(0), image, "jpeg_compression", 1, codec="libjpeg8"), "'libjpeg8'"
    )
    refuses(lambda: corruptions.corrupt(jax.random.key(0), image, "pixelate", 1, codec="libjpeg9"), "'codec'")
    refuses(lambda: imagenet_c.store(jnp.zeros((32, 32, 3)), "libjpeg9", "Pillow"), "codec")


@pytest.mark.slow
def test_elastic_transform_is_that_of_2018_at_imagenet_size(shared):
    with np.load(shared / "golden" / "eras_refs.npz") as arrays:
        for severity, number, off in elastic_differences(dict(arrays), 224):
            assert off.max() <= 1 and (off > 0).mean() <= 1e-4, (severity, number)
