"""What every registered corruption must keep, whatever it does to an image."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from tests.corruptions.comparing import assert_same
from tests.reference.photographs import photographs

NAMES = corruptions.names()
SOME = ("imagenet_c/gaussian_noise", "imagenet_c/contrast", "imagenet_c/jpeg_compression", "noc/border", "noc/rain")
KEY = jax.random.key(7)


@pytest.fixture(scope="module")
def images():
    return photographs(4, 32, 32)


@pytest.fixture(scope="module")
def batch():
    """As large as the batches of the golden tests, whose compiled programs serve here too."""
    return photographs(64, 32, 32)


@pytest.mark.parametrize("name", NAMES)
def test_batches_of_uint8(name, batch):
    """Shape, dtype, determinism, an effect, and one compile for severities: their ends, since what
    one program gives has one shape and dtype.
    """
    compiled = corruptions.batch._corrupt._cache_size()
    severities = corruptions.severities(name)
    mildest, strongest = (np.asarray(corruptions.corrupt(KEY, batch, name, s)) for s in (severities[0], severities[-1]))
    assert corruptions.batch._corrupt._cache_size() - compiled == 1
    for corrupted in (mildest, strongest):
        assert corrupted.shape == batch.shape and corrupted.dtype == np.uint8
    assert (strongest != batch).any((1, 2, 3)).all()
    if name in SOME:  # of all in test_an_image_depends_on_its_index_alone, slow
        np.testing.assert_array_equal(corruptions.corrupt(KEY, batch, name, severities[-1]), strongest)


SLOWLY = [pytest.param(name, marks=() if name in SOME else pytest.mark.slow) for name in NAMES]


@pytest.mark.parametrize("name", SLOWLY)
def test_an_image_depends_on_its_index_alone(name, images):
    """Other neighbours and another order leave an image as it is, severities drawn."""
    index = jnp.array([11, 3, 8, 4])
    whole = np.asarray(corruptions.corrupt(KEY, images, name, index=index))
    turned = np.asarray(corruptions.corrupt(KEY, images[::-1], name, index=index[::-1]))
    np.testing.assert_array_equal(turned[::-1], whole)
    others = np.asarray(corruptions.corrupt(KEY, images[[2, 2, 2, 1]], name, index=jnp.array([5, 8, 9, 3])))
    np.testing.assert_array_equal(others[[1, 3]], whole[[2, 1]])


@pytest.mark.parametrize("name", SLOWLY)
def test_an_image_alone_in_a_larger_batch_and_inside_a_users_program(name):
    images = photographs(9, 32, 32)
    whole = np.asarray(corruptions.corrupt(KEY, images, name))
    alone = corruptions.corrupt(KEY, images[4:5], name, index=jnp.array([4]))
    assert_same(alone, whole[4:5])
    severity = corruptions.severities(name)[-1]  # a constant of the program, worked out by the compiler
    inside = jax.jit(lambda images: 2 * corruptions.corrupt(KEY, images, name, severity).astype(jnp.float32))
    strongest = corruptions.corrupt(KEY, images, name, severity)
    assert_same((np.asarray(inside(images)) / 2).astype(np.uint8), strongest)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_float_image_alone_and_in_a_larger_batch(name):
    images = photographs(9, 32, 32) / np.float32(255)
    whole = np.asarray(corruptions.corrupt(KEY, images, name))
    assert_same(corruptions.corrupt(KEY, images[2:7], name, index=jnp.arange(2, 7)), whole[2:7])


@pytest.mark.parametrize("name", SLOWLY)
def test_one_image_eager_and_jitted(name):
    """float32 in [0, 1] in and out, non-square, jit equal to eager, sample and apply apart."""
    corruption = corruptions.get(name)
    image = jnp.asarray(photographs(1, 24, 33)[0], jnp.float32) / 255
    severity = corruptions.severities(name)[-1]
    found = corruption(KEY, image, severity)
    assert found.shape == image.shape and found.dtype == jnp.float32
    assert float(found.min()) >= 0 and float(found.max()) <= 1  # a NaN fails both
    params = corruption.sample(KEY, image.shape, severity)
    np.testing.assert_array_equal(corruption.apply(image, params), found)
    jitted = jax.jit(corruption)(KEY, image, severity if isinstance(severity, float) else jnp.int32(severity))
    assert_same(jitted, found)
    batch = corruptions.corrupt(KEY, image[None], name, severity, index=jnp.array([3]))
    # Two programs, which round otherwise: plasma_noise, sines of sines, differs by .012 of a level.
    assert_same(batch[0], corruption(jax.random.fold_in(KEY, 3), image, severity), bound=0.05 / 255)


@pytest.mark.parametrize("name", NAMES)
def test_record(name):
    corruption = corruptions.get(name)
    assert corruption.qualified_name == name and corruption.family
    assert corruption.parameters and all(p.name and p.unit and p.source for p in corruption.parameters)
    assert corruption.__doc__
