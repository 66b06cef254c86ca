"""The warps of C-bar: published strengths, distributions of the draws, names."""

import functools
import math

import jax
import numpy as np
import pytest
import scipy.stats

from corruptions import cbar, registry
from corruptions.cbar import lenses
from tests.corruptions.cbar.agreement import WARPS

DRAWS = 400
CORRUPTIONS = {name: getattr(cbar, name) for name in WARPS}


@functools.cache
def all_draws(shape):
    """Parameters of many draws, levels 1..10 in turn."""

    def sample(key, level):
        return {name: dict(corruption.sample(key, shape, level)) for name, corruption in CORRUPTIONS.items()}

    keys, levels = jax.random.split(jax.random.key(12), DRAWS), 1 + np.arange(DRAWS) % 10
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(sample))(keys, levels))


def draws(name, shape=(32, 32, 3)):
    return all_draws(shape)[name]


# Supplement D: strength at level 1 and step from level to level, at 32 and at 224 pixels.
STRENGTHS = (
    ("caustic_refraction", "lens", (2.24, 0.64), (26.32, 9.52)),
    ("caustic_refraction", "light", (0.28, 0.08), (0.47, 0.17)),
    ("pinch_and_twirl", "angle", np.radians((49.5, 4.5)), np.radians((37.35, 5.85))),
    ("pinch_and_twirl", "exponent", (0.32, 0.02), (0.266, 0.026)),
    ("fish_eye", "index", (1.02, 0.02), (1.08, 0.08)),
    ("water_drop", "amplitude", (0.07, 0.02), (0.1375, 0.0125)),
    ("ripple", "amplitude", (0.44, 0.04), (1.82, 0.42)),
    ("scatter", "reach", (0.448, 0.128), (1.12, 1.12)),
    ("perspective_no_bars", "shifts", (0.32, 0.32), (2.24, 2.24)),
    ("perspective_no_bars", "shears", (0.01, 0.01), (0.01, 0.01)),
    ("perspective_no_bars", "tilt", (0.02 / 32, 0.02 / 32), (0.02 / 224, 0.02 / 224)),
)


@pytest.mark.parametrize(("name", "parameter", "small", "large"), STRENGTHS, ids=lambda v: v if type(v) is str else "")
def test_published_strengths(name, parameter, small, large):
    for side, (strength, step) in ((32, small), (224, large)):
        found = np.abs(draws(name, (side, side, 3))[parameter].reshape(DRAWS, -1)[:10])
        expected = strength + step * np.arange(10)[:, None]
        assert np.allclose(found, np.broadcast_to(expected, found.shape), rtol=1e-5)


TALL = (36, 24, 3)
UNIFORM = (
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
    values = (draws(name, shape)[parameter].reshape(DRAWS, -1, len(low))[:, :2] - np.array(low)) / width
    for axis in range(len(low)):
        assert scipy.stats.kstest(values[..., axis].ravel(), "uniform").pvalue > 1e-3
    if len(low) == 2:
        assert abs(np.corrcoef(values[..., 0].ravel(), values[..., 1].ravel())[0, 1]) < 0.15


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
        sample = functools.partial(CORRUPTIONS[name].sample, shape=shape, severity=1, table=table)
        return {k: v.shape for k, v in jax.eval_shape(lambda: dict(sample(jax.random.key(0)))).items()}

    grids = (((32, 32, 3), None), (3, 3)), (((224, 224, 3), None), (5, 5)), (((32, 32, 3), "imagenet"), (5, 5))
    for arguments, grid in (*grids, (((38, 24, 3), None), (4, 3))):
        assert shapes("pinch_and_twirl", *arguments)["signs"] == grid
    for arguments, _ in grids:
        assert shapes("fish_eye", *arguments)["centres"] == (501, 2)


def test_names():
    assert registry.get("cbar/pinch_and_twirl_v2") is lenses.pinch_and_twirl
    assert registry.get("cbar/fish_eye_v2") is lenses.fish_eye
    for name, record in CORRUPTIONS.items():
        assert registry.get(f"cbar/{name}") is record
        assert record.rounding == "truncate" and record.scale.count == 10 and record.family == "geometry"
        assert {p.name for p in record.parameters} == set(draws(name))
    with pytest.raises(ValueError, match="expected a severity table among cifar, imagenet, found 'tiny'"):
        lenses.pinch_and_twirl.sample(jax.random.key(0), (32, 32, 3), 1, table="tiny")
