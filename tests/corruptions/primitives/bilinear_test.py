"""Bilinear interpolation equals SciPy's, border rules included."""

import jax
import numpy as np
import pytest
import scipy.ndimage

from corruptions.primitives.warping import bilinear
from tests.corruptions.elsewhere import as_on


@pytest.mark.parametrize(("function", "mode"), [(bilinear.zero_padded, "grid-constant"), (bilinear.clamped, "nearest")])
def test_equals_scipy(function, mode):
    rng = np.random.default_rng(0)
    image = rng.random((9, 7, 3)).astype(np.float32)
    y, x = rng.uniform(-4, 13, (40, 50)).astype(np.float32), rng.uniform(-4, 11, 50).astype(np.float32)
    y[0, :5] = -1, 0, 8, 9, 8.5
    places = np.broadcast_arrays(y, x)
    planes = np.moveaxis(image, 2, 0).astype(np.float64)
    expected = [scipy.ndimage.map_coordinates(plane, places, order=1, mode=mode) for plane in planes]
    assert np.allclose(jax.jit(function)(image, y, x), np.stack(expected, -1), atol=2e-6)


def test_equal_pixels_stay_to_the_bit():
    x = np.random.default_rng(1).uniform(0, 6, (30, 30)).astype(np.float32)
    for level in (1 / 255, 77 / 255, 1):
        found = jax.jit(bilinear.zero_padded)(np.full((7, 7, 3), level, np.float32), x.T, x)
        assert np.all(found == np.float32(level))


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_others_look_up_without_a_loop_the_same(platform, monkeypatch):
    image = np.random.default_rng(2).random((7, 7, 3)).astype(np.float32)
    y, x = np.random.default_rng(3).uniform(-2, 8, (2, 5, 6)).astype(np.float32)
    looked_up = jax.jit(bilinear.zero_padded)
    assert "stablehlo.while" not in looked_up.trace(image, y, x).lower(lowering_platforms=(platform,)).as_text()
    expected = looked_up(image, y, x)
    through = jax.jit(jax.grad(lambda image: bilinear.zero_padded(image, y, x).sum())).trace(image)
    assert through.lower(lowering_platforms=(platform,)).as_text()  # whole numbers take no gradient along
    as_on(platform, monkeypatch)
    found = jax.jit(lambda *places: bilinear.zero_padded(*places))(image, y, x)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    flat = jax.jit(lambda *places: bilinear.clamped(*places))(np.full_like(image, 0.3), y, x)
    np.testing.assert_array_equal(flat, np.float32(0.3))
