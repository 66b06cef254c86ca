import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

from corruptions.primitives.warping import geometry

SCIPY_MODES = {"symmetric": "reflect", "reflect": "mirror"}


@pytest.mark.parametrize("mode", geometry.MODES)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_fold_continues_an_axis_as_numpy_pads_it(mode, size):
    index = np.arange(-13, 14)
    expected = np.pad(np.arange(size), (13, 14 - size), mode)
    np.testing.assert_array_equal(geometry.fold(jnp.asarray(index), size, mode), expected)


@pytest.mark.parametrize("shape", [(9, 14), (2, 3)])
@pytest.mark.parametrize("mode", SCIPY_MODES)
def test_neighbours_interpolate_as_scipy(mode, shape):
    rng = np.random.default_rng(0)
    image = rng.random((*shape, 3)).astype(np.float32)
    y, x = rng.uniform(-25, 35, (2, 40, 30)).astype(np.float32)
    y[0], x[1] = np.arange(30) - 10, np.arange(30) - 8  # on pixel centres
    top, left = np.floor(y), np.floor(x)
    near = geometry.neighbours(top.astype(int), left.astype(int), y - top, x - left, image.shape, mode)
    planes = [ndimage.map_coordinates(image[..., k], (y, x), order=1, mode=SCIPY_MODES[mode]) for k in range(3)]
    np.testing.assert_allclose(jax.jit(geometry.interpolate)(image, near), np.stack(planes, -1), atol=2e-6)


def test_displaced_keeps_the_fraction_of_small_displacements():
    image = np.random.default_rng(0).random((300, 16, 1)).astype(np.float32)
    shift = np.full((300, 16), 1e-6, np.float32)
    near = geometry.neighbours(*geometry.displaced(shift, -shift), image.shape, "symmetric")
    inner = (slice(299), slice(1, None))  # at the end, the pixel itself is the second of two
    np.testing.assert_array_equal(near.down[inner], shift[inner])
    np.testing.assert_allclose(1 - near.right[inner], shift[inner], rtol=0, atol=1e-7)
    np.testing.assert_allclose(geometry.interpolate(jnp.asarray(image), near), image, atol=3e-6)


def _reflected(dy, dx, shape):
    return geometry.neighbours(*geometry.displaced(dy, dx), shape, "reflect")


def test_displaced_reads_from_the_displaced_position():
    image = np.random.default_rng(0).random((8, 11, 3)).astype(np.float32)
    down, right = np.full((8, 11), 2.0, np.float32), np.full((8, 11), -3.0, np.float32)
    found = geometry.interpolate(jnp.asarray(image), _reflected(down, right, image.shape))
    expected = np.pad(image, ((0, 2), (3, 0), (0, 0)), mode="reflect")[2:, :-3]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


def test_unknown_mode_is_named():
    with pytest.raises(ValueError, match=r"expected a boundary mode among symmetric, reflect, found 'wrap'"):
        geometry.fold(jnp.arange(3), 3, "wrap")
