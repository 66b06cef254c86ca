"""Estimate of the noise, and non-local means, against NumPy."""

import jax
import numpy as np
import pytest

from corruptions.enhance import denoise
from tests.corruptions.enhance import references

RNG = np.random.default_rng(0)
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
