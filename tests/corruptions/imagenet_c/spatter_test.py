import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

from corruptions.imagenet_c.spatter import floor_of_mean, relief, spatter
from corruptions.primitives import chamfer, histogram
from corruptions.primitives.canny import canny, hysteresis
from corruptions.primitives.histogram import equalize
from tests.corruptions.elsewhere import as_on
from tests.reference.imagenet_c import spatter_stages
from tests.reference.imagenet_c.spatter import LEVELS
from tests.reference.photographs import photograph

canny = jax.jit(canny, static_argnums=(1, 2))
hysteresis, chamfer_distance = jax.jit(hysteresis), jax.jit(chamfer.chamfer_distance)
relief, floor_of_mean = jax.jit(relief), jax.jit(floor_of_mean)


def drops(height, width, seed, blur=2.0, deviation=0.3, threshold=0.68):
    noise = np.random.default_rng(seed).normal(0.65, deviation, (height, width))
    return (spatter_stages.liquid(noise, blur, threshold) * 255).astype(np.int64) % 256


@pytest.mark.parametrize(
    "side", [pytest.param(side, marks=pytest.mark.slow) if side == 299 else side for side in LEVELS]
)
def test_matches_the_original_given_the_noise(side):
    image = photograph(side, side, seed=side)
    sample, apply = jax.jit(spatter.sample, static_argnums=1), jax.jit(spatter.apply)
    for severity, (mean, deviation, blur, threshold, strength, mud) in enumerate(LEVELS[side], 1):
        params = sample(jax.random.key(severity), (side, side, 3), severity)
        noise = np.asarray(params["noise"], np.float64)
        assert abs(noise.mean() - mean) < 5 * deviation / side and abs(noise.std() / deviation - 1) < 5 / side
        ours = 255 * np.asarray(apply(jnp.asarray(image, jnp.float32) / 255, params), np.float64)
        layer = spatter_stages.liquid(noise, blur, threshold)
        expected = (
            spatter_stages.mud(image, layer, strength, threshold)
            if mud
            else spatter_stages.water(image, layer, strength)
        )
        # Thresholds of the blurred noise are sharp: rounding in float32 moves a few pixels across
        # them.
        off = abs(ours - expected) > 2e-3
        assert off.mean() < 1e-3, f"severity {severity}: {off.mean():.1e} of the values differ"
        assert (expected != image).any()


@pytest.mark.parametrize("shape", [(40, 71), pytest.param((224, 224), marks=pytest.mark.slow)])
def test_stages_of_the_relief_are_exact(shape):
    for seed, (blur, deviation) in enumerate(((4, 0.3), (2, 0.3), (0.8, 0.1))):
        levels = drops(*shape, seed, blur, deviation)
        edges = spatter_stages.canny(levels, 50, 150)
        np.testing.assert_array_equal(canny(jnp.asarray(levels, jnp.int32), 50, 150), edges)
        distance = spatter_stages.chamfer(edges)
        np.testing.assert_array_equal(chamfer_distance(jnp.asarray(edges)), distance)
        mean = spatter_stages.floor_of_mean(distance)
        np.testing.assert_array_equal(floor_of_mean(jnp.asarray(distance)), mean)
        np.testing.assert_array_equal(equalize(jnp.asarray(mean, jnp.int32), 21), spatter_stages.equalize(mean))
        np.testing.assert_array_equal(relief(jnp.asarray(levels, jnp.int32)), spatter_stages.relief(levels))
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


def test_relief_of_a_batch_looks_up_along_one_axis_in_a_table_of_each_image():
    # Else a TPU's compiler takes twelve seconds of CPU time for a look-up.
    traced = jax.jit(jax.vmap(relief)).trace(jnp.zeros((2, 16, 20), jnp.int32))
    lowered, text = traced.lower(lowering_platforms=("tpu",)).as_text(), str(traced.jaxpr)
    found = (
        lowered.count('"stablehlo.gather"'),
        text.count("[2,320] = gather"),
        text.count("operand_batching_dims=(0,)"),
    )
    assert found == (2, 2, 2)


def test_a_gpu_finds_the_same_distances_without_a_loop(monkeypatch):
    edges = np.random.default_rng(0).random((40, 71)) < 0.001
    as_on("cuda", monkeypatch)
    traced = jax.jit(lambda edges: chamfer.chamfer_distance(edges)).trace(edges)
    assert "stablehlo.while" not in traced.lower().as_text()
    np.testing.assert_array_equal(traced.lower().compile()(edges), spatter_stages.chamfer(edges))


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


def test_no_liquid_leaves_the_image_alone():
    image = jnp.asarray(photograph(32, 32), jnp.float32) / 255
    for severity in (1, 5):
        params = spatter.sample(jax.random.key(0), (32, 32, 3), severity)
        params["noise"] = jnp.full((32, 32), 0.2)
        np.testing.assert_array_equal(jax.jit(spatter.apply)(image, params), image)


# Pixels changed on a dark image, per cent, measured on the original; severities 1 to 5.
@pytest.mark.parametrize(
    "side, images, expected",
    [
        (224, 8, (3.4, 13.6, 21.4, 12.3, 19.8)),
        (32, 200, (2.7, 6.7, 18.3, 4.0, 6.8)),
        (64, 60, (2.4, 6.4, 18.4, 7.1, 10.3)),
    ],
)
def test_coverage(side, images, expected):
    dark = jnp.full((side, side, 3), 10, jnp.float32) / 255
    keys = jax.random.split(jax.random.key(3), images)
    cover = jax.jit(lambda severity: jax.lax.map(lambda key: spatter(key, dark, severity), keys))
    for severity, per_cent in enumerate(expected, 1):
        changed = np.floor(np.asarray(cover(severity)) * 255 + 1e-3) != 10
        share = 100 * changed.any(-1).mean((1, 2))
        assert abs(share.mean() - per_cent) < 3 * share.std() / np.sqrt(images) + 0.1 * per_cent


def test_vmapped_severities_give_what_single_ones_give():
    image = jnp.asarray(photograph(32, 32), jnp.float32) / 255
    single = jax.jit(lambda severity: spatter(jax.random.key(1), image, severity))
    batch = jax.jit(jax.vmap(single))(jnp.arange(1, 6))
    for severity in range(1, 6):
        np.testing.assert_allclose(batch[severity - 1], single(severity), atol=1e-5)


@pytest.mark.parametrize("shape", [(16, 24), (17, 19)])
def test_counts_by_slices_are_those_by_columns(shape):
    levels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    expected = np.cumsum(np.bincount(levels.ravel(), minlength=256))
    for form in (histogram.counts_by_columns, histogram.counts_by_slices):
        np.testing.assert_array_equal(jax.jit(form, static_argnums=1)(levels, 256), expected)
