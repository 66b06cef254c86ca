"""C-bar candidates, given their draws, equal an independent NumPy reference in float64."""

import jax
import numpy as np
import pytest

from corruptions.primitives.special import arctangent2, sine_cosine
from corruptions.primitives.textures import caustic
from tests.corruptions.cbar.agreement import BLURS, NAMES, WARPS, assert_agrees, compiled
from tests.reference.cbar import definitions
from tests.reference.photographs import photograph

WRAPPED = ("bleach_bypass", "technicolor", "pseudocolor")
PIXELWISE = (*WRAPPED, "hue_shift", "color_balance")
CASES = [(name, (32, 32, 3) if name in PIXELWISE else (38, 24, 3)) for name in NAMES + WARPS]
CASES += [(name, shape) for name in BLURS for shape in ((38, 25, 3), (17, 40, 3))]
AT_224 = [(name, (7,)) for name in NAMES if name not in PIXELWISE]
AT_224 += [(name, (2, 9)) for name in WARPS] + [(name, (1, 9)) for name in BLURS]


@pytest.mark.parametrize(("name", "shape"), CASES, ids=[f"{n}-{s[0]}x{s[1]}" for n, s in CASES])
def test_equals_the_reference(name, shape):
    for level in (1, 2, 5, 8, 10):
        assert_agrees(name, photograph(*shape[:2], seed=level), level, level)
    assert compiled(name, shape)._cache_size() == 1, "one compile must serve all levels"


@pytest.mark.parametrize(("name", "levels"), AT_224, ids=[name for name, _ in AT_224])
def test_equals_the_reference_at_224(name, levels):
    for level in levels:
        one = name in NAMES
        assert_agrees(name, photograph(224, 224, seed=0 if one or name in BLURS else level), 1 if one else level, level)


@pytest.mark.parametrize("name", BLURS)
def test_blurs_equal_scipy_on_noise(name):
    """Values jump from pixel to pixel, between the ends of the range: splines overshoot, and every tap counts."""
    noise = np.random.default_rng(3).integers(0, 2, (38, 25, 3), np.uint8) * np.uint8(255)
    for level in (1, 6):
        assert_agrees(name, noise, 5, level)


@pytest.mark.parametrize("name", ["pinch_and_twirl", "fish_eye", "scatter"])
def test_odd_sides_of_the_other_table(name):
    for level in (1, 10):
        assert_agrees(name, photograph(17, 33), 3, level, table="imagenet")


@pytest.mark.parametrize("name", WRAPPED)
def test_without_overflow(name):
    for level in (3, 10):
        assert_agrees(name, photograph(32, 32, seed=5), level, level, wrap=False)


CAUSTIC = jax.jit(caustic, static_argnums=0)


def test_caustic_precision():
    for seed in range(5):
        time, scale = np.random.default_rng(seed).uniform([0.5, 24], [2, 40])
        expected = definitions.caustic((32, 48), np.float32(time).item(), np.float32(scale).item())
        assert np.abs(CAUSTIC((32, 48), np.float32(time), np.float32(scale)) - expected).max() < 1e-4


def test_sine_cosine():
    x = np.concatenate([np.linspace(-20000, 20000, 100001), np.linspace(-7, 7, 10001)]).astype(np.float32)
    sine, cosine = jax.jit(sine_cosine)(x)
    assert np.abs(sine - np.sin(x.astype(np.float64))).max() < 2e-7
    assert np.abs(cosine - np.cos(x.astype(np.float64))).max() < 2e-7


def test_arctangent2():
    rng = np.random.default_rng(0)
    y, x = rng.normal(size=(2, 100_000)) * 10 ** rng.uniform(-3, 3, (2, 100_000))
    sides = np.array([[0, 0, 1, -1, 1, -1, 1, -1, 0], [1, -1, 0, 0, 1, 1, -1, -1, 0]], np.float64)  # the last: no angle
    y, x = np.concatenate([[y, x], sides], axis=1).astype(np.float32)
    found = np.asarray(jax.jit(arctangent2)(y, x))
    assert np.abs(found - np.arctan2(y.astype(np.float64), x)).max() < 5e-7
