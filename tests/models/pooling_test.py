"""Pooling against loops in NumPy, for whole and broken windows; the sizes that PyTorch
documents."""

import jax.numpy as jnp
import numpy as np
import pytest

from models.layers import adaptive_mean_pool, max_pool, mean_pool
from tests.models import reference


def maps(*size, channels=3):
    return np.random.default_rng(0).standard_normal((2, *size, channels)).astype(np.float32)


@pytest.mark.parametrize("size, stride", [(2, 2), (3, 2), (1, 2), (3, 1)])
@pytest.mark.parametrize("ceil", [False, True])
def test_max_pool(size, stride, ceil):
    for shape in ((3, 4), (5, 6), (7, 12)):
        x = maps(*shape)
        np.testing.assert_array_equal(max_pool(x, size, stride, ceil=ceil), reference.max_pool(x, size, stride, ceil))


@pytest.mark.parametrize(
    "full, padding, ceil, expected",
    [(109, 0, True, 54), (109, 0, False, 54), (6, 0, True, 3), (6, 0, False, 2), (112, 1, False, 56), (5, 1, True, 3)],
)
def test_number_of_windows(full, padding, ceil, expected):
    """(full + 2 padding - 3) / 2 + 1, rounded; a window in the upper padding alone is dropped."""
    x = -1 - np.abs(maps(full, full))
    y = max_pool(x, 3, 2, padding, ceil=ceil)
    assert y.shape == (2, expected, expected, 3)
    assert y.max() < 0  # the padding never wins
    np.testing.assert_array_equal(y[:, 0, 0], x[:, : 3 - padding, : 3 - padding].max((1, 2)))


def test_a_window_that_would_start_in_the_upper_padding_is_dropped():
    assert max_pool(maps(4, 4), 2, 2, 1, ceil=True).shape == (2, 3, 3, 3)
    assert max_pool(maps(4, 4), 2, 3, 1, ceil=True).shape == (2, 2, 2, 3)
    assert max_pool(maps(2, 2), 2, 3, 1, ceil=True).shape == (2, 1, 1, 3)


@pytest.mark.parametrize("size", [1, 6, 7])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (6, 7), (13, 6), (14, 25)])
def test_adaptive_mean_pool(size, shape):
    x = maps(*shape)
    np.testing.assert_allclose(adaptive_mean_pool(x, size), reference.adaptive_mean_pool(x, size), rtol=1e-5, atol=1e-6)
    assert adaptive_mean_pool(jnp.asarray(x, jnp.bfloat16), size).dtype == jnp.bfloat16


def test_one_broken_window_is_enough_where_sizes_are_rounded_up():
    x = maps(2, 5)
    np.testing.assert_array_equal(max_pool(x, 3, 2, ceil=True), reference.max_pool(x, 3, 2, True))


def test_mean_pool_cuts_the_odd_rest():
    x = maps(5, 6)
    expected = (x[:, 0:4:2, ::2] + x[:, 1:4:2, ::2] + x[:, 0:4:2, 1::2] + x[:, 1:4:2, 1::2]) / 4
    np.testing.assert_allclose(mean_pool(x), expected, rtol=1e-5, atol=1e-6)


def test_maps_too_small_are_named():
    with pytest.raises(ValueError, match=r"expected maps of at least 3 pixels to pool, found \(2, 5\)"):
        max_pool(maps(2, 5), 3, 2)
    with pytest.raises(ValueError, match=r"expected maps of at least 2 pixels to pool, found \(5, 1\)"):
        max_pool(maps(5, 1), 3, 2, ceil=True)
    with pytest.raises(ValueError, match=r"expected maps of at least 2 pixels to halve, found \(1, 4\)"):
        mean_pool(maps(1, 4))
