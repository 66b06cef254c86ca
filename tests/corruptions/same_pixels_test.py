"""One image, the same pixels: alone, in any batch, in pieces and inside a user's program, at the
strongest severity, on photographs and on surfaces of one colour, whose filtered values are whole
levels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from corruptions import batch, checks
from tests.corruptions.comparing import assert_same
from tests.corruptions.elsewhere import as_on
from tests.corruptions.extremes import pictures
from tests.reference.photographs import photographs

NAMES = corruptions.names()
KEY = jax.random.key(7)


def options(corruption, images):
    return checks.static_options(corruption.options_for(images.shape[1:], {}))


def assert_the_same_pixels(name, images):
    """Compares a batch with its images alone, a part of it, and the batch in pieces and inside
    another program.
    """
    severity, index = corruptions.severities(name)[-1], jnp.arange(len(images))
    corruption, levels = corruptions.get(name), jnp.full(len(images), severity, jnp.float32)
    whole = batch._corrupt(
        KEY, jnp.asarray(images), levels, index, corruption, options(corruption, images)
    )  # one piece
    assert_same(corruptions.corrupt(KEY, images, name, severity), whole)
    alone = [corruptions.corrupt(KEY, images[i : i + 1], name, severity, index=index[i : i + 1]) for i in index]
    assert_same(jnp.concatenate(alone), whole)
    part = slice(len(images) // 3, len(images) // 3 + max(2, len(images) // 5))
    assert_same(corruptions.corrupt(KEY, images[part], name, severity, index=index[part]), whole[part])
    inside = jax.jit(lambda images: 2 * corruptions.corrupt(KEY, images, name, severity).astype(jnp.float32))
    assert_same((np.asarray(inside(images)) / 2).astype(images.dtype), whole)


def mixed(side, number):
    """Photographs and pictures of few colours, uint8 [2 number, side, side, 3]."""
    extreme = pictures(side, side, np.random.default_rng(0))
    return np.concatenate([photographs(number, side, side), extreme[[1, 4, 10, 17, 18, 0, 14, 15, 16, 5][:number]]])


@pytest.mark.parametrize("name", ["cbar/circular_motion_blur", "noc/contrast"])
def test_bytes(name):
    assert_the_same_pixels(name, mixed(32, 10))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_any_corruption(name, dtype):
    images = mixed(32, 10)
    assert_the_same_pixels(name, images if dtype == "uint8" else (images / np.float32(255)).astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize(("side", "number"), [(47, 6), (224, 2)])
@pytest.mark.parametrize("name", NAMES)
def test_any_size(name, side, number):
    assert_the_same_pixels(name, mixed(side, number))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_as_on_a_gpu(name, monkeypatch):
    images, (severity, *_) = mixed(47, 4), corruptions.severities(name)[-1:]
    corruption, index = corruptions.get(name), jnp.arange(len(images))
    expected = corruptions.corrupt(KEY, images, name, severity)
    as_on("cuda", monkeypatch)
    fixed = options(corruption, images)
    levels = jnp.full(len(images), severity, jnp.float32)
    # Compiled, as sums are rounded otherwise operation by operation.
    found = jax.jit(lambda images: batch._corrupt.__wrapped__(KEY, images, levels, index, corruption, fixed))(images)
    different = np.abs(np.asarray(found).astype(int) - np.asarray(expected))
    # On surfaces of one colour sums of another order fall on the two sides of a whole level.
    assert different.max() <= 1 and (different > 0).mean() < 1e-2
