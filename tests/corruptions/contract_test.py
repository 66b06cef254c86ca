"""What every registered corruption must keep, whatever it does to an image."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from tests.corruptions.photographs import photographs

NAMES = corruptions.names()
KEY = jax.random.key(7)


def severities(name):
    scale = corruptions.get(name).scale
    return range(1, scale.count + 1) if isinstance(scale, corruptions.Levels) else (0.0, 0.5, 1.0)


@pytest.fixture(scope="module")
def images():
    return photographs(5, 32, 32)


@pytest.mark.parametrize("name", NAMES)
def test_batches_of_uint8(name, images):
    """Shape, dtype, determinism, an effect, and one compile for all severities."""
    compiled = corruptions.batch._corrupt._cache_size()
    out = {s: np.asarray(corruptions.corrupt(KEY, images, name, s)) for s in severities(name)}
    assert corruptions.batch._corrupt._cache_size() - compiled == 1
    for found in out.values():
        assert found.shape == images.shape and found.dtype == np.uint8
    strongest = out[severities(name)[-1]]
    assert (strongest != images).any((1, 2, 3)).all()
    again = corruptions.corrupt(KEY, images, name, severities(name)[-1])
    np.testing.assert_array_equal(again, strongest)
    drawn = np.asarray(corruptions.corrupt(KEY, images, name))
    assert drawn.shape == images.shape


@pytest.mark.parametrize("name", NAMES)
def test_an_image_depends_on_its_index_alone(name, images):
    """Other neighbours, order and batch size leave an image as it is (up to one level of rounding)."""
    index = jnp.array([11, 3, 8, 4, 2])
    whole = np.asarray(corruptions.corrupt(KEY, images, name, index=index)).astype(int)
    turned = np.asarray(corruptions.corrupt(KEY, images[::-1], name, index=index[::-1])).astype(int)
    np.testing.assert_array_equal(turned[::-1], whole)
    alone = np.asarray(corruptions.corrupt(KEY, images[2:3], name, index=index[2:3])).astype(int)
    assert np.abs(alone[0] - whole[2]).max() <= 1 and (alone[0] != whole[2]).mean() < 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_one_image_eager_and_jitted(name):
    """float32 in [0, 1] in and out, non-square, jit equal to eager, sample and apply apart."""
    corruption = corruptions.get(name)
    image = jnp.asarray(photographs(1, 24, 33)[0], jnp.float32) / 255
    severity = severities(name)[-1]
    found = corruption(KEY, image, severity)
    assert found.shape == image.shape and found.dtype == jnp.float32
    assert 0 <= float(found.min()) and float(found.max()) <= 1  # a NaN fails both
    params = corruption.sample(KEY, image.shape, severity)
    np.testing.assert_array_equal(corruption.apply(image, params), found)
    jitted = jax.jit(corruption)(KEY, image, severity if isinstance(severity, float) else jnp.int32(severity))
    different = np.abs(np.asarray(jitted) - np.asarray(found))
    # Fusing may round a value that is floored to the other side of a level; everything else agrees to 1e-6.
    assert np.mean(different > 1e-6) < 2e-3 and np.quantile(different, 0.99) <= 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_extreme_images(name):
    """All black, all white, one hot pixel, saturated colours, noise: finite and in range."""
    rng = np.random.default_rng(0)
    extremes = np.zeros((5, 16, 16, 3), np.float32)
    extremes[1] = 1
    extremes[2, 5, 5, 0] = 1
    extremes[3, ..., 1] = 1
    extremes[4] = rng.integers(0, 2, (16, 16, 3))
    for severity in (severities(name)[0], severities(name)[-1]):
        found = np.asarray(corruptions.corrupt(KEY, extremes, name, severity))
        assert np.isfinite(found).all() and found.min() >= 0 and found.max() <= 1


@pytest.mark.parametrize("name", NAMES)
def test_record(name):
    corruption = corruptions.get(name)
    assert corruption.qualified_name == name and corruption.family
    assert corruption.parameters and all(p.name and p.unit and p.source for p in corruption.parameters)
    assert corruption.__doc__
    for other in corruption.coincides_with:
        assert "/" in other
