"""The blurs of the C-bar candidates: published sizes and strengths, splines, cases known by hand."""

import functools

import jax
import numpy as np
import pytest
import scipy.ndimage
import scipy.stats

from corruptions import cbar
from corruptions.primitives import spline

# Supplement D: sides of the two enlargements at levels 1 to 10.
SIZES = {
    32: "33,34 34,35 34,37 35,38 36,40 37,42 38,43 38,45 39,46 40,48",
    224: "230,235 235,246 241,258 246,269 252,280 258,291 263,302 269,314 274,325 280,336",
}


@pytest.mark.parametrize("side", SIZES)
def test_published_sizes(side):
    sample = jax.jit(functools.partial(cbar.transverse_chromatic_aberration.sample, shape=(side, side, 3)))
    for level, expected in enumerate(SIZES[side].split(), 1):
        sizes = np.asarray(sample(jax.random.key(level), severity=level)["sizes"])
        assert np.array_equal(sizes[:, 0], sizes[:, 1])
        assert sorted(map(int, sizes[:, 0])) == [side, *map(int, expected.split(","))]


def test_every_channel_takes_every_size():
    sample = functools.partial(cbar.transverse_chromatic_aberration.sample, shape=(32, 32, 3), severity=10)
    sizes = np.asarray(jax.vmap(lambda key: sample(key)["sizes"])(jax.random.split(jax.random.key(0), 600)))[..., 0]
    orders, counts = np.unique(sizes, axis=0, return_counts=True)
    assert len(orders) == 6 and scipy.stats.chisquare(counts).pvalue > 1e-3


def test_published_angles():
    angles = [float(cbar.circular_motion_blur.sample(jax.random.key(0), (32, 32, 3), k)["angle"]) for k in (1, 2, 10)]
    assert np.allclose(angles, (4.2, 5.4, 15))


def test_shifts_point_anywhere():
    sample = functools.partial(cbar.chromatic_aberration.sample, shape=(40, 32, 3), severity=10)
    shifts = np.asarray(jax.vmap(lambda key: sample(key)["shifts"])(jax.random.split(jax.random.key(1), 500)))
    assert np.allclose(np.hypot(shifts[..., 0], shifts[..., 1]), 0.07 * 32, rtol=1e-5)
    turns = np.arctan2(shifts[..., 1], shifts[..., 0]) / (2 * np.pi) % 1
    for channel in turns.T:
        assert scipy.stats.kstest(channel, "uniform").pvalue > 1e-3


def test_splines():
    rng = np.random.default_rng(0)
    samples = rng.uniform(size=19)
    image = rng.uniform(size=(19, 16, 2)).astype(np.float32)
    expected = np.stack([scipy.ndimage.spline_filter(channel, 3, mode="mirror") for channel in image.T], -1)
    assert np.allclose(spline.coefficients(image), expected.swapaxes(0, 1), atol=2e-6)
    grey = np.full((19, 16, 2), np.float32(0.7))
    assert np.array_equal(spline.coefficients(grey), grey)  # to the last bit
    positions = np.float32([0, 0.3, 1, 7.25, 17.9, 18, -0.01, 18.01])
    found = spline.sampling_matrix(19, positions) @ samples.astype(np.float32)
    expected = scipy.ndimage.map_coordinates(samples, [positions], order=3, mode="constant", prefilter=False)
    assert np.allclose(found, expected, atol=1e-6) and found[-1] == found[-2] == 0


def test_a_blurred_grey_darkens_in_the_corners_only():
    grey = np.full((64, 64, 3), 0.5, np.float32)
    found = np.asarray(cbar.circular_motion_blur.apply(grey, {"angle": np.float32(15)}))
    y, x = np.mgrid[:64, :64] - 31.5
    inside = np.hypot(y, x) <= 31.5
    assert np.allclose(found[inside], 0.5, atol=1e-5)
    corner = found[0, 0, 0]  # only the rotation by nothing leaves a corner inside
    assert np.isclose(corner, 0.5 / np.exp(-2 * (np.arange(-10, 11) / 10) ** 2).sum(), atol=1e-4)
