"""Levels and luma; textures, whose values are compared in cbar and imagenet_c; painting against loops over shapes and
pixels; Canny edges, chamfer distances and equalisation against slow references, bit for bit.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

from corruptions.primitives import color, painting, textures
from corruptions.primitives import edges as edging
from tests.reference.imagenet_c import spatter as reference
from tests.reference.photographs import photograph

spatter = sys.modules["corruptions.imagenet_c.spatter"]  # the module, whose name the corruption has taken


def test_means_of_channels_are_exact_for_whole_levels_of_any_number_of_pixels():
    """Nine million white pixels sum to more than 2^31; sums of floats are compared with float64."""
    white = np.full((3000, 3000, 1), 255, np.float32)
    white[0, :3] = 0
    expected = (9_000_000 - 3) * 255 / 9_000_000
    np.testing.assert_allclose(
        color.channel_means(white, {}).ravel(), [expected], rtol=2.0**-23
    )  # a unit in the last place
    levels = np.random.default_rng(0).uniform(0, 255, (40, 56, 3)).astype(np.float32)
    means = levels.astype(np.float64).mean((0, 1))
    np.testing.assert_allclose(color.channel_means(levels, {}).ravel(), means, rtol=1e-6)
    whole = np.round(levels)
    exact = (whole.astype(np.int64).sum((0, 1)).astype(np.float32)) / np.float32(40 * 56)
    np.testing.assert_array_equal(color.channel_means(whole, {}).ravel(), exact)


def test_on_a_tpu_no_point_is_looked_up():
    distances = jax.vmap(lambda seed, scale: textures.voronoi_distance((16, 20, 3), seed, scale, 1.6))
    numbers = jax.ShapeDtypeStruct((2,), np.float32)
    traced = jax.jit(distances).trace(numbers, numbers)
    lowered = {p: traced.lower(lowering_platforms=(p,)).as_text() for p in ("cpu", "tpu")}
    assert "gather" in lowered["cpu"] and "gather" not in lowered["tpu"]


COVERING = jax.jit(painting.covering, static_argnums=(3, 4))
PAINT = jax.jit(painting.paint, static_argnums=5)
DISC = ((-2, -1, 1), (-1, -2, 2), (0, -2, 2), (1, -2, 2), (2, -1, 1))
LOPSIDED = ((-1, -1, 0), (0, -3, 1), (1, -1, 0))


def _draw(seed, number, shape, margin=4):
    rng = np.random.default_rng(seed)
    rows, columns = (rng.integers(margin, side - margin, number) for side in shape)
    return rows, columns, rng.integers(0, 2**23, number).astype(np.float32) / 2**23


@pytest.mark.parametrize("runs", [DISC, LOPSIDED, ((0, 0, 0),)])
@pytest.mark.parametrize("painted", [0, 1, 150, 200])
def test_covering_and_paint(runs, painted):
    shape = (21, 34)
    rows, columns, greys = _draw(3, 200, shape)  # many share a centre
    image = np.random.default_rng(4).uniform(size=(*shape, 3)).astype(np.float32)
    count, expected = np.zeros(shape), image.copy()
    for row, column, grey in list(zip(rows, columns, greys))[:painted]:
        for y, left, right in runs:
            count[row + y, column + left : column + right + 1] += 1
            expected[row + y, column + left : column + right + 1] = grey
    assert np.array_equal(COVERING(rows, columns, painted, runs, shape), count)
    found = PAINT(image, rows, columns, painted, greys, runs)
    assert np.array_equal(found, expected)


def test_paint_of_many_shapes_and_white():
    shape = (40, 50)
    rows, columns, greys = _draw(5, 3000, shape)
    greys[-1] = 1.0
    found = PAINT(jnp.zeros((*shape, 1)), rows, columns, 3000, greys, ((0, 0, 0),))[..., 0]
    expected = np.zeros(shape)
    for row, column, grey in zip(rows, columns, greys):
        expected[row, column] = grey
    assert np.max(np.abs(found - expected)) <= 2**-16


def test_shapes_leaving_the_image_are_cut():
    count = COVERING(jnp.array([0, 9]), jnp.array([0, 11]), 2, DISC, (10, 12))
    assert count.sum() == 2 * 8
    assert count[2, 1] == 1 and count[2, 2] == 0 and count[7, 10] == 1


canny = jax.jit(edging.canny, static_argnums=(1, 2))
hysteresis, chamfer_distance = jax.jit(edging.hysteresis), jax.jit(edging.chamfer_distance)
equalize = jax.jit(edging.equalize, static_argnums=1)


def drops(height, width, seed, blur, deviation):
    noise = np.random.default_rng(seed).normal(0.65, deviation, (height, width))
    return (reference.liquid(noise, blur, 0.68) * 255).astype(np.int64) % 256


@pytest.mark.parametrize("shape", [(40, 71), pytest.param((224, 224), marks=pytest.mark.slow)])
def test_a_relief_and_its_stages_are_exact(shape):
    for seed, (blur, deviation) in enumerate(((4, 0.3), (2, 0.3), (0.8, 0.1))):
        levels = drops(*shape, seed, blur, deviation)
        edges = reference.canny(levels, 50, 150)
        np.testing.assert_array_equal(canny(jnp.asarray(levels, jnp.int32), 50, 150), edges)
        distance = reference.chamfer(edges)
        np.testing.assert_array_equal(chamfer_distance(jnp.asarray(edges)), distance)
        mean = reference.floor_of_mean(distance)
        np.testing.assert_array_equal(jax.jit(spatter.floor_of_mean)(jnp.asarray(distance)), mean)
        np.testing.assert_array_equal(equalize(jnp.asarray(mean, jnp.int32), 21), reference.equalize(mean))
        relief = jax.jit(spatter.relief)(jnp.asarray(levels, jnp.int32))
        np.testing.assert_array_equal(relief, reference.relief(levels))
        assert levels.any() and edges.any()


@pytest.mark.parametrize("seed", range(6))
def test_canny_on_photographs(seed):
    levels = ndimage.gaussian_filter(photograph(50, 61, seed)[..., 1].astype(float), seed / 3).astype(np.int32)
    levels = levels if seed % 2 else levels // 32 * 32  # plateaus have many equal gradients
    edges = reference.canny(levels, 50, 150)
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
    np.testing.assert_array_equal(chamfer_distance(jnp.asarray(edges)), reference.chamfer(edges))
    for seed in range(3):
        edges = np.random.default_rng(seed).random((61, 50)) < 10.0 ** -(1 + seed)
        np.testing.assert_array_equal(chamfer_distance(jnp.asarray(edges)), reference.chamfer(edges))


def test_equalize():
    rng = np.random.default_rng(0)
    for levels in (rng.binomial(255, 0.3, (40, 33)), rng.integers(7, 9, (16, 16)), np.full((16, 16), 77)):
        found = equalize(jnp.asarray(levels, jnp.int32), 256)
        np.testing.assert_array_equal(found, reference.equalize(levels))
