"""Procedural frost against the statistics measured on the photographs of ImageNet-C's frost."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

from corruptions.imagenet_c.frost import frost
from corruptions.primitives import frost_texture

LUMA = np.array([0.299, 0.587, 0.114])

# Measured per photograph (frost1, frost2, frost4, frost5). Bands: deviations of Gaussian differences, finest first.
MEASURED = (
    {
        "size": (600, 900), "mean_rgb": (78, 149, 166), "std_rgb": (27, 17, 15), "std": 18,
        "percentiles": (95, 102, 116, 128, 141, 163, 177), "bands": (4.1, 3.8, 2.7, 1.9, 2.0, 2.5, 3.0, 3.9),
        "autocorrelation": (0.83, 0.69, 0.61, 0.40), "step": 7.8, "kurtosis": 4.9, "inside_crop": 16,
        "correlations": (0.82, 0.57, 0.93), "decimated": ((14, 11), (14, 8.6)),
    },
    {
        "size": (315, 560), "mean_rgb": (201, 205, 215), "std_rgb": (21, 22, 23), "std": 22,
        "percentiles": (140, 165, 193, 208, 220, 235, 244), "bands": (4.2, 4.4, 4.1, 3.9, 3.2, 2.6, 2.3, 3.2),
        "autocorrelation": (0.86, 0.63, 0.49, 0.37), "step": 8.1, "kurtosis": 6.8, "inside_crop": 20,
        "correlations": (0.99, 0.99, 0.99), "decimated": ((18, 14), (18, 11)),
    },
    {
        "size": (350, 527), "mean_rgb": (138, 153, 165), "std_rgb": (29, 29, 30), "std": 29,
        "percentiles": (81, 102, 132, 150, 167, 196, 231), "bands": (7.1, 7.2, 5.9, 4.7, 3.6, 2.5, 2.5, 4.9),
        "autocorrelation": (0.78, 0.50, 0.40, 0.30), "step": 13.6, "kurtosis": 5.1, "inside_crop": 26,
        "correlations": (0.99, 0.99, 0.99), "decimated": ((26, 22), (23, 17)),
    },
    {
        "size": (495, 660), "mean_rgb": (112, 123, 135), "std_rgb": (44, 43, 42), "std": 43,
        "percentiles": (43, 58, 89, 117, 149, 202, 237), "bands": (9.4, 8.4, 8.1, 8.0, 7.8, 6.7, 4.8, 5.6),
        "autocorrelation": (0.84, 0.61, 0.42, 0.30), "step": 17.5, "kurtosis": 5.3, "inside_crop": 36,
        "correlations": (0.99, 0.99, 0.99), "decimated": ((35, 29), (32, 23)),
    },
)  # fmt: skip


def bands(luminance):
    smooth = [luminance] + [ndimage.gaussian_filter(luminance, 0.6 * 2**k) for k in range(8)]
    return np.array([(a - b).std() for a, b in itertools.pairwise(smooth)])


def autocorrelation(x, lag):
    x = x - x.mean()
    down, across = (x[lag:] * x[:-lag]).mean(), (x[:, lag:] * x[:, :-lag]).mean()
    return (down + across) / 2 / (x**2).mean()


@functools.cache
def maker(height, width, step=1):
    """(key, look) -> every `step`th pixel of a sheet, one program for all looks."""
    rows, columns = step * np.arange(height), step * np.arange(width)
    return jax.jit(lambda key, look: frost_texture.texture(key, look, rows, columns))


def sheets(look, make, seeds=(11, 12)):
    return np.stack([np.asarray(make(jax.random.key(seed), look), np.float64) for seed in seeds])


@pytest.mark.parametrize("look", range(4), ids=frost_texture.LOOKS)
def test_levels_and_colours_of_the_photographs(look):
    measured = MEASURED[look]
    pixels = sheets(look, maker(300, 300, 17)).reshape(-1, 3)  # few pixels of a very large sheet
    assert pixels.min() >= 0 and pixels.max() <= 255 and (pixels == np.round(pixels)).all()
    np.testing.assert_allclose(pixels.mean(0), measured["mean_rgb"], atol=5)
    np.testing.assert_allclose(pixels.std(0), measured["std_rgb"], atol=3)
    luminance = pixels @ LUMA
    np.testing.assert_allclose(luminance.std(), measured["std"], rtol=0.1)
    found = np.percentile(luminance, frost_texture.PERCENTILES)
    np.testing.assert_allclose(found, measured["percentiles"], atol=5)
    np.testing.assert_allclose(np.corrcoef(pixels.T)[[0, 0, 1], [1, 2, 2]], measured["correlations"], atol=0.06)


@pytest.mark.parametrize(  # the sheets of looks 0 and 3 are the largest
    "look",
    [
        pytest.param(look, id=name, marks=[pytest.mark.slow] * (look in (0, 3)))
        for look, name in enumerate(frost_texture.LOOKS)
    ],
)
def test_structure_of_the_photographs(look):
    measured = MEASURED[look]
    luminance = sheets(look, maker(*measured["size"])) @ LUMA
    found = np.sqrt(np.mean([bands(x) ** 2 for x in luminance], axis=0))
    np.testing.assert_allclose(found[:6], measured["bands"][:6], rtol=0.2)
    np.testing.assert_allclose(found[6:], measured["bands"][6:], rtol=0.35)  # few such waves fit into a sheet
    # Relative to each sheet's own mean, as measured: varies much between sheets at the longer lags.
    found = [np.mean([autocorrelation(x, lag) for x in luminance]) for lag in (1, 4, 16, 64)]
    np.testing.assert_allclose(found, measured["autocorrelation"], atol=0.2)
    step = np.diff(luminance, axis=2)
    assert abs(abs(step).mean() / measured["step"] - 1) < 0.2
    assert abs((step**4).mean() / (step**2).mean() ** 2 / measured["kurtosis"] - 1) < 0.2
    inside = np.mean([x[y : y + 224, z : z + 224].std() for x in luminance for y in (0, 80) for z in (0, 300)])
    assert abs(inside / measured["inside_crop"] - 1) < 0.2


@pytest.mark.parametrize("table, side, column", [("cifar", 32, 0), ("tiny", 64, 1)])
def test_statistics_of_the_reduced_textures(table, side, column):
    """Contrast inside a crop and mean step between neighbours, of the photographs reduced by 0.2 and 0.3."""
    number = 300
    sample = jax.jit(jax.vmap(lambda i: frost.sample(jax.random.key(i), (side, side, 3), 3, table=table)["texture"]))
    images = np.asarray(sample(jnp.arange(number)), np.float64)
    luminance = images @ LUMA
    expected_std = np.array([m["decimated"][column][0] for m in MEASURED])
    expected_step = np.array([m["decimated"][column][1] for m in MEASURED])
    mixture = np.array([0.2, 0.4, 0.2, 0.2])
    step = abs(np.diff(luminance, axis=2)).mean((1, 2))
    assert abs(luminance.std((1, 2)).mean() / (mixture @ expected_std) - 1) < 0.2
    assert abs(step.mean() / (mixture @ expected_step) - 1) < 0.2
    assert abs(luminance.mean() - 162) < 8  # mean of the mixture
    # Shares of the looks, told apart by the differences of the mean colours: red and blue of the four photographs.
    red_blue = images.mean((1, 2))[:, [0, 2]]
    looks = np.array([[78, 166], [201, 215], [138, 165], [112, 135]])
    nearest = ((red_blue[:, None] - looks) ** 2).sum(-1).argmin(1)
    shares = np.bincount(nearest, minlength=4) / number
    np.testing.assert_allclose(shares, mixture, atol=0.11)


def test_reduced_textures_are_samples_of_a_sheet():
    """Fields at every fifth pixel have the correlations of the full field there."""
    unit = jnp.eye(len(frost_texture.SCALES))[:6]

    def fields(key, rows):
        return jax.jit(jax.vmap(lambda row: frost_texture.height(key, rows, rows, row, 0.0)))(unit)

    layers, full = fields(jax.random.key(0), 5 * np.arange(60) + 2), fields(jax.random.key(1), np.arange(300))
    for thin, whole in zip(layers, full, strict=True):
        thin, whole = np.asarray(thin), np.asarray(whole)
        assert abs(thin.std() / whole.std() - 1) < 0.25
        assert abs(autocorrelation(thin, 1) - autocorrelation(whole, 5)) < 0.12
    assert abs(autocorrelation(np.asarray(full[3]), 8) - np.exp(-(8**2) / (4 * 6.4**2))) < 0.1


def test_spread_is_monotone_and_meets_its_knots():
    quantiles = np.array(frost_texture.QUANTILES[2], np.float32)
    knots = jnp.asarray(frost_texture.LEVELS[2], jnp.float32)
    values = np.asarray(frost_texture.spread(jnp.asarray(quantiles), jnp.asarray(quantiles), knots))
    np.testing.assert_allclose(values, frost_texture.LEVELS[2], atol=1e-3)
    wide = jnp.linspace(-500.0, 500.0, 400)
    mapped = frost_texture.spread(wide, jnp.asarray(quantiles), knots)
    assert np.all(np.diff(mapped) >= 0) and mapped[0] == 0 and mapped[-1] == 255
