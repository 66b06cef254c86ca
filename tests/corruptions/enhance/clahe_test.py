"""CLAHE against digests of OpenCV's results; colour; the variant of scikit-image."""

import hashlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from corruptions.enhance import clahe, clahe_skimage
from tests.corruptions.enhance import references

RNG = np.random.default_rng(0)
CASES = {  # (H, W), clip, grid: digest of OpenCV 5.0.0's result for `picture(H, W)`
    (32, 32, 2.0, (8, 8)): "09db90ea1f567b26",
    (45, 28, 3.7, (3, 5)): "1b5d4cd37d27462b",
    (24, 40, 0.0, (4, 4)): "0eb69bc5b630c5e1",
    (33, 48, 40.0, (8, 8)): "9e5d1a28d3e30138",
}


equalize = jax.jit(clahe.clahe, static_argnums=(1, 2))


def picture(height, width):
    """Noise on a slope, so that bins are cut off and others are empty; integers alone."""
    noise = np.random.default_rng(height * width).integers(0, 60, (height, width))
    return (noise + np.arange(height)[:, None] * 3 + np.arange(width)[None, :] * 2).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_clahe_is_opencvs_bit_for_bit(case):
    height, width, clip, grid = case
    found = equalize(picture(height, width), clip, grid)
    assert found.dtype == jnp.uint8
    assert hashlib.sha256(np.asarray(found).tobytes()).hexdigest()[:16] == CASES[case]


def test_a_constant_channel_stays_constant():
    found = np.asarray(equalize(np.full((32, 32), 90, np.uint8), 2.0, (8, 8)))
    assert len(np.unique(found)) == 1


def test_what_is_cut_off_is_given_back():
    counts = jnp.asarray(RNG.multinomial(784, RNG.dirichlet(np.full(256, 0.1)), size=5), jnp.int32)
    for limit in (1, 6, 122):
        found = np.asarray(jax.jit(clahe.clipped)(counts, limit))
        np.testing.assert_array_equal(found, [references.clipped(np.asarray(row), limit) for row in counts])
        assert (found.sum(1) == 784).all() and (found >= 0).all()  # so that running sums rise: tables are monotone


def test_lab_is_the_formula_and_comes_back():
    colours = RNG.integers(0, 256, (16, 16, 3)).astype(np.uint8)
    linear = np.where(colours / 255 <= 0.04045, colours / 255 / 12.92, ((colours / 255 + 0.055) / 1.055) ** 2.4)
    matrix = np.array([[0.412453, 0.35758, 0.180423], [0.212671, 0.71516, 0.072169], [0.019334, 0.119193, 0.950227]])
    xyz = linear @ matrix.T / [0.950456, 1, 1.088754]
    x, y, z = np.moveaxis(np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116), -1, 0)
    expected = [(116 * y - 16) * 2.55, 500 * (x - y) + 128, 200 * (y - z) + 128]
    found = jax.jit(clahe.lab_from_rgb)(colours)
    for channel, values in zip(found, expected):
        assert np.abs(np.asarray(channel) - values).max() <= 0.51
    back = np.asarray(jax.jit(clahe.rgb_from_lab)(*found)).astype(int)
    assert np.abs(back - colours).mean() < 2.5  # rounding of L, a and b to 8 bits, for bright colours


def test_value_and_channels_equalise_what_they_say():
    image = np.stack([picture(32, 32) // part for part in (1, 2, 4)], -1)
    image[0, 0] = 0
    value = np.asarray(equalize(image.max(-1), 2.0, (8, 8))).astype(float)
    share = image / np.maximum(image.max(-1, keepdims=True), 1)
    share[0, 0] = 1  # black has no hue: it becomes grey
    np.testing.assert_allclose(np.asarray(jax.jit(clahe.of_value)(image)), share * value[..., None], atol=0.51)
    by_channel = np.stack([equalize(image[..., c], 2.0, (8, 8)) for c in range(3)], -1)
    np.testing.assert_array_equal(jax.jit(clahe.of_channels)(image), by_channel)


@pytest.mark.parametrize("shape", [(24, 40), (33, 27)])
def test_the_variant_of_scikit_image(shape):
    channel = picture(*shape)
    expected = references.skimage_clahe(channel)
    found = np.asarray(jax.jit(clahe_skimage.equalize_value)(channel))
    stretched = (found - found.min()) / (found.max() - found.min())
    assert np.abs(stretched - expected).max() <= 1.1 / 16383
    levels = np.asarray(jax.jit(clahe_skimage.equalize)(np.stack([channel] * 3, -1)))
    assert np.abs(levels - 255 * expected[..., None]).max() <= 0.51


def test_no_bin_of_scikit_images_variant_passes_the_limit():
    counts = RNG.multinomial(784, RNG.dirichlet(np.full(256, 0.1)), size=4)
    found = np.asarray(jax.jit(clahe_skimage.clipped)(counts.astype(np.int32), 7))
    np.testing.assert_array_equal(found, [references.skimage_clipped(row, 7) for row in counts])
    assert found.max() <= 7


def test_a_flat_histogram_is_left_nearly_as_it_is():
    """Every level once in each of two tiles: the table is (v + 1) 255 / 256."""
    flat = np.stack([RNG.permutation(256).reshape(16, 16) for _ in range(2)], 1).reshape(16, 32).astype(np.uint8)
    found = np.asarray(equalize(flat, 1.0, (1, 2))).astype(int)
    assert np.abs(found - flat).max() <= 1
