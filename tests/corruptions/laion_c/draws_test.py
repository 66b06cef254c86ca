"""Draws of LAION-C: the distributions of the released code, shares of the image, scaling with the side."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from tests.corruptions.comparing import assert_uniform, assert_whole, drawn

KEY = jax.random.key(11)


@pytest.mark.parametrize("severity", [2, 5])
def test_random_glitches(severity):
    glitch, (height, width) = {2: 4, 5: 10}[severity], (40, 32)
    params = drawn("laion_c/glitched", 400, severity, (height, width, 3), mode="random")
    most, (roll, start, rows) = int(glitch * glitch / 100 * width), np.moveaxis(params["bands"], -1, 0)
    assert_whole(roll, -most, most)
    assert_whole(start, 0, height)
    used = (rows > 0)[:, : 2 * glitch]
    assert not (rows > 0)[:, 2 * glitch :].any()
    assert abs(used.mean() - (1 - 1 / (2 * most + 1)) * height / (height + 1)) < 0.02
    assert_whole(rows[(rows > 0) & (start <= height - height // 4)], 1, height // 4)
    assert_whole(params["channel"], 0, 2)
    assert_whole(params["offset"], -2 * glitch, 2 * glitch)


def test_shapes():
    params = drawn("laion_c/geometric_shapes", 100, 1, (40, 64, 3))
    assert (params["count"] == 240).all() and params["kind"].shape == (100, 1600)
    for name, most in {"kind": 3, "size": 9, "row": 39, "column": 63, "rotation": 359, "color": 255}.items():
        assert_whole(params[name].astype(int), 0, most)


def test_stickers():
    params = drawn("laion_c/stickers", 30, 5, (48, 64, 3))
    assert (params["count"] == 1600).all()
    for name, most in {"row": 48 - 3 - 1, "column": 64 - 3 - 1, "tile": 47}.items():
        assert_whole(params[name], 0, most)


@pytest.mark.parametrize("side", [pytest.param(224, marks=pytest.mark.slow), 56])
def test_shapes_cover_the_published_share(side):
    """The facts of LAION-C have 27.6, 48.0, 73.2, 82.0 and 88.0 % at 224, give or take one."""
    black = jnp.zeros((60, side, side, 3))
    for severity, share in enumerate((0.276, 0.480, 0.732, 0.820, 0.880), 1):
        found = np.asarray(corruptions.corrupt(KEY, black, "laion_c/geometric_shapes", severity))
        assert abs((found > 0).any(-1).mean() - share) < (0.012 if side == 224 else 0.04), severity


@pytest.mark.parametrize(("severity", "low", "high"), [(1, 0, 50), (3, 100, 125), (5, 150, 255)])
def test_amplitudes(severity, low, high):
    amplitude = drawn("laion_c/luminance_checkerboard", 50, severity, (48, 33, 3))["amplitude"]
    assert amplitude.shape == (50, 24, 17)
    assert_uniform(amplitude, low, high)
