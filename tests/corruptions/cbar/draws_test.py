"""C-bar candidates: published strengths, distributions of the draws, and cases known by hand."""

import functools
import math

import jax
import numpy as np
import pytest
import scipy.stats

from corruptions import cbar
from corruptions.cbar import lenses, severities
from corruptions.core import batch, registry
from corruptions.primitives.fourier import blue, phase_shape, spectral_field
from tests.corruptions.cbar.exact_test import BLURS, WARPS
from tests.corruptions.comparing import drawn

DRAWS = 400
FIELD = jax.jit(spectral_field, static_argnums=(1, 2))


def draws(name, shape=(32, 32, 3)):
    """Parameters of many draws, levels 1..10 in turn."""
    return drawn(f"cbar/{name}", DRAWS, tuple(range(1, 11)), shape, seed=12 if name in WARPS else 11)


# Supplement D: strength at level 1 and step from level to level, at 32 and at 224 pixels.
STRENGTHS = {
    ("single_frequency_greyscale", "amplitude"): ((5.88, 5.88), None),
    ("concentric_sine_waves", "amplitude"): ((6.4, 6.4), None),
    ("plasma_noise", "amplitude"): ((4.48, 4.48), None),
    ("voronoi_noise", "amplitude"): ((35.7, 10.2), None),
    ("caustic_noise", "amplitude"): ((63.75, 12.75), None),
    ("inverse_sparkles", "exponent"): ((0.065, 0.065), None),
    ("bleach_bypass", "weight"): ((0.1, 0.1), None),
    ("technicolor", "weight"): ((0.1, 0.1), None),
    ("pseudocolor", "weight"): ((0.035, 0.035), None),
    ("hue_shift", "turns"): ((0.05, 0.05), None),
    ("perlin_noise", "weight"): ((0.23, 0.03), None),
    ("blue_noise_sample", "threshold"): ((-2.29, 0.21), None),
    ("brownish_noise", "amplitude"): ((16, 3.2), None),
    ("color_dither", "levels"): ((13, -1), None),
    ("caustic_refraction", "lens"): ((2.24, 0.64), (26.32, 9.52)),
    ("caustic_refraction", "light"): ((0.28, 0.08), (0.47, 0.17)),
    ("pinch_and_twirl", "angle"): (np.radians((49.5, 4.5)), np.radians((37.35, 5.85))),
    ("pinch_and_twirl", "exponent"): ((0.32, 0.02), (0.266, 0.026)),
    ("fish_eye", "index"): ((1.02, 0.02), (1.08, 0.08)),
    ("water_drop", "amplitude"): ((0.07, 0.02), (0.1375, 0.0125)),
    ("ripple", "amplitude"): ((0.44, 0.04), (1.82, 0.42)),
    ("scatter", "reach"): ((0.448, 0.128), (1.12, 1.12)),
    ("perspective_no_bars", "shifts"): ((0.32, 0.32), (2.24, 2.24)),
    ("perspective_no_bars", "shears"): ((0.01, 0.01), (0.01, 0.01)),
    ("perspective_no_bars", "tilt"): ((0.02 / 32, 0.02 / 32), (0.02 / 224, 0.02 / 224)),
}
# Severity at level 1 and its step, at 224 pixels.
SCANS = {
    **{"single_frequency_greyscale": (0.5, 0.5), "plasma_noise": (3.25, 0.75), "voronoi_noise": (3.25, 0.75)},
    **{"caustic_noise": (3.25, 0.75), "pseudocolor": (1.9, 0.9), "perlin_noise": (4.6, 0.6)},
    **{"blue_noise_sample": (0.8, 0.8), "color_dither": (3, 1), "circular_motion_blur": (2.35, 0.85)},
    **dict.fromkeys(("concentric_sine_waves", "inverse_sparkles", "bleach_bypass", "technicolor"), (1, 1)),
    **dict.fromkeys(("hue_shift", "brownish_noise"), (1, 1)),
}


@pytest.mark.parametrize(("name", "parameter"), STRENGTHS)
def test_published_strengths(name, parameter):
    for side, strengths in zip((32, 224), STRENGTHS[name, parameter]):
        if strengths is not None:
            found = draws(name, (side, side, 3))[parameter].reshape(DRAWS, -1)[:10]
            found = found if name == "blue_noise_sample" else abs(found)
            expected = strengths[0] + strengths[1] * np.arange(10)[:, None]
            assert np.allclose(found, np.broadcast_to(expected, found.shape), rtol=1e-5)


def test_published_scans():
    for name, (first, step) in SCANS.items():
        assert np.allclose(severities.scan(name, "imagenet"), first + step * np.arange(10)), name
    assert np.allclose(severities.scan("chromatic_aberration", "cifar"), 0.7 + 0.7 * np.arange(10))


def test_published_line_counts():
    assert list(draws("lines")["count"][:10]) == [1, 3, 4, 6, 8, 9, 11, 12, 14, 16]
    assert draws("lines")["ends"].shape == (DRAWS, 16, 4)
    large = draws("lines", (224, 224, 3))
    assert list(large["count"][:10]) == [17, 35, 53, 71, 89, 107, 125, 143, 161, 179]
    assert large["ends"].shape == (DRAWS, 179, 4)


def test_benchmarks_are_steps_of_the_scan():
    five = {
        "imagenet_c_bar": {"caustic_refraction": (2.35, 3.2, 4.9, 6.6, 9.15), "plasma_noise": (4.75, 7, 8.5, 9.25, 10)},
        "cifar10_c_bar": {"lines": (0.5, 1, 1.5, 2, 2.5), "sparkles": (0.7, 3.5, 5.6, 6.3, 7)},
    }
    for benchmark, members in five.items():
        assert len(cbar.SELECTED[benchmark]) == 10
        for name, expected in members.items():
            scan = severities.scan(name, cbar.BENCHMARK_TABLE[benchmark])
            assert np.allclose([scan[k - 1] for k in cbar.SELECTED[benchmark][name]], expected)
            assert registry.severities(f"cbar/{name}", benchmark) == cbar.SELECTED[benchmark][name]
        assert registry.names(benchmark) == tuple(f"cbar/{name}" for name in cbar.SELECTED[benchmark])
    assert registry.names("cbar_candidates") == tuple(f"cbar/{name}" for name in cbar.RANGES["cifar"])
    assert len(cbar.RANGES["cifar"]) == len(cbar.RANGES["imagenet"]) == 30


TALL = (36, 24, 3)  # height and width differ, so that exchanged ones would show
UNIFORM = (  # lowest value and width, of each coordinate
    ("single_frequency_greyscale", "phase", (0,), 2 * math.pi),
    ("concentric_sine_waves", "centre", (0,), 32),
    ("concentric_sine_waves", "turns", (0,), 10),
    ("concentric_sine_waves", "ripple", (0,), 3.2),
    ("concentric_sine_waves", "width", (0,), 3.2),
    ("plasma_noise", "time", (0,), 6 * math.pi),
    ("plasma_noise", "decay", (0.5,), 0.5),
    ("plasma_noise", "scale", (2.4,), 4.0),
    ("voronoi_noise", "seed", (0,), 10),
    ("voronoi_noise", "contrast", (0.5,), 0.4),
    ("voronoi_noise", "scale", (1.6,), 4.8),
    ("caustic_noise", "time", (0.5,), 1.5),
    ("caustic_noise", "scale", (24,), 16),
    ("sparkles", "centres", (0,), 32),
    ("inverse_sparkles", "centre", (8,), 16),
    ("checkerboard_cutout", "angle", (0,), 2 * math.pi),
    ("checkerboard_cutout", "square", (3.2,), 4.8),
    ("blue_noise_sample", "phases", (0,), 2 * math.pi),
    ("pseudocolor", "smooth", (0.25,), 0.5),
    ("caustic_refraction", "time", (0.5,), 1.5),
    ("caustic_refraction", "scale", (24,), 16),
    ("fish_eye", "centres", (0, 0), (36, 24)),
    ("water_drop", "centre", (9, 6), (18, 12)),
    ("water_drop", "wavelength", (1.2,), 3.6),
    ("water_drop", "phase", (0,), 2 * math.pi),
    ("ripple", "wavelengths", (3.2, 3.2), 6.4),
    ("ripple", "phases", (0, 0), 2 * math.pi),
    ("scatter", "seed", (0,), 10),
)


@pytest.mark.parametrize(("name", "parameter", "low", "width"), UNIFORM, ids=lambda v: v if type(v) is str else "")
def test_uniform_draws(name, parameter, low, width):
    shape = TALL if name in ("fish_eye", "water_drop") else (32, 32, 3)
    number = 2 if name in WARPS else 10
    values = (draws(name, shape)[parameter].reshape(DRAWS, -1, len(low))[:, :number] - np.array(low)) / width
    for axis in range(len(low)):
        assert scipy.stats.kstest(values[..., axis].ravel(), "uniform").pvalue > 1e-3
    if len(low) == 2:
        assert abs(np.corrcoef(values[..., 0].ravel(), values[..., 1].ravel())[0, 1]) < 0.15


def test_other_draws():
    p, r = np.abs(draws("single_frequency_greyscale")["frequencies"]).T
    assert scipy.stats.kstest(np.maximum(p, r), "uniform", (0, np.pi)).pvalue > 1e-3
    assert scipy.stats.kstest(np.minimum(p, r) / np.maximum(p, r), "uniform").pvalue > 1e-3
    assert 0.4 < np.mean(p > r) < 0.6
    assert set(draws("plasma_noise")["rounds"]) == {4, 5, 6}
    rays = draws("sparkles")["rays"]
    assert rays.min() == 50 and rays.max() == 199 and abs(rays.mean() - 124.5) < 4
    relative = (draws("inverse_sparkles")["lengths"].ravel() / 8 - 1) / 0.25
    assert scipy.stats.kstest(relative[::7], "norm").pvalue > 1e-3
    assert draws("sparkles")["lengths"].min() == 1
    colors = draws("pseudocolor")["colors"]
    assert colors.min() == 0 and colors.max() == 254 and abs(colors.mean() - 127) < 4
    for name, parameter in (("voronoi_noise", "amplitude"), ("hue_shift", "turns")):
        assert 0.4 < np.mean(draws(name)[parameter] > 0) < 0.6
    assert 0.4 < np.mean(draws("color_balance")["factor"] > 1) < 0.6
    assert np.allclose(abs(draws("color_balance")["factor"][:10] - 1), np.arange(1, 11) / 10)
    assert np.allclose(
        draws("checkerboard_cutout")["cut"].reshape(-1, 10, 1600).mean((0, 2)), np.arange(1, 11) / 10, atol=0.01
    )


def test_corners_are_moved_independently():
    found = draws("quadrilateral_no_bars", TALL)["corners"]
    moved = found - np.array([(0, 0), (0, 36), (24, 36), (24, 0)])
    reach = 24 / 30 * (1 + np.arange(DRAWS) % 10)
    relative = (moved / reach[:, None, None]).reshape(DRAWS, 8)
    assert scipy.stats.kstest(relative.ravel(), "uniform", (-1, 2)).pvalue > 1e-3
    assert np.abs(np.corrcoef(relative.T) - np.eye(8)).max() < 0.2


def test_signs():
    shifts, shears, scales = (draws("perspective_no_bars")[name] for name in ("shifts", "shears", "scales"))
    level = 1 + np.arange(DRAWS)[:, None] % 10
    assert np.allclose(np.abs(np.log2(scales)), 0.015 * level, rtol=1e-4)
    perspective = np.concatenate([shifts > 0, shears > 0, scales > 1], axis=1)
    for signs in (perspective, draws("pinch_and_twirl")["signs"].reshape(DRAWS, 9) > 0):
        assert np.all(np.abs(signs.mean(0) - 0.5) < 0.1)
        assert np.abs(np.corrcoef(signs.T) - np.eye(signs.shape[1])).max() < 0.2


def test_numbers_of_lenses():
    def shapes(name, shape, table=None):
        sample = functools.partial(getattr(cbar, name).sample, shape=shape, severity=1, table=table)
        return {k: v.shape for k, v in jax.eval_shape(lambda: dict(sample(jax.random.key(0)))).items()}

    grids = (((32, 32, 3), None), (3, 3)), (((224, 224, 3), None), (5, 5)), (((32, 32, 3), "imagenet"), (5, 5))
    for arguments, grid in (*grids, (((38, 24, 3), None), (4, 3))):
        assert shapes("pinch_and_twirl", *arguments)["signs"] == grid
    for arguments, _ in grids:
        assert shapes("fish_eye", *arguments)["centres"] == (501, 2)


def test_perlin_draws():
    assert np.all(np.sort(draws("perlin_noise")["permutation"]) == np.arange(256))
    gradients = draws("perlin_noise")["gradients"]
    lengths = np.linalg.norm(gradients, axis=-1)
    assert np.all((abs(lengths - 1) < 1e-6) | (lengths == 0))
    # They point to uniform places of a square, for which the mean of cos 4a is 3 - pi; for places of a disc it is 0.
    angle = np.arctan2(gradients[..., 1], gradients[..., 0])
    assert abs(np.cos(4 * angle).mean() - (3 - np.pi)) < 0.01


def test_lines_meet_their_middle():
    ends = draws("lines")["ends"].astype(float)
    length = np.hypot(ends[..., 2] - ends[..., 0], ends[..., 3] - ends[..., 1])
    assert np.all(abs(length - 64) < 3)  # ends are cut to whole pixels
    middle = (ends[..., :2] + ends[..., 2:]).reshape(-1, 2)[::5] / 2
    for axis in (0, 1):
        assert scipy.stats.kstest(middle[:, axis], "uniform", (0, 32)).statistic < 0.03


def test_share_of_lost_pixels():
    images = np.full((200, 32, 32, 3), 60, np.uint8)
    key = jax.random.key(1)
    lost = np.asarray(batch.corrupt(key, images, cbar.blue_noise_sample, 10)) == 0
    assert abs(lost.mean() - scipy.stats.norm.cdf(-0.4)) < 0.01
    cut = np.asarray(batch.corrupt(key, images, cbar.checkerboard_cutout, 6)) == 128
    assert abs(cut.mean() - 0.3) < 0.02


ALIASES = {
    "cbar/cocentric_sine_waves": cbar.concentric_sine_waves,
    "cbar/pinch_and_twirl_v2": lenses.pinch_and_twirl,
    "cbar/fish_eye_v2": lenses.fish_eye,
    "chromatic_abberation": cbar.chromatic_aberration,
    "cbar/transverse_chromatic_abberation": cbar.transverse_chromatic_aberration,
}


def test_names():
    assert all(registry.get(name) is corruption for name, corruption in ALIASES.items())
    for name in cbar.RANGES["cifar"]:
        record = getattr(cbar, name)
        assert registry.get(f"cbar/{name}") is record
        assert record.rounding == "truncate" and record.scale.count == 10
        if name not in BLURS:
            assert record.family in (("geometry",) if name in WARPS else ("noise", "occlusion", "colour"))
            assert {p.name for p in record.parameters} == set(draws(name))


def test_odd_sides_of_fields():
    phases = draws("blue_noise_sample", (34, 18, 3))["phases"][:3]
    assert phase_shape((33, 17, 3)) == phase_shape((34, 18, 3)) == phases.shape[1:]
    odd, even = (np.asarray(FIELD(phases, shape, blue)) for shape in ((33, 17), (34, 18)))
    assert np.allclose(odd, even[:, :33, :17], atol=1e-6)


def test_zero_gradients_are_harmless():
    params = {"weight": np.float32(0.5), "permutation": np.arange(256), "gradients": np.zeros((256, 2), np.float32)}
    found = cbar.perlin_noise.apply(np.zeros((16, 16, 3), np.float32), params)
    assert np.allclose(found, 0.25, atol=1e-6)
