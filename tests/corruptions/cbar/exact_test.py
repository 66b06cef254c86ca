"""C-bar candidates, given their draws, equal an independent NumPy reference in float64."""

import jax
import numpy as np
import pytest

from corruptions.primitives.special import arctangent2, sine_cosine
from corruptions.primitives.textures import caustic
from tests.corruptions.cbar.agreement import NAMES, assert_agrees
from tests.corruptions.cbar.running import compiled
from tests.reference.cbar import definitions
from tests.reference.photographs import photograph

PIXELWISE = ("bleach_bypass", "technicolor", "pseudocolor", "hue_shift", "color_balance")
GEOMETRIC = tuple(name for name in NAMES if name not in PIXELWISE)
WRAPPED = ("bleach_bypass", "technicolor", "pseudocolor")


CASES = [(name, (32, 32, 3)) for name in NAMES] + [(name, (38, 24, 3)) for name in GEOMETRIC]


@pytest.mark.parametrize(("name", "shape"), CASES, ids=[f"{n}-{s[0]}x{s[1]}" for n, s in CASES])
def test_equals_the_reference(name, shape):
    for level in (1, 2, 5, 8, 10):
        assert_agrees(name, photograph(*shape[:2], seed=level), level, level)
    assert compiled(name, shape)._cache_size() == 1, "one compile must serve all levels"


@pytest.mark.parametrize("name", GEOMETRIC)
def test_equals_the_reference_at_224(name):
    assert_agrees(name, photograph(224, 224), 1, 7)


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
