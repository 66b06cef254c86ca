"""Enhancements by name: batches, dtypes, ten crops; programs for TPU and GPU; the estimate of the noise and non-local means
against NumPy.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from corruptions import enhance as enhancements
from corruptions.enhance import clahe, clahe_skimage, denoise
from tests.corruptions.enhance import references

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)


def test_names():
    assert enhancements.names() == ("clahe", "clahe_hsv", "clahe_rgb", "clahe_skimage", "nlm", "ten_crop")
    assert set(enhancements.of_pixels()) == set(enhancements.names()) - {"ten_crop"}


def test_a_batch_is_its_images_one_by_one_of_either_dtype():
    found = enhancements.enhance(IMAGES, "clahe")
    assert found.dtype == jnp.uint8
    one_by_one = np.stack([jax.jit(clahe.of_lightness)(image) for image in IMAGES])
    np.testing.assert_array_equal(found, one_by_one)
    floats = enhancements.enhance((IMAGES / 255).astype(np.float32), "clahe")
    assert floats.dtype == jnp.float32
    np.testing.assert_allclose(floats, one_by_one / 255, atol=1e-6)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("clahe:clip=4,grid=4x2", lambda image: clahe.of_lightness(image, clip=4, grid=(4, 2))),
        ("clahe_rgb:grid=4x4", lambda image: clahe.of_channels(image, grid=(4, 4))),
        ("clahe_skimage:clip=.05,tiles=4", lambda image: clahe_skimage.equalize(image, clip=0.05, tiles=4)),
        ("nlm:patch=3,distance=2,h=.6,sigma=.1", lambda image: denoise.denoise_levels(image, patch=3, distance=2, h=0.6, sigma=0.1)),
    ],
)  # fmt: skip
def test_settings_follow_the_name(name, expected):
    found = enhancements.enhance(IMAGES[:1], name)[0]
    np.testing.assert_array_equal(found, jax.jit(expected)(IMAGES[0]))
    assert (np.asarray(found) != enhancements.enhance(IMAGES[:1], name.partition(":")[0])[0]).any()


def test_ten_crops_are_corners_centre_and_their_mirror_images():
    rows, columns = np.mgrid[:37, :41]
    index = jnp.asarray(np.stack([rows, columns], -1))
    found = np.asarray(enhancements.ten_crops(index, 32, 35))
    assert found.shape == (10, 32, 35, 2)
    starts = [(3, 3), (0, 0), (0, 6), (5, 0), (5, 6)]  # the centre's half pixel is rounded up
    assert [tuple(crop[0, 0]) for crop in found[:5]] == starts
    for (top, left), crop, mirrored in zip(starts, found[:5], found[5:]):
        assert tuple(crop[-1, -1]) == (top + 31, left + 34)
        assert tuple(mirrored[0, 0]) == (top, 40 - left)  # the same crop of the mirror image
        assert (np.diff(mirrored[0, :, 1]) == -1).all()


def test_an_image_that_is_stored_at_the_size_of_a_crop_is_enlarged():
    for side, larger in ((224, 256), (32, 37)):
        assert jax.eval_shape(enhancements.enlarged, jax.ShapeDtypeStruct((side, side, 3), np.uint8)).shape[0] == larger
    constant = jnp.full((32, 32, 3), 77, jnp.uint8)
    np.testing.assert_array_equal(enhancements.enlarged(constant), np.full((37, 37, 3), 77))


def test_probabilities_are_averaged_not_logits():
    weights = jnp.asarray(RNG.normal(size=(32 * 32 * 3, 4)) * 0.2, jnp.float32)

    def classify(images):
        return (images.astype(jnp.float32) / 255).reshape(images.shape[0], -1) @ weights

    found = np.asarray(jax.jit(enhancements.averaged(classify, "ten_crop"))(IMAGES))
    cut = jax.jit(lambda image: enhancements.ten_crops(enhancements.enlarged(image), 32, 32))
    views = [classify(cut(image)) for image in IMAGES]
    expected = np.stack([jax.nn.softmax(view).mean(0) for view in views])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-5)
    of_mean = np.stack([jax.nn.softmax(view.mean(0)) for view in views])
    assert np.abs(of_mean - expected).max() > 0.01
    assert enhancements.averaged(classify, "clahe") is classify


@pytest.mark.parametrize("name", ["clahe", "clahe_skimage", "nlm"])
def test_programs_for_accelerators(name):
    images = jax.ShapeDtypeStruct((2, 48, 40, 3), np.uint8)
    traced = jax.jit(lambda x: enhancements.enhance(x, name)).trace(images)
    assert "callback" not in str(traced.jaxpr)
    for platform in ("cuda", "tpu"):
        assert traced.lower(lowering_platforms=(platform,)).as_text()


STEP = np.where(np.arange(37)[None, :, None] < 18, 0.3, 0.7) * np.ones((34, 1, 3))
NOISY = (STEP + RNG.normal(scale=0.08, size=STEP.shape)).astype(np.float32)

estimate = jax.jit(denoise.estimate)


@pytest.mark.parametrize("shape", [(32, 32, 3), (33, 30, 3)])
def test_the_estimate_is_the_median_of_the_finest_wavelets(shape):
    image = RNG.random(shape, np.float32)
    image[:10] = 0.5  # coefficients that are 0 do not count
    assert float(estimate(image)) == pytest.approx(references.noise(image), rel=1e-4)


def test_the_estimate_is_that_of_gaussian_noise():
    flat = (0.5 + RNG.normal(scale=0.07, size=(96, 96, 3))).astype(np.float32)
    found = float(estimate(flat))
    assert found / 0.07 == pytest.approx(1, abs=0.03)
    assert float(estimate(flat + 0.25)) == pytest.approx(found, rel=1e-4)
    assert float(estimate(flat * 3)) == pytest.approx(3 * found, rel=1e-4)


def test_a_constant_image_has_no_noise():
    assert float(estimate(np.full((32, 32, 3), 0.3, np.float32))) < 1e-6
    assert float(estimate(np.zeros((32, 32, 3), np.float32))) == 0


@pytest.mark.parametrize("sigma", [0.0, 0.08])
def test_means_are_those_of_loops(sigma):
    image = NOISY[:12, 9:22]
    found = jax.jit(denoise.denoise, static_argnums=(2, 3, 4))(image, 0.1, 3, 2, sigma)
    np.testing.assert_allclose(found, references.non_local_means(image, 0.1, 3, 2, sigma), atol=1e-5)


def test_strips_of_a_taller_image_fit_together():
    found = np.asarray(
        jax.jit(denoise.denoise, static_argnums=(2, 3))(NOISY[:, :16], 0.1, 3, 2)
    )  # 34 rows: two strips of 17
    rows = slice(14, 20)
    expected = references.non_local_means(NOISY[8:26, :16], 0.1, 3, 2)[6:12]
    np.testing.assert_allclose(found[rows], expected, atol=1e-5)


def test_denoising_keeps_constants_and_edges_and_removes_noise():
    denoised = jax.jit(denoise.denoise)
    constant = np.full((34, 37, 3), 0.3, np.float32)
    np.testing.assert_allclose(denoised(constant, 0.05), constant, atol=1e-6)
    found = np.asarray(denoised(NOISY, 0.064))
    assert ((found - STEP) ** 2).mean() < 0.3 * ((NOISY - STEP) ** 2).mean()
    assert found.min() >= NOISY.min() and found.max() <= NOISY.max()
    np.testing.assert_allclose(denoised(NOISY, 0.0), NOISY, atol=1e-6)


def test_levels_without_noise_stay():
    constant = np.full((32, 32, 3), 77, np.uint8)
    np.testing.assert_array_equal(jax.jit(denoise.denoise_levels)(constant), constant)
