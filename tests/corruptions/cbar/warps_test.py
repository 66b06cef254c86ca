"""The warps of C-bar: batches, no strength, and cases known by hand."""

import jax
import numpy as np
import pytest
import scipy.stats

from corruptions import cbar
from corruptions.cbar import displacement, lenses
from tests.corruptions.cbar.agreement import WARPS, compiled
from tests.reference.photographs import photograph


def without_strength(name, image):
    """Parameters as drawn, those that grow with severity put where nothing happens."""
    params, _ = compiled(name, image.shape)(jax.random.key(1), image, 5)
    neutral = {"lens": 0, "light": 0, "angle": 0, "exponent": 0, "index": 1, "amplitude": 0, "reach": 0}
    neutral |= {"shears": 0, "shifts": 0, "scales": 1, "tilt": 0}
    neutral["corners"] = np.array([(0, 0), (0, 32), (32, 32), (32, 0)])
    return {k: np.broadcast_to(np.float32(neutral.get(k, v)), np.shape(v)) for k, v in params.items()}


@pytest.mark.parametrize("name", WARPS)
def test_no_strength_no_change(name):
    image = photograph(32, 32)
    params, image = without_strength(name, image), np.float32(image / 255)
    found = jax.jit(getattr(cbar, name).apply)(image, params)
    assert np.abs(found - image).max() <= 2e-5
    if name not in ("quadrilateral_no_bars", "water_drop"):  # positions come out with a rounding there
        assert np.array_equal(found, image)


@pytest.mark.parametrize("name", ["perspective_no_bars", "quadrilateral_no_bars"])
def test_no_bars(name):
    """Grey stays grey to the bit; every pixel shows the image, its own where the view is outside."""
    grey = np.full((32, 32, 3), 77, np.uint8)
    for level in (1, 10):
        assert np.all(compiled(name, grey.shape)(jax.random.key(level), grey, level)[1] == 77)


def test_zero_outside():
    """A white image fades at the border only, where ripples reach over it."""
    white = np.full((32, 32, 3), 255, np.uint8)
    darkest = np.full((32, 32), 255)
    for seed in range(8):
        found = compiled("ripple", white.shape)(jax.random.key(seed), white, 10)[1]
        darkest = np.minimum(darkest, np.asarray(found).min(-1))
    assert np.all(darkest[1:-1, 1:-1] == 255) and darkest[0].max() < 255 and darkest[:, -1].max() < 255


def test_what_the_cells_leave_does_not_turn():
    image = photograph(32, 32)
    found = np.asarray(compiled("pinch_and_twirl", image.shape)(jax.random.key(0), image, 10)[1])
    changed = np.any(found != image, axis=-1)
    assert not changed[30:].any() and not changed[:, 30:].any()
    middles = 10 * np.arange(3) + 5
    assert not changed[np.ix_(middles, middles)].any()  # the middle of a cell stays
    assert all(changed[middles[i] - 2, middles[j] + 1] for i in range(3) for j in range(3))


def test_lenses_see_what_earlier_ones_left():
    image = photograph(32, 32).astype(np.float32) / 255
    apply = jax.jit(lenses.fish_eye.apply)

    def seen(*centres):
        return np.asarray(apply(image, {"index": np.float32(1.8), "centres": np.array(centres, np.float32)}))

    near, other, far = (10.3, 10.2), (11.8, 11.9), (24.4, 25.1)
    assert np.array_equal(seen(near, far), seen(far, near))
    assert np.abs(seen(near, other) - seen(other, near)).max() > 0.01
    once, twice = seen(near, near), seen(near, far)
    assert np.abs(once - twice)[6:15, 6:15].max() > 0.01  # seen through twice, not once
    changed = np.any(seen(near, near) != image, -1)
    y, x = np.nonzero(changed)
    assert changed.any() and np.all(np.hypot(y - near[0], x - near[1]) < 3)


def test_hash():
    """The two fields are those of float64, swapped axes of one another, and as good as uniform and independent."""
    hashes = jax.jit(displacement._hashes, static_argnums=0)
    for k in (0.37, 3.3, 7.1):
        seed = np.float32(k)
        down, right = (np.asarray(v) for v in hashes((48, 64), seed))
        y, x = np.mgrid[:48, :64].astype(np.float64)
        for found, (u, v) in ((down, (y, x)), (right, (x, y))):
            inner = 12.9898 * np.sin(float(seed) * u) + 78.233 * np.cos(float(seed) * v)
            gap = np.abs(found - np.mod(43758.5453 * np.sin(inner), 1))
            assert np.minimum(gap, 1 - gap).max() < 1e-6
        assert np.array_equal(down[:, :48], right[:, :48].T)
        assert down.dtype == np.float32 and scipy.stats.kstest(down.ravel(), "uniform").pvalue > 1e-4
        assert abs(np.corrcoef(down[:, 1:].ravel(), down[:, :-1].ravel())[0, 1]) < 0.08
