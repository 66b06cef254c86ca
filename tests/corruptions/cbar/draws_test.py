"""C-bar candidates: published strengths, distributions of the draws, and cases known by hand."""

import functools
import math

import jax
import numpy as np
import pytest
import scipy.stats

from corruptions import batch, cbar, registry
from corruptions.cbar import severities
from corruptions.primitives.fourier import blue, brown, phase_shape, spectral_field
from tests.corruptions.cbar.agreement import NAMES, assert_agrees
from tests.reference.photographs import photographs

DRAWS = 400
FIELD = jax.jit(spectral_field, static_argnums=(1, 2))


@functools.cache
def draws(name, shape=(32, 32, 3), table=None):
    """Parameters of many draws, levels 1..10 in turn."""
    sample = functools.partial(getattr(cbar, name).sample, shape=shape, table=table)
    keys, levels = jax.random.split(jax.random.key(11), DRAWS), 1 + np.arange(DRAWS) % 10
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(lambda k, s: dict(sample(k, severity=s))))(keys, levels))


# Supplement D: strength at level 1 and step from level to level at 32 pixels; severity at level 1
# and step at 224.
STRENGTHS = {
    ("single_frequency_greyscale", "amplitude"): ((5.88, 5.88), (0.5, 0.5)),
    ("concentric_sine_waves", "amplitude"): ((6.4, 6.4), (1, 1)),
    ("plasma_noise", "amplitude"): ((4.48, 4.48), (3.25, 0.75)),
    ("voronoi_noise", "amplitude"): ((35.7, 10.2), (3.25, 0.75)),
    ("caustic_noise", "amplitude"): ((63.75, 12.75), (3.25, 0.75)),
    ("inverse_sparkles", "exponent"): ((0.065, 0.065), (1, 1)),
    ("bleach_bypass", "weight"): ((0.1, 0.1), (1, 1)),
    ("technicolor", "weight"): ((0.1, 0.1), (1, 1)),
    ("pseudocolor", "weight"): ((0.035, 0.035), (1.9, 0.9)),
    ("hue_shift", "turns"): ((0.05, 0.05), (1, 1)),
    ("perlin_noise", "weight"): ((0.23, 0.03), (4.6, 0.6)),
    ("blue_noise_sample", "threshold"): ((-2.29, 0.21), (0.8, 0.8)),
    ("brownish_noise", "amplitude"): ((16, 3.2), (1, 1)),
    ("color_dither", "levels"): ((13, -1), (3, 1)),
}


@pytest.mark.parametrize(("name", "parameter"), STRENGTHS)
def test_published_strengths(name, parameter):
    (strength, step), (first, severity_step) = STRENGTHS[name, parameter]
    found = draws(name)[parameter][:10]
    found = found if name == "blue_noise_sample" else abs(found)
    assert np.allclose(found, strength + step * np.arange(10), rtol=1e-5)
    assert np.allclose(severities.scan(name, "imagenet"), first + severity_step * np.arange(10))


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


def test_tables():
    assert [severities.table_for((side, 500, 3)) for side in (16, 84, 85, 224, 500)] == ["cifar"] * 2 + ["imagenet"] * 3
    assert len(cbar.RANGES["cifar"]) == len(cbar.RANGES["imagenet"]) == 30
    with pytest.raises(ValueError, match="expected a severity table among cifar, imagenet, found 'tiny'"):
        cbar.lines.sample(jax.random.key(0), (32, 32, 3), 1, table="tiny")


UNIFORM = (
    ("single_frequency_greyscale", "phase", 0, 2 * math.pi),
    ("concentric_sine_waves", "centre", 0, 32),
    ("concentric_sine_waves", "turns", 0, 10),
    ("concentric_sine_waves", "ripple", 0, 3.2),
    ("concentric_sine_waves", "width", 0, 3.2),
    ("plasma_noise", "time", 0, 6 * math.pi),
    ("plasma_noise", "decay", 0.5, 1),
    ("plasma_noise", "scale", 2.4, 6.4),
    ("voronoi_noise", "seed", 0, 10),
    ("voronoi_noise", "contrast", 0.5, 0.9),
    ("voronoi_noise", "scale", 1.6, 6.4),
    ("caustic_noise", "time", 0.5, 2),
    ("caustic_noise", "scale", 24, 40),
    ("sparkles", "centres", 0, 32),
    ("inverse_sparkles", "centre", 8, 24),
    ("checkerboard_cutout", "angle", 0, 2 * math.pi),
    ("checkerboard_cutout", "square", 3.2, 8),
    ("blue_noise_sample", "phases", 0, 2 * math.pi),
    ("pseudocolor", "smooth", 0.25, 0.75),
)


@pytest.mark.parametrize(("name", "parameter", "low", "high"), UNIFORM)
def test_uniform_draws(name, parameter, low, high):
    values = draws(name)[parameter].reshape(DRAWS, -1)[:, :10].ravel()
    assert scipy.stats.kstest(values, "uniform", (low, high - low)).pvalue > 1e-3


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


def test_perlin_draws():
    assert np.all(np.sort(draws("perlin_noise")["permutation"]) == np.arange(256))
    gradients = draws("perlin_noise")["gradients"]
    lengths = np.linalg.norm(gradients, axis=-1)
    assert np.all((abs(lengths - 1) < 1e-6) | (lengths == 0))
    # Directions of points in a square: cos 4a has the mean 1 - pi/2 + ... of a square, 3 - pi < 0;
    # not 0 as on a disc.
    angle = np.arctan2(gradients[..., 1], gradients[..., 0])
    assert abs(np.cos(4 * angle).mean() - (3 - np.pi)) < 0.01


def test_lines_meet_their_middle():
    ends = draws("lines")["ends"].astype(float)
    length = np.hypot(ends[..., 2] - ends[..., 0], ends[..., 3] - ends[..., 1])
    assert np.all(abs(length - 64) < 3)  # ends are cut to whole pixels
    middle = (ends[..., :2] + ends[..., 2:]).reshape(-1, 2)[::5] / 2
    for axis in (0, 1):
        assert scipy.stats.kstest(middle[:, axis], "uniform", (0, 32)).statistic < 0.03


def test_spectra():
    phases = np.random.default_rng(0).uniform(0, 2 * np.pi, (200, *phase_shape((32, 32)))).astype(np.float32)
    fields = {f: np.asarray(FIELD(phases, (32, 32), f)) for f in (blue, brown)}
    for field in fields.values():
        assert np.allclose(field.std((1, 2)), 1, atol=1e-5)
    assert abs(fields[blue].mean((1, 2))).max() < 1e-5
    assert 0.55 < fields[brown].mean((1, 2)).std() < 0.8
    assert (
        (fields[blue][:, 1:] * fields[blue][:, :-1]).mean()
        < -0.2
        < 0.8
        < (fields[brown][:, 1:] * fields[brown][:, :-1]).mean()
    )


def test_share_of_lost_pixels():
    images = np.full((200, 32, 32, 3), 60, np.uint8)
    key = jax.random.key(1)
    lost = np.asarray(batch.corrupt(key, images, cbar.blue_noise_sample, 10)) == 0
    assert abs(lost.mean() - scipy.stats.norm.cdf(-0.4)) < 0.01
    cut = np.asarray(batch.corrupt(key, images, cbar.checkerboard_cutout, 6)) == 128
    assert abs(cut.mean() - 0.3) < 0.02


def test_overflow_by_hand():
    image = np.zeros((16, 16, 3), np.float32)
    image[0, 0, 0], image[0, 1, 0] = 1.0, 200 / 255
    params = {"weight": np.float32(1), "wrap": np.bool_(True)}
    meant = params | {"wrap": np.bool_(False)}

    def levels(corruption, params):
        return np.asarray(batch.from_float(corruption.apply(image, params), np.uint8, "truncate"))[0, :2, 0]

    # A full red is multiplied by 1.5 twice: 573.75, or 61 mod 256.
    assert levels(cbar.technicolor, params)[0] == 61 and levels(cbar.technicolor, meant)[0] == 255
    # Twice 200 is 144 mod 256, times a luma of 0.2126 * 200 / 255.
    assert levels(cbar.bleach_bypass, params)[1] == 24 and levels(cbar.bleach_bypass, meant)[1] == 66


def test_names():
    assert registry.get("cbar/cocentric_sine_waves") is cbar.concentric_sine_waves
    for name in NAMES:
        record = getattr(cbar, name)
        assert registry.get(f"cbar/{name}") is record
        assert record.rounding == "truncate" and record.scale.count == 10
        assert record.family in ("noise", "occlusion", "colour")
        assert {p.name for p in record.parameters} == set(draws(name))


@pytest.mark.parametrize("name", ["voronoi_noise", "perlin_noise", "checkerboard_cutout", "lines"])
def test_odd_sides(name):
    assert_agrees(name, photographs(1, 17, 33)[0], 3, 9)


def test_odd_sides_of_fields():
    phases = draws("blue_noise_sample", (34, 18, 3))["phases"][:3]
    assert phase_shape((33, 17, 3)) == phase_shape((34, 18, 3)) == phases.shape[1:]
    odd, even = (np.asarray(FIELD(phases, shape, blue)) for shape in ((33, 17), (34, 18)))
    assert np.allclose(odd, even[:, :33, :17], atol=1e-6)


def test_zero_gradients_are_harmless():
    params = {"weight": np.float32(0.5), "permutation": np.arange(256), "gradients": np.zeros((256, 2), np.float32)}
    found = cbar.perlin_noise.apply(np.zeros((16, 16, 3), np.float32), params)
    assert np.allclose(found, 0.25, atol=1e-6)
