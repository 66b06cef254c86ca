"""Copies in raster order equal the original's double loop over pixels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from corruptions.primitives import copies
from tests.corruptions.elsewhere import as_on
from tests.reference.imagenet_c.glass import scrambled

copied_from = jax.jit(lambda shifts, reach: copies.copied_from(shifts, reach, shifts.shape[1:]))


@pytest.mark.parametrize("shape", [(16, 16), (23, 37), (40, 29)])
@pytest.mark.parametrize("reach", [1, 2, 3, 4, 5])
def test_one_pass_is_the_double_loop(reach, shape):
    rng = np.random.default_rng(reach)
    for _ in range(3):
        shifts = rng.integers(-reach, reach, (2, *shape))
        pixels = rng.integers(0, 256, (*shape, 3), dtype=np.uint8)
        source = np.asarray(copied_from(jnp.asarray(shifts, jnp.int32), reach))
        np.testing.assert_array_equal(pixels.reshape(-1, 3)[source], scrambled(pixels, shifts, reach))


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_long_chains_of_copies(platform, monkeypatch):
    # Every pixel of 60 in a row takes its right neighbour's new value: one value runs through all of them.
    as_on(platform, monkeypatch)
    copied_from = jax.jit(lambda shifts: copies.copied_from(shifts, 2, shifts.shape[1:]))
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (16, 64, 3), dtype=np.uint8)
    row = np.stack([np.zeros((16, 64), int), np.ones((16, 64), int)])
    for shifts in (row, rng.integers(-2, 2, row.shape)):
        source = np.asarray(copied_from(jnp.asarray(shifts, jnp.int32)))
        np.testing.assert_array_equal(pixels.reshape(-1, 3)[source], scrambled(pixels, shifts, 2))


def test_passes_that_none_needs_are_left_out(monkeypatch):
    """Fewer passes and doublings: the same for each image of a batch, whatever the others need, and on a GPU."""
    rng = np.random.default_rng(0)
    shifts = np.stack([rng.integers(-reach, reach, (3, 2, 16, 23)) for reach in (1, 4, 2)])
    shifts[2, 1] = [[[0]], [[1]]]  # each row's pixels hand one value on to the left
    drawn = jnp.asarray(shifts, jnp.int32), jnp.array([1, 2, 3]), jnp.array([1, 4, 2])
    pixels = rng.integers(0, 256, (16, 23, 3), dtype=np.uint8)
    expected = []
    for of_image, passes, reach in zip(shifts, (1, 2, 3), (1, 4, 2)):
        found = pixels
        for number in range(passes):
            found = scrambled(found, of_image[number], reach)
        expected.append(found)

    def sources():
        return jax.jit(jax.vmap(lambda *drawn: copies.sources(*drawn, (16, 23))))

    for platform in ("cpu", "cuda"):
        if platform == "cuda":
            as_on("cuda", monkeypatch)
        for some in ([0, 1, 2], [0, 0, 0], [0, 1, 0]):
            found = sources()(*(x[np.array(some)] for x in drawn))
            np.testing.assert_array_equal(pixels.reshape(-1, 3)[found], np.stack(expected).reshape(3, -1, 3)[some])
