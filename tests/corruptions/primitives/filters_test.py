"""Filters, zooms and Fourier transforms against SciPy and NumPy, in every form that a platform takes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

from corruptions.primitives import color, filters, fourier, resizing
from tests.corruptions.comparing import as_on
from tests.reference.imagenet_c.blur import clipped_zoom
from tests.reference.imagenet_c.elastic import PIXELS


@pytest.mark.parametrize("size, sigma, truncate", [(33, 1.5, 4.0), (16, 0.1, 4.0), (32, 6.4, 3.0), (20, 40.0, 3.0)])
def test_mirrored_matrix_is_scipys_filter(size, sigma, truncate):
    expected = ndimage.gaussian_filter1d(np.eye(size), sigma, axis=0, mode="reflect", truncate=truncate)
    reach = int(truncate * sigma + 0.5) + 2  # more room than needed changes nothing
    matrix = jax.jit(lambda sigma: filters.mirrored_matrix(size, sigma, reach, truncate))(sigma)
    np.testing.assert_allclose(matrix, expected, atol=1e-6)


@pytest.mark.parametrize("own, sigma", [(20, 10.0), (20, 16.0), (57, 10.0)])
def test_a_mirrored_matrix_of_a_padded_axis_is_scipys_filter_of_its_own_part(own, sigma):
    expected = ndimage.gaussian_filter1d(np.eye(own), sigma, axis=0, mode="reflect", truncate=3.0)
    found = np.asarray(jax.jit(lambda own: filters.mirrored_matrix(64, sigma, 50, 3.0, own=own))(own))
    np.testing.assert_allclose(found[:own, :own], expected, atol=1e-6)
    assert not found[:, own:].any()


@pytest.mark.parametrize("platform", ["cpu", "tpu"])
@pytest.mark.parametrize("table", PIXELS)
def test_fields_are_smoothed_noise(table, platform, monkeypatch):
    as_on(platform, monkeypatch)
    noise = np.random.default_rng(0).uniform(-1, 1, (41, 56)).astype(np.float32)
    radii = [int(3 * sigma + 0.5) for _, sigma, _ in PIXELS[table]]  # the narrowest filter is the last
    smooth = jax.jit(lambda u, sigma: filters.mirrored_gaussian([u], u.shape, sigma, max(radii), radii[-1], 3.0)[0])
    for _, sigma, _ in PIXELS[table]:
        expected = ndimage.gaussian_filter(noise.astype(np.float64), sigma, mode="reflect", truncate=3)
        np.testing.assert_allclose(smooth(noise, sigma), expected, atol=2e-6)


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
@pytest.mark.parametrize("shape, sigma", [((20, 33, 3), 1.5), ((16, 21), 4.0)])
def test_a_gaussian_repeats_the_border(shape, sigma, platform, monkeypatch):
    as_on(platform, monkeypatch)
    image = np.random.default_rng(0).uniform(size=shape).astype(np.float32)
    expected = ndimage.gaussian_filter(image.astype(float), (sigma, sigma, 0)[: len(shape)], mode="nearest")
    weights = filters.gaussian_weights(sigma, int(4 * sigma + 0.5) + 2)  # more room than needed changes nothing
    filtered = jax.jit(lambda *given: filters.gaussian(*given))  # a function of its own: programs are kept by function
    np.testing.assert_allclose(filtered(image, jnp.float32(sigma), weights), expected, atol=1e-6)


def test_surfaces_of_one_colour_keep_their_level():
    """Under the widths of glass_blur and of LIBERO-Plus, cut as glass_blur and uint8 batches are. Rounding may take few
    levels down by one; with weights that are added from left to right, as they come, it takes 159 at sigma 7.
    """
    levels = np.arange(256)
    surfaces = jnp.broadcast_to(color.from_levels(levels.astype(np.float32))[:, None, None], (256, 4, 4))

    @jax.jit
    def blurred(sigma):
        found = jax.vmap(filters.gaussian, (0, None, None))(surfaces, sigma, filters.gaussian_weights(sigma, 40))
        return color.truncated(255 * jnp.clip(found, 0, 1))

    for sigma in (0.4, 0.5, 0.6, 0.7, 0.9, 1.0, 1.1, 1.3, 1.5, 1.6, 1.8, 2.0, 2.2, 2.5, 5.0, 6.0, 7.0, 8.0, 10.0):
        found = np.asarray(blurred(jnp.float32(sigma))).reshape(256, -1)
        different = levels[(found != levels[:, None]).any(1)]
        assert different.size <= 8, f"sigma {sigma}: levels {different}"


@pytest.mark.parametrize("shape", [(21, 33), (16, 16), (64, 47)])
def test_fourier_filter_is_the_mirrored_correlation(shape):
    rng = np.random.default_rng(0)
    image = rng.uniform(size=(*shape, 3)).astype(np.float32)
    quarter = rng.uniform(size=(8, 8))
    half = np.concatenate([quarter[:0:-1], quarter])
    kernel = np.concatenate([half[:, :0:-1], half], axis=1)
    kernel /= kernel.sum()
    expected = np.stack([ndimage.correlate(image[..., c].astype(float), kernel, mode="mirror") for c in range(3)], -1)
    for function in (fourier.filter_symmetric, fourier.filter_by_cosines):
        found = jax.jit(function)(image, kernel.astype(np.float32))
        np.testing.assert_allclose(found, expected, atol=2e-6, err_msg=function.__name__)


@pytest.mark.parametrize("size", [16, 32, 33, 64, 100])
@pytest.mark.parametrize("factor", [1, 1.11, 1.3, 1.75, 2.25, 3, 4.5])
def test_zoom_matrix_is_the_zoomed_central_crop(size, factor):
    x = np.random.default_rng(size).uniform(size=(size, size))
    matrix = resizing.zoom_matrix(size, factor)
    np.testing.assert_allclose(matrix @ x @ matrix.T, clipped_zoom(x, factor), atol=1e-12)


@pytest.mark.parametrize("shape, reach", [((16, 21, 3), 4), ((17, 20, 1), 7)])
def test_a_filter_by_products_is_the_fourier_filter(shape, reach):
    rng = np.random.default_rng(0)
    image = rng.uniform(0, 1, shape).astype(np.float32)
    padded = np.pad(image, ((reach, reach), (reach, reach), (0, 0)), mode="edge")
    sides = padded.shape[:2]
    kernel = np.zeros(sides)
    kernel[np.ix_(np.arange(-reach, reach + 1), np.arange(-reach, reach + 1))] = rng.normal(size=(2 * reach + 1,) * 2)
    transfer = np.fft.rfft2(kernel)
    expected = np.fft.irfft2(np.fft.rfft2(padded, axes=(0, 1)) * transfer[..., None], sides, axes=(0, 1))
    parts = np.stack([transfer.real, transfer.imag]).astype(np.float32)
    found = jax.jit(fourier.filter_by_products, static_argnums=2)(image, parts, reach)
    np.testing.assert_allclose(found, expected[reach:-reach, reach:-reach], atol=2e-5 * abs(transfer).max())


@pytest.mark.parametrize("largest", [1.3, 1.56])
def test_every_platform_sums_zooms_alike_and_a_tpu_looks_nothing_up(largest, monkeypatch):
    rng = np.random.default_rng(0)
    images, weights = rng.uniform(0, 1, (2, 20, 27, 3)).astype(np.float32), np.float32([[0.5, 0.3, 0.2], [0.5, 0, 0.5]])
    factors = (1, 1.11, largest)
    taps = [[sum(resizing.zoom_taps(size, f)) - np.arange(size) for f in factors] for size in images.shape[1:3]]
    rows, columns = (np.float32(of_axis) for of_axis in taps)
    zoomed = lambda x, w: resizing.sum_of_zooms(x, rows, columns, w, largest=largest)  # noqa: E731
    expected = 0
    for weight, factor in zip(weights.T, factors, strict=True):
        down, across = (resizing.zoom_matrix(size, factor) for size in images.shape[1:3])
        expected = expected + weight[:, None, None, None] * np.einsum("ih,jw,nhwc->nijc", down, across, images)
    for platform in ("cpu", "cuda", "tpu"):
        with monkeypatch.context() as patch:
            as_on(platform, patch)
            found = jax.jit(jax.vmap(lambda *given: zoomed(*given)))(images, weights)
        np.testing.assert_allclose(found, expected, atol=5e-6, err_msg=platform)
    traced = jax.jit(jax.vmap(zoomed)).trace(images, weights)
    lowered = {p: traced.lower(lowering_platforms=(p,)).as_text() for p in ("cpu", "tpu")}
    assert "gather" in lowered["cpu"] and "gather" not in lowered["tpu"]


def test_a_real_inverse_by_products_is_irfft2():
    rng = np.random.default_rng(0)
    spectrum = rng.normal(size=(2, 16, 13)) + 1j * rng.normal(size=(2, 16, 13))
    expected = np.fft.irfft2(spectrum, s=(16, 24))
    found = jax.jit(fourier.inverse_by_products, static_argnums=1)(spectrum.astype(np.complex64), 24)
    assert np.allclose(found, expected, atol=2e-6 * expected.std())


def test_a_gaussian_of_the_taps_a_batch_needs_is_the_same(monkeypatch):
    images = jnp.asarray(np.random.default_rng(0).random((3, 16, 16)), jnp.float32)

    weights_of = jax.jit(jax.vmap(lambda sigma: filters.gaussian_weights(sigma, 6)))
    needed = jax.jit(jax.vmap(filters.gaussian))
    sigmas = jnp.array([1.0, 0.0, 1.4])
    some, fewer = (needed(images, given, weights_of(given)) for given in (sigmas, sigmas.at[2].set(1.0)))
    np.testing.assert_array_equal(fewer[:2], some[:2])
    as_on("tpu", monkeypatch)
    every = jax.jit(jax.vmap(lambda *given: filters.gaussian(*given)))(images, sigmas, weights_of(sigmas))
    np.testing.assert_allclose(some, every, atol=3e-7)


@pytest.mark.parametrize("axes, mode", [((0,), "edge"), ((1,), "symmetric"), ((0, 1), "reflect")])
def test_borders_are_looked_up_or_padded(axes, mode, monkeypatch):
    image = np.random.default_rng(0).random((6, 7, 3)).astype(np.float32)
    expected = np.pad(image, [(4 * (i in axes),) * 2 for i in range(3)], mode=mode)
    for platform in ("cpu", "cuda"):
        as_on(platform, monkeypatch)
        found = jax.jit(lambda image: filters.extended(image, 4, axes, mode))(image)
        np.testing.assert_array_equal(found, expected)
