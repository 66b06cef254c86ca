"""Canny edges, chamfer distances and histogram equalisation against slow references, bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

from corruptions.primitives import edges as primitives
from tests.reference.imagenet_c import spatter_stages
from tests.reference.photographs import photograph

canny = jax.jit(primitives.canny, static_argnums=(1, 2))
hysteresis, chamfer_distance = jax.jit(primitives.hysteresis), jax.jit(primitives.chamfer_distance)
equalize = jax.jit(primitives.equalize, static_argnums=1)


def drops(height, width, seed, blur, deviation):
    noise = np.random.default_rng(seed).normal(0.65, deviation, (height, width))
    return (spatter_stages.liquid(noise, blur, 0.68) * 255).astype(np.int64) % 256


@pytest.mark.parametrize("shape", [(40, 71), pytest.param((224, 224), marks=pytest.mark.slow)])
def test_stages_of_a_relief_are_exact(shape):
    for seed, (blur, deviation) in enumerate(((4, 0.3), (2, 0.3), (0.8, 0.1))):
        levels = drops(*shape, seed, blur, deviation)
        edges = spatter_stages.canny(levels, 50, 150)
        np.testing.assert_array_equal(canny(jnp.asarray(levels, jnp.int32), 50, 150), edges)
        distance = spatter_stages.chamfer(edges)
        np.testing.assert_array_equal(chamfer_distance(jnp.asarray(edges)), distance)
        mean = spatter_stages.floor_of_mean(distance)
        np.testing.assert_array_equal(equalize(jnp.asarray(mean, jnp.int32), 21), spatter_stages.equalize(mean))
        assert levels.any() and edges.any()


@pytest.mark.parametrize("seed", range(6))
def test_canny_on_photographs(seed):
    levels = ndimage.gaussian_filter(photograph(50, 61, seed)[..., 1].astype(float), seed / 3).astype(np.int32)
    levels = levels if seed % 2 else levels // 32 * 32  # plateaus have many equal gradients
    edges = spatter_stages.canny(levels, 50, 150)
    assert edges.any()
    np.testing.assert_array_equal(canny(jnp.asarray(levels), 50, 150), edges)


def test_hysteresis_follows_long_and_winding_paths():
    size = 70
    kept = np.zeros((size, size), bool)
    kept[::4] = True  # a serpentine through the whole image, more than 1000 steps long
    kept[2::8, -1] = kept[1::8, -1] = kept[3::8, -1] = True
    kept[5::8, 0] = kept[6::8, 0] = kept[7::8, 0] = True
    kept[40, 31:33] = False  # cuts it in two, at a word's border
    seeds = np.zeros_like(kept)
    seeds[0, 0] = True
    components, _ = ndimage.label(kept, np.ones((3, 3)))
    expected = components == components[0, 0]
    assert kept.sum() > expected.sum() > 500
    np.testing.assert_array_equal(hysteresis(jnp.asarray(seeds), jnp.asarray(kept)), expected)
    assert not np.any(hysteresis(jnp.zeros_like(kept), jnp.asarray(kept)))


def test_chamfer_distances_of_a_batch_look_up_nothing_but_the_table():
    edges = jax.ShapeDtypeStruct((2, 16, 20), bool)
    assert jax.jit(jax.vmap(chamfer_distance)).lower(edges).as_text().count('"stablehlo.gather"') == 1


def test_chamfer_distance_of_one_pixel_of_many_and_of_none():
    edges = np.zeros((61, 50), bool)
    np.testing.assert_array_equal(chamfer_distance(jnp.asarray(edges)), np.full((61, 50), 20, np.float32))
    edges[30, 20] = True
    np.testing.assert_array_equal(chamfer_distance(jnp.asarray(edges)), spatter_stages.chamfer(edges))
    for seed in range(3):
        edges = np.random.default_rng(seed).random((61, 50)) < 10.0 ** -(1 + seed)
        np.testing.assert_array_equal(chamfer_distance(jnp.asarray(edges)), spatter_stages.chamfer(edges))


def test_equalize():
    rng = np.random.default_rng(0)
    for levels in (rng.binomial(255, 0.3, (40, 33)), rng.integers(7, 9, (16, 16)), np.full((16, 16), 77)):
        found = equalize(jnp.asarray(levels, jnp.int32), 256)
        np.testing.assert_array_equal(found, spatter_stages.equalize(levels))


@pytest.mark.parametrize("shape", [(16, 24), (17, 19)])
def test_counts_are_cumulative_histograms(shape):
    levels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    expected = np.cumsum(np.bincount(levels.ravel(), minlength=256))
    np.testing.assert_array_equal(jax.jit(primitives._counts, static_argnums=1)(levels, 256), expected)
