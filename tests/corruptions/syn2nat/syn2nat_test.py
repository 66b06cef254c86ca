"""ImageNet-Syn2Nat: every corruption, given its draws, equals a reference; its draws are as published; and it
has a name once it is imported.
"""

import importlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from corruptions.core import registry
from tests.corruptions.comparing import assert_looks_where_its_map_says, drawn
from tests.corruptions.syn2nat import references
from tests.reference.photographs import scene

SHAPE = (48, 40, 3)
# Compiled in a moment, and in one program; the others are slow tests.
QUICK = (
    *("solarize", "posterize", "random_contrast", "random_brightness", "random_gamma", "to_sepia", "channel_dropout"),
    *("sharpen", "emboss", "cutout", "downscale"),
)
SLOW = ("affines", "perspective", "color_jitter", "iso_noise", "random_sun_flare", "random_shadow", "random_rain")
# Pixels on an edge, where float32 and float64 may fall on two sides.
TIES = {"random_shadow": 0.02, "random_sun_flare": 0.01, "iso_noise": 0.002}


@pytest.fixture(scope="module", autouse=True)
def module():
    """The module, whose names are taken back after the tests."""
    registry.every()  # imports what registers
    kept = dict(registry.NAMED), dict(registry._BENCHMARKS)
    yield importlib.import_module("corruptions.syn2nat")
    for registered, before in zip((registry.NAMED, registry._BENCHMARKS), kept, strict=True):
        registered.clear()
        registered.update(before)
    for name in [name for name in sys.modules if name.startswith("corruptions.syn2nat")]:
        del sys.modules[name]


def test_what_affines_mirrors_around_the_image_is_told():
    affines = corruptions.get("syn2nat/affines")
    params = affines.sample(jax.random.key(4), SHAPE)
    away = [np.abs(np.arange(n) - (n - 1) / 2) / float(params["scale"]) > n / 2 for n in SHAPE[:2]]
    found = affines.reflected(SHAPE, params)
    np.testing.assert_array_equal(found, away[0][:, None] | away[1])
    assert np.any(found) and not np.all(found)


def equal_to_references(names, seed, shape=SHAPE):
    image = scene(*shape[:2]) / np.float32(255)

    @jax.jit
    def run(key, image):
        found = {}
        for name in names:
            corruption = corruptions.get(f"syn2nat/{name}")
            params = corruption.sampler(key, shape, jnp.float32(1))
            found[name] = params, corruption.applier(image, params)
        return found

    for name, (params, found) in run(jax.random.key(seed), image).items():
        params = jax.tree.map(np.asarray, params)
        expected = getattr(references, name)(image.astype(np.float64), params)
        assert found.shape == shape and found.dtype == np.float32, name
        wrong = (np.abs(found - expected) > 2e-4).any(-1).mean()
        assert wrong <= TIES.get(name, 0), f"{wrong:.2%} of the pixels of {name} differ"


def test_quick_ones_equal_their_references():
    equal_to_references(QUICK, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [SHAPE, (32, 32, 3)], ids=str)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_all_equal_their_references(seed, shape):
    equal_to_references((*QUICK, *SLOW), seed, shape)


def test_the_benchmark_is_known_by_name(module):
    names = corruptions.names("imagenet_syn2nat")
    assert len(names) == len(set(names)) == 18
    assert {name.removeprefix("syn2nat/") for name in names} == {*QUICK, *SLOW} == set(module.__all__)
    assert all(corruptions.severities(name) == (1,) and corruptions.get(name).parameters for name in names)


@pytest.mark.slow
def test_batches_keep_the_contract():
    images = np.stack([scene(*SHAPE[:2], seed) for seed in range(4)])
    for name in corruptions.names("imagenet_syn2nat"):
        whole = np.asarray(corruptions.corrupt(jax.random.key(0), images, name))
        assert whole.dtype == np.uint8 and (whole != images).any((1, 2, 3)).sum() >= 3, name
        alone = corruptions.corrupt(jax.random.key(0), images[2:3], name, index=np.array([2]))
        assert (np.abs(np.asarray(alone)[0].astype(int) - whole[2]) <= 1).all(), name


def draws(name):
    return drawn(f"syn2nat/{name}", 2000, 1)


def test_each_channel_is_dropped_as_often():
    share = np.bincount(draws("channel_dropout")["channel"], minlength=3) / 2000
    assert share.shape == (3,) and np.abs(share - 1 / 3).max() < 0.05  # a standard error of .011


@pytest.mark.slow
def test_draws_are_as_published():
    def within(values, low, high):
        assert low <= values.min() < low + 0.01 * (high - low) and high - 0.01 * (high - low) < values.max() <= high

    within(draws("affines")["scale"], 0.6, 0.8)
    within(draws("random_contrast")["factor"], -0.5, 2.5)
    within(draws("random_brightness")["shift"], -0.9, 0.9)
    within(draws("random_gamma")["exponent"], 3, 10)
    kernel = draws("sharpen")["kernel"]
    within(-kernel[:, 0, 0], 0.3, 0.6)
    within((kernel[:, 1, 1] - 1 - kernel[:, 0, 0]) / -kernel[:, 0, 0] - 8, 0.6, 1.0)
    hole = draws("cutout")
    assert (hole["bottom"] - hole["top"] == 150).all() and hole["top"].min() == 0 and hole["top"].max() == 224 - 75
    flare = draws("random_sun_flare")
    assert set(np.unique(flare["radius"])) == {1, 8} and set((flare["opacity"] > 0).sum(1)) == {6, 7, 8, 9, 10}
    assert flare["sun"][:, 0].max() < 112 < flare["sun"][:, 1].max() and set(
        np.unique(flare["ghosts"][..., 1] % 10)
    ) == {0}
    rain = draws("random_rain")
    assert rain["rows"].shape == (2000, 83) and set(np.unique(rain["slant"])) == set(range(-9, 10))
    assert rain["rows"].max() == 204 and (rain["columns"] + rain["slant"][:, None]).max() == 224
    shadow = draws("random_shadow")
    assert set(np.unique(shadow["number"])) == {2, 3, 4} and shadow["vertices"].max() == 224
    jitter = draws("color_jitter")
    assert len(np.unique(jitter["order"], axis=0)) == 24 and np.abs(jitter["turns"]).max() <= 0.5
    corners = draws("perspective")["corners"]
    assert (corners[:, 0, 0] <= corners[:, 1, 0]).all() and (corners[:, 0, 1] <= corners[:, 3, 1]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["affines", "perspective"])
def test_the_map_is_where_the_corruption_looks(name):
    assert_looks_where_its_map_says(corruptions.get(f"syn2nat/{name}"))
