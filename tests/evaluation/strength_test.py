"""Strength of corruptions: PSNR and SSIM against NumPy, their means and errors, and whose draws are measured."""

import math
import zlib

import jax
import numpy as np
import pytest
from scipy import ndimage

import corruptions
from evaluation import strength
from tests.refusing import refuses

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (6, 24, 40, 3)).astype(np.uint8)


def reference_psnr(a, b):
    return -10 * math.log10(np.mean((a - b) ** 2))


def reference_ssim(a, b):
    """The formula of Wang et al. (2004) in float64, each channel by itself, where the window of 11 pixels fits."""

    def blur(x):
        return ndimage.gaussian_filter(x, 1.5, radius=5, axes=(0, 1))[5:-5, 5:-5]

    mean_a, mean_b = blur(a), blur(b)
    variances = blur(a**2) - mean_a**2 + blur(b**2) - mean_b**2
    covariance = blur(a * b) - mean_a * mean_b
    map_ = (2 * mean_a * mean_b + 1e-4) * (2 * covariance + 9e-4)
    return np.mean(map_ / ((mean_a**2 + mean_b**2 + 1e-4) * (variances + 9e-4)))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_similarities_are_those_of_numpy(dtype):
    noise = RNG.normal(size=IMAGES.shape) * np.linspace(1, 90, 6)[:, None, None, None]
    others = np.clip(IMAGES + noise, 0, 255).astype(np.uint8)
    pairs = (IMAGES, others) if dtype == np.uint8 else ((x / 255).astype(np.float32) for x in (IMAGES, others))
    psnr, ssim, unchanged = strength.similarities(*pairs)
    expected = [(a / 255, b / 255) for a, b in zip(IMAGES.astype(float), others.astype(float), strict=True)]
    np.testing.assert_allclose(psnr, [reference_psnr(*pair) for pair in expected], rtol=1e-5)
    np.testing.assert_allclose(ssim, [reference_ssim(*pair) for pair in expected], atol=1e-5)
    assert not np.any(unchanged)


def test_an_equal_image_is_unchanged_and_counts_as_rounding():
    psnr, ssim, unchanged = map(np.asarray, strength.similarities(IMAGES, IMAGES))
    assert np.all(np.isinf(psnr)) and np.all(unchanged)
    np.testing.assert_allclose(ssim, 1, atol=1e-6)
    found = strength.summary("noc/hue", 0.5, psnr, ssim, unchanged)
    assert found.psnr == pytest.approx(10 * math.log10(255**2 * 12)) and found.unchanged == 1
    assert found.psnr_se == pytest.approx(0, abs=1e-9)


def test_means_and_standard_errors():
    found = strength.summary("fog", 3, np.array([20.0, 22, 24, 100]), np.array([0.1, 0.2, 0.3, 0.4]), np.eye(4)[3])
    bounded = np.array([20, 22, 24, strength.CEILING])
    assert found[:3] == ("imagenet_c/fog", 3, 4)
    assert found.psnr == pytest.approx(bounded.mean()) and found.psnr_se == pytest.approx(bounded.std(ddof=1) / 2)
    assert found.ssim == pytest.approx(0.25) and found.ssim_se == pytest.approx(math.sqrt(0.05 / 3) / 2)
    assert found.unchanged == 0.25
    refuses(lambda: strength.summary("fog", 3, np.ones(1), np.ones(1), np.zeros(1)), "at least two images, for")


def test_gaussian_noise_has_the_psnr_of_its_deviation():
    grey = np.full((8, 32, 32, 3), 128, np.uint8)
    for severity, deviation in ((1, 0.04), (3, 0.08), (5, 0.10)):  # of the table for CIFAR; nothing is clipped
        found = strength.strength(grey, "imagenet_c/gaussian_noise", severity)
        # Truncation to 8 bits adds a bias of half a level and the variance of a uniform distribution.
        error = deviation**2 + (1 / 4 + 1 / 12) / 255**2
        assert found.psnr == pytest.approx(-10 * math.log10(error), abs=5 * found.psnr_se + 0.01)
        assert found.images == 8 and found.unchanged == 0


def test_images_are_those_of_a_written_dataset():
    key = jax.random.fold_in(jax.random.key(7), zlib.crc32(b"imagenet_c/brightness"))
    corrupted = np.asarray(corruptions.corrupt(key, IMAGES, "imagenet_c/brightness", 4, table="tiny"))
    found = strength.strength(IMAGES, "imagenet_c/brightness", 4, seed=7, table="tiny")
    pairs = zip(IMAGES / 255, corrupted / 255, strict=True)
    assert found.psnr == pytest.approx(np.mean([reference_psnr(a, b) for a, b in pairs]), rel=1e-5)
    assert found.psnr != strength.strength(IMAGES, "imagenet_c/brightness", 4, seed=7, table="cifar").psnr


def test_a_benchmark_is_measured_in_the_ranges_its_levels_belong_to():
    first = next(strength.strengths(IMAGES, "imagenet_c_bar"))
    assert first[:2] == ("cbar/caustic_refraction", 1)
    assert first == strength.strength(IMAGES, "cbar/caustic_refraction", 1, table="imagenet")
    assert first != strength.strength(IMAGES, "cbar/caustic_refraction", 1)


def test_conditions_and_the_columns_they_are_shown_in():
    assert strength.conditions("imagenet_c")[:6:5] == (("imagenet_c/gaussian_noise", 1), ("imagenet_c/shot_noise", 1))
    assert ("cbar/sparkles", 8) in strength.conditions("cifar10_c_bar")
    assert len(strength.conditions("noc_candidates")) == 115
    columns = {"imagenet_noc": "0,0.25,0.5,0.75,1", "cifar10_c_bar": "1,2,3,4,5", "imagenet_c": "1,2,3,4,5"}
    assert {name: ",".join(strength.severity_names(name)) for name in columns} == columns


def test_steps_tell_milder_equal_and_stronger():
    def row(psnr, error, ssim=0.5):
        return strength.Strength("noc/hue", 0, 9, psnr, error, ssim, 0.1, 0.0)

    rows = [row(30, 0.1), row(29, 0.1), row(29, 0.1), row(29, 0.1, 0.4), row(29.2, 0.1), row(30, 0.1)]
    assert strength.steps(rows) == [-1, 0, None, None, 1]
    assert strength.steps(rows[:1]) == []
