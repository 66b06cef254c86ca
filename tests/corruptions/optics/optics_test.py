"""Lens aberrations: point spread functions by closed forms and by OpticsBench's measured kernels, blurs by SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from corruptions import optics
from corruptions.imagenet_c import blur
from corruptions.optics import aberrations
from tests.corruptions.comparing import drawn
from tests.pages import example_of
from tests.reference import optics as reference
from tests.reference.photographs import photograph

PAIRS = {name: pair for name, (pair, _) in aberrations._PAIRS.items()}
TABLES = tuple(aberrations._LENSES)


def points(number=200):
    axis = (2 * np.arange(number) + 1 - number) / number
    x, y = np.meshgrid(axis, axis)
    return np.hypot(x, y), np.arctan2(y, x)


def test_zernike_polynomials_are_those_of_the_fringe_set():
    rho, theta = points()
    for number, polynomial in reference.POLYNOMIALS.items():
        np.testing.assert_allclose(optics.zernike(number, rho, theta), polynomial(rho, theta), atol=1e-12)
    inside = rho <= 1
    waves = np.stack([optics.zernike(number, rho, theta)[inside] for number in range(37)])
    gram = waves @ waves.T / inside.sum()
    scale = np.sqrt(np.diag(gram))
    assert np.abs(gram / np.outer(scale, scale) - np.eye(37)).max() < 0.02
    for number, square in reference.WAVEFRONT_RMS.items():
        assert scale[number] == pytest.approx(square**-0.5, rel=0.01)


def test_without_aberration_the_pattern_is_airys():
    q, size = 12.0, 151
    kernel = optics.psf({}, q, size=size, parts=1)
    offsets = np.arange(size) - size // 2
    distance = np.hypot(offsets[:, None], offsets)
    middle = kernel[size // 2]
    np.testing.assert_allclose(kernel / kernel.max(), reference.airy(distance, q), atol=2e-3)
    half = np.interp(0.5, middle[: size // 2 + 1] / middle.max(), -offsets[: size // 2 + 1])
    assert 2 * half == pytest.approx(1.029 * q, rel=0.01)
    energy = [kernel[distance <= ring * q].sum() / kernel[distance <= 5 * q].sum() for ring in (1.22, 2.233)]
    assert energy == pytest.approx([0.838 / 0.959, 0.910 / 0.959], abs=0.015)  # 95.9 % lie within 5 q
    for frequency in (0.01, 0.03, 0.05):
        wide = optics.psf({}, q, size=501, parts=1)
        assert optics.mtf(wide, frequency) == pytest.approx(reference.diffraction_mtf(frequency, q), abs=0.02)


@pytest.mark.parametrize("number", reference.WAVEFRONT_RMS)
def test_small_aberrations_lower_the_peak_by_strehls_formula(number):
    """The peak falls to exp(-(2 pi rms)^2) of its height, rms in waves; for .08 of them the formula is a tenth off at most."""

    def peak(waves):
        return optics.psf({number: waves}, 9.0, size=301, parts=1).max()

    waves = 0.08 * reference.WAVEFRONT_RMS[number] ** 0.5
    assert peak(waves) / peak(0.0) == pytest.approx(np.exp(-((2 * np.pi * 0.08) ** 2)), rel=0.1)


def test_defocus_darkens_the_axis_by_its_closed_form():
    bright = optics.psf({}, 9.0, size=301, parts=1)[150, 150]
    for waves in (0.1, 0.25, 0.4, 0.5, 0.75):
        found = optics.psf({3: waves}, 9.0, size=301, parts=1)[150, 150] / bright
        assert found == pytest.approx(np.sinc(2 * waves) ** 2, abs=0.02)


@pytest.mark.parametrize("number", reference.RADIUS)
def test_large_aberrations_have_the_radius_of_their_rays(number):
    waves, q = 4.0, 0.5
    kernel = optics.psf({number: waves}, q, size=121 if number == 8 else 61, samples=320)
    assert reference.radius(kernel) == pytest.approx(reference.RADIUS[number] * waves * q, rel=0.1)


def test_symmetries():
    psf = {number: optics.psf({number: 1.2}, 0.7) for number in range(3, 11)}
    negative = {number: optics.psf({number: -1.2}, 0.7) for number in range(3, 11)}
    for number in psf:
        np.testing.assert_allclose(negative[number], psf[number][::-1, ::-1], atol=1e-12)
    np.testing.assert_allclose(psf[7], psf[6].T, atol=1e-12)
    for number in (3, 4, 5, 8):
        np.testing.assert_allclose(np.rot90(psf[number]), psf[number], atol=1e-12)
    wide = optics.psf({6: 1.2}, 0.7, size=61, samples=192)
    np.testing.assert_allclose(reference.centroid(wide), [0, 2 * 1.2 * 0.7], rtol=0.05, atol=1e-9)


@pytest.mark.parametrize("name", PAIRS)
def test_the_released_lens_has_the_measured_size_and_sharpness(name):
    """Radii and MTF50 of OpticsBench's kernels: within 10 % for defocus and astigmatism, 20 % for the others."""
    kernels = aberrations.released_kernels(PAIRS[name])
    assert kernels.shape == (5, 2, 3, 25, 25) and kernels.min() >= 0
    np.testing.assert_allclose(kernels.sum((-1, -2)), 1)
    for number, stack in zip(PAIRS[name], kernels.swapaxes(0, 1)):
        within = 0.1 if number in (3, 4, 5) else 0.2
        radii = [[float(r) for r in row.split("/")] for row in reference.RELEASED_RADII[number].split()]
        np.testing.assert_allclose([[reference.radius(k) for k in row] for row in stack], radii, rtol=within)
        green = [optics.mtf50(row[1]) for row in stack]
        np.testing.assert_allclose(green, reference.RELEASED_MTF50[number], rtol=within)
    if name == "defocus_spherical":
        displaced = [[reference.centroid(k) for k in row] for row in kernels[:, 0]]
        np.testing.assert_allclose(np.mean(displaced, 0), [[0.41] * 2, [-0.12] * 2, [-0.19] * 2], atol=0.1)


@pytest.mark.parametrize("table", TABLES)
def test_severities_halve_contrast_where_the_disks_of_imagenet_c_do(table):
    disks = [blur.disk_kernel(*row) for row in blur._DEFOCUS[table]]
    frequencies = [optics.mtf50(disk) for disk in disks]
    if table == "imagenet":
        np.testing.assert_allclose(frequencies, reference.DISK_MTF50, atol=6e-4)
    wanted = [optics.mtf(disk, f) for disk, f in zip(disks, frequencies)]
    for pair in PAIRS.values():
        for stack in aberrations.kernels(pair, table).swapaxes(0, 1):
            found = [optics.mtf(kernel, f) for kernel, f in zip(stack, frequencies)]
            np.testing.assert_allclose(found, wanted, atol=0.012)


@pytest.mark.parametrize("table", [pytest.param(t, marks=() if t == "tiny" else pytest.mark.slow) for t in TABLES])
def test_the_coefficients_are_what_matching_gives(table):
    q, size = aberrations._LENSES[table]
    for level, row in enumerate(blur._DEFOCUS[table]):
        for number in aberrations._WAVES[table] if level in (0, 4) else (3,):
            found = optics.waves_matching(blur.disk_kernel(*row), number, q, size)
            assert found == pytest.approx(aberrations._WAVES[table][number][level], abs=1.5e-3), (number, level)


@pytest.mark.parametrize("border", ["reflect", "zeros"])
@pytest.mark.parametrize("benchmark", ["optics", "optics_release"])
def test_blurs_equal_scipys_correlation(benchmark, border):
    image = np.float32(photograph(33, 40) / 255)
    assert {name.partition("/")[0] for name in corruptions.names(benchmark)} == {benchmark}
    for name in corruptions.names(benchmark):
        corruption = corruptions.get(name)
        for severity in (1, 5):
            params = corruption.sample(jax.random.key(severity), image.shape, severity, border=border)
            expected = reference.filtered(image.astype(np.float64), np.float64(params["kernel"]), border)
            np.testing.assert_allclose(corruption.apply(image, params), expected, atol=2e-6)


def test_each_kernel_of_a_pair_is_drawn_half_of_the_time_and_can_be_chosen():
    coma = corruptions.get("optics/coma")
    found = drawn("optics/coma", 2000, 3, (32, 32, 3))["kernel"]
    both = [coma.sample(jax.random.key(0), (32, 32, 3), 3, kernel=k)["kernel"] for k in (0, 1)]
    first = (found == np.asarray(both[0])).all((1, 2))
    np.testing.assert_array_equal(found[~first], np.broadcast_to(both[1], found[~first].shape))
    assert abs(first.mean() - 0.5) < 5 * 0.5 / 2000**0.5
    np.testing.assert_allclose(both[0], aberrations.kernels((6, 7), "cifar")[2, 0], rtol=1e-6)


def test_a_lens_takes_any_coefficients():
    image = np.float32(photograph(32, 24) / 255)
    plain = optics.lens("dusk", [{3: 0.3 * k, 11: 0.2, 24: -0.1} for k in range(1, 4)], size=15)
    found = plain(jax.random.key(0), image, severity=2)
    kernel = optics.psf({3: 0.6, 11: 0.2, 24: -0.1}, 0.7, size=15)
    np.testing.assert_allclose(found, reference.filtered(image.astype(np.float64), kernel, "reflect"), atol=2e-6)
    coloured = optics.lens("fringes", [{3: 0.4}], q=(0.8, 0.7, 0.6), shift=(0.4, 0.0, -0.2), size=15)
    kernels = np.stack([optics.psf({3: 0.4}, q, shift=s, size=15) for q, s in ((0.8, 0.4), (0.7, 0.0), (0.6, -0.2))])
    found = corruptions.corrupt(jax.random.key(0), jnp.asarray(image)[None], coloured, 1)[0]
    np.testing.assert_allclose(found, reference.filtered(image.astype(np.float64), kernels, "reflect"), atol=2e-6)
    fine = optics.lens("fine", [{}], q=0.128)  # 96 samples of the pupil would repeat the pattern within the kernel
    kernel = fine.sample(jax.random.key(0), (32, 32, 3), 1)["kernel"]
    np.testing.assert_allclose(kernel[kernel.shape[0] // 2, kernel.shape[1] // 2], 0.956, atol=2e-3)
    assert coloured.qualified_name == "lens/fringes" and "lens/fringes" not in corruptions.names()


def test_the_recipe_of_the_page():
    images = jnp.asarray(photograph(32, 32)[None])
    found = {"corruptions": corruptions, "key": jax.random.key(0), "images": images}
    exec(example_of("docs/howto/corrupt.md", "Blur as a lens does"), found)
    expected = reference.filtered(np.float64(images[0]) / 255, optics.psf({3: 1.0, 8: 0.1}, 0.7), "reflect")
    assert (np.abs(255 * expected - np.asarray(found["blurred"][0])) <= 1.001).all()
