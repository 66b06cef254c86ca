"""Images in several shards behave as one NumPy array."""

import jax
import numpy as np
import pytest

from data.dataset import Split, make_split
from data.sharded import ShardedImages

WHOLE = np.random.default_rng(0).integers(0, 256, (23, 4, 5, 3), np.uint8)
SHARDED = ShardedImages(np.split(WHOLE, [1, 9, 9, 20]), (4, 5, 3))


@pytest.mark.parametrize(
    "key",
    [
        0,
        22,
        -1,
        -23,
        np.int32(9),
        slice(None),
        slice(5, 12),
        slice(-3, None),
        slice(None, None, -4),
        slice(7, 7),
        [3, 3, 20, 0],
        np.array([[8, 9], [19, 20]]),
        np.array([], int),
        np.arange(23) % 3 == 0,
    ],
)
def test_indexing(key):
    found = SHARDED[key]
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, WHOLE[key])


@pytest.mark.parametrize("key", [23, -24, [0, 23], [0.5], np.ones(5, bool)])
def test_indices_that_are_not_there(key):
    with pytest.raises(IndexError, match="expected integers from -23 to 22"):
        SHARDED[key]


def test_as_an_array():
    assert SHARDED.shape == WHOLE.shape and len(SHARDED) == 23 and SHARDED.nbytes == WHOLE.nbytes
    np.testing.assert_array_equal(np.asarray(SHARDED), WHOLE)
    assert np.asarray(SHARDED, np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="without a copy"):
        np.array(SHARDED, copy=False)
    empty = ShardedImages([], (4, 5, 3))
    assert empty.shape == (0, 4, 5, 3) and empty[:].shape == (0, 4, 5, 3)


def test_shards_of_unequal_shape_are_refused():
    with pytest.raises(ValueError, match=r"expected shards uint8\[n, 4, 5, 3\], found uint8\[2, 5, 4, 3\]"):
        ShardedImages([WHOLE, np.zeros((2, 5, 4, 3), np.uint8)], (4, 5, 3))


def test_on_the_device_it_is_one_array():
    labels = np.arange(23, dtype=np.int32) % 7
    split = make_split(SHARDED, labels, labels, 7, "here")
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    for placed in (split.to_device(), split.to_device(sharding), Split(SHARDED[2:4], labels, labels).to_device()):
        assert isinstance(placed.images, jax.Array)
    np.testing.assert_array_equal(split.to_device(sharding).images, WHOLE)
