"""The painting primitives against loops over shapes and pixels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from corruptions.primitives import painting

COVERING = jax.jit(painting.covering, static_argnums=(3, 4))
PAINT = jax.jit(painting.paint, static_argnums=5)
DISC = ((-2, -1, 1), (-1, -2, 2), (0, -2, 2), (1, -2, 2), (2, -1, 1))
LOPSIDED = ((-1, -1, 0), (0, -3, 1), (1, -1, 0))


def _draw(seed, number, shape, margin=4):
    rng = np.random.default_rng(seed)
    rows, columns = (rng.integers(margin, side - margin, number) for side in shape)
    return rows, columns, rng.integers(0, 2**23, number).astype(np.float32) / 2**23


@pytest.mark.parametrize("runs", [DISC, LOPSIDED, ((0, 0, 0),)])
@pytest.mark.parametrize("painted", [0, 1, 150, 200])
def test_covering_and_paint(runs, painted):
    shape = (21, 34)
    rows, columns, greys = _draw(3, 200, shape)  # many share a centre
    image = np.random.default_rng(4).uniform(size=(*shape, 3)).astype(np.float32)
    count, expected = np.zeros(shape), image.copy()
    for row, column, grey in list(zip(rows, columns, greys))[:painted]:
        for y, left, right in runs:
            count[row + y, column + left : column + right + 1] += 1
            expected[row + y, column + left : column + right + 1] = grey
    assert np.array_equal(COVERING(rows, columns, painted, runs, shape), count)
    found = PAINT(image, rows, columns, painted, greys, runs)
    assert np.array_equal(found, expected)


def test_paint_of_many_shapes_and_white():
    shape = (40, 50)
    rows, columns, greys = _draw(5, 3000, shape)
    greys[-1] = 1.0
    found = PAINT(jnp.zeros((*shape, 1)), rows, columns, 3000, greys, ((0, 0, 0),))[..., 0]
    expected = np.zeros(shape)
    for row, column, grey in zip(rows, columns, greys):
        expected[row, column] = grey
    assert np.max(np.abs(found - expected)) <= 2**-16


def test_shapes_leaving_the_image_are_cut():
    count = COVERING(jnp.array([0, 9]), jnp.array([0, 11]), 2, DISC, (10, 12))
    assert count.sum() == 2 * 8
    assert count[2, 1] == 1 and count[2, 2] == 0 and count[7, 10] == 1


def test_products_of_sets():
    rng = np.random.default_rng(0)
    rows, columns = rng.uniform(size=(9, 12)) < 0.2, rng.uniform(size=(9, 15)) < 0.2
    expected = (rows[:, :, None] & columns[:, None, :]).any(0)
    assert np.array_equal(painting.covered_by_products(jnp.asarray(rows), jnp.asarray(columns)), expected)
