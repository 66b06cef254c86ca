"""Every ImageNet-C corruption, given its draws, equals an independent reference in float64 before truncation."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from corruptions import imagenet_c
from tests.reference.imagenet_c import (
    blur,
    color,
    elastic,
    fog,
    frost,
    glass,
    jpeg,
    motion,
    noise,
    pixelate,
    snow,
    spatter_stages,
)
from tests.reference.imagenet_c import spatter as spatter_levels
from tests.reference.photographs import photograph

TABLES = ("cifar", "tiny", "imagenet", "inception")
SIDES = dict(zip(TABLES, (32, 64, 224, 299)))


def by_table(of_sides):
    return {table: of_sides[side] for table, side in SIDES.items()}


def blurred(name, image, params, row):
    return 255 * np.clip(blur.CASES[name][0](image / 255.0, row), 0, 1)


def warped(image, params, row):
    return elastic.reference(image, *(np.float64(params[name]) for name in ("points", "dx", "dy")))


def fogged(image, params, row):
    (strength, decay), drawn = row, np.float64(params["displacements"])
    return fog.reference_fog(image, strength, decay, int((drawn.size + 1) ** 0.5), drawn)


def iced(image, params, row):
    return np.clip(row[0] * np.float64(image) + row[1] * np.float64(params["texture"]), 0, 255)


def copied(image, params, row):
    assert (params["reach"], params["passes"]) == row[1:]
    return glass.reference(image, row, params["shifts"])


def smeared(image, params, row):
    return motion.imagemagick(image, *row, float(params["angle"]))


def assert_normal(draws, mean, deviation):
    assert abs(draws.mean() - mean) < 5 * deviation / draws.size**0.5
    assert abs(draws.std() / deviation - 1) < 5 / draws.size**0.5


def snowed(image, params, row):
    mean, deviation, factor, threshold, radius, sigma, mix = row
    layer = np.float64(params["noise"])
    assert_normal(layer, mean, deviation)
    flakes = snow.reference_flakes(layer, factor, threshold)
    assert flakes.any()
    return snow.reference_composite(image, snow.reference_streaks(flakes, radius, sigma, float(params["angle"])), mix)


def splashed(image, params, row):
    mean, deviation, width, threshold, strength, mud = row
    assert_normal(np.float64(params["noise"]), mean, deviation)
    layer = spatter_stages.liquid(np.float64(params["noise"]), width, threshold)
    if mud:
        return spatter_stages.mud(image, layer, strength, threshold)
    return spatter_stages.water(image, layer, strength)


FOG = {table: tuple(zip(strengths, decays)) for table, _, _, strengths, decays in fog.TABLES}
# name: (reference (image, params, row) -> levels, rows by table, tolerance in levels, share of values beyond it,
# largest difference in levels).
CASES = {
    **{n: (functools.partial(blurred, n), rows, 1e-3, 0, 1e-3) for n, (_, rows) in blur.CASES.items()},
    **{n: (lambda i, p, row, f=f: f(i, row), rows, 1e-4, 0, 1e-4) for n, (f, rows) in color.CASES.items()},
    **{
        n: (lambda i, p, row, n=n: noise.reference(n, i / 255.0, p), rows, 2e-3, 0, 2e-3)
        for n, rows in noise.TABLES.items()
    },
    # At the border of two counts of photons, 1 value in 100 000 is a whole photon off: 256 / c levels.
    "shot_noise": (lambda i, p, row: noise.reference("shot_noise", i / 255.0, p), noise.TABLES["shot_noise"], 2e-3, 1e-4, None),
    # The few others read a position 1/32 px away, see the test of the affine coordinates.
    "elastic_transform": (warped, dict.fromkeys(TABLES, range(5)), 2e-3, 5e-4, None),
    "fog": (fogged, FOG, 2e-3, 0, 2e-3),
    "frost": (iced, by_table(frost.WEIGHTS), 2e-3, 0, 2e-3),
    # A whole number before the first truncation may fall to either side, and is then a level off.
    "glass_blur": (copied, glass.TABLES, 2e-3, 0.02, 1.001),
    "jpeg_compression": (lambda i, p, quality: jpeg.pillow(i, quality), jpeg.QUALITIES, 1e-3, 0, 1e-3),
    "motion_blur": (smeared, motion.TABLES, 2e-3, 2e-3, 1.001),
    "pixelate": (lambda i, p, scale: pixelate.pillow(i, scale), pixelate.SCALES, 1e-3, 0, 1e-3),
    "snow": (snowed, by_table(snow.LEVELS), 2e-3, 1e-3, 3),
    # Thresholds of the blurred noise are sharp: rounding in float32 moves a few pixels across them.
    "spatter": (splashed, by_table(spatter_levels.LEVELS), 2e-3, 1e-3, 255),
}  # fmt: skip
# name: (largest difference after truncation in levels, share of the values that differ).
TRUNCATED = {
    "elastic_transform": (2, 1),
    "fog": (1, 1e-3),
    "frost": (1, 1),
    "jpeg_compression": (0, 0),
    "motion_blur": (1, 2e-3),
    "pixelate": (0, 0),
}
DRAWN_FOR_TABLES = ("fog", "frost", "snow", "spatter")  # compared at the side of each table


def shapes(name, table):
    if name in DRAWN_FOR_TABLES:
        return [(SIDES[table],) * 2, *([(40, 57)] if name == "snow" and table == "cifar" else [])]
    if name == "elastic_transform":
        return {"cifar": [(32, 32)], "tiny": [(64, 48)], "imagenet": [(60, 90), (100, 75)], "inception": []}[table]
    if name == "pixelate":  # 26 and 30 have pixel centres on block borders, 71 has them when enlarging
        return [(16, 17), (26, 30), (71, 33), (64, 224)]
    if name in noise.TABLES:
        return [(96, 80)] if table == "imagenet" else []
    return {"glass_blur": [(30, 44)], "jpeg_compression": [(33, 47)], "motion_blur": [(24, 36)]}.get(
        name, [(32, 32), (41, 60)] if name in blur.CASES else [(21, 30)]
    )


def scene(height, width, seed=4):
    """A photograph with black, grey, white and primary pixels, and almost-greys."""
    image = photograph(height, width, seed)
    image[0] = np.arange(width)[:, None] * 255 // width
    image[1, :8] = [[0, 0, 0], [255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0], [1, 0, 0], [0, 0, 1], [255] * 3]
    image[2] = np.arange(width)[:, None] * 223 // width + np.array([0, 1, 0])
    image[3:5], image[-2:] = 255, 0
    return image


def test_every_corruption_has_a_reference():
    members = corruptions.names("imagenet_c") + corruptions.names("imagenet_c_extra")
    assert {f"imagenet_c/{name}" for name in CASES} == set(members)


def slow_at_299(name, table, shape):
    return [pytest.mark.slow] if name == "spatter" and shape[0] == 299 else []


@pytest.mark.parametrize(
    ("name", "table", "shape"),
    [
        pytest.param(
            name, table, shape, id=f"{name}-{table}-{shape[0]}x{shape[1]}", marks=slow_at_299(name, table, shape)
        )
        for name in CASES
        for table in TABLES
        for shape in shapes(name, table)
    ],
)
def test_equals_the_reference(name, table, shape):
    reference, rows, tolerance, share, most = CASES[name]
    corruption = getattr(imagenet_c, name)
    options = {} if name in DRAWN_FOR_TABLES else {"table": table}
    sample = jax.jit(lambda key, severity: dict(corruption.sample(key, (*shape, 3), severity, **options)))
    apply = jax.jit(corruption.apply)
    noisy = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    for severity, row in enumerate(rows[table], 1):
        params = sample(jax.random.key(severity), severity)
        drawn = jax.tree.map(np.asarray, params)
        images = [photograph(*shape, severity) if name in DRAWN_FOR_TABLES else scene(*shape)]
        for image in images + [noisy] * (name == "pixelate"):
            found = np.asarray(apply(jnp.asarray(image, jnp.float32) / 255, params))
            expected = reference(image, drawn, row)
            off = np.abs(255 * np.float64(found) - expected)
            bound = 256 / row if name == "shot_noise" else most
            assert np.mean(off > tolerance) <= share, f"severity {severity}"
            assert bound is None or off.max() <= bound, f"severity {severity}"
            levels = np.abs(np.floor(np.float32(255) * found) - np.floor(expected))
            largest, different = TRUNCATED.get(name, (255, 1))
            assert levels.max() <= largest and np.mean(levels > 0) <= different, f"severity {severity}"
    assert sample._cache_size() == 1, "one compile must serve all severities"


@pytest.mark.parametrize("name", color.CASES)
def test_8_bit_results_differ_by_at_most_one_level(name):
    (reference, rows), image = color.CASES[name], scene(21, 30)
    for severity, row in enumerate(rows["cifar"], 1):
        found = np.asarray(corruptions.corrupt(jax.random.key(0), image[None], f"imagenet_c/{name}", severity))[0]
        assert np.abs(found - np.floor(reference(image, row))).max() <= 1


@pytest.mark.parametrize("table", jpeg.QUALITIES)
@pytest.mark.parametrize("name", ["jpeg_compression", "pixelate"])
def test_batches_of_bytes_are_bit_exact_with_pillow(name, table):
    images = np.stack([photograph(33, 47, seed) for seed in range(2)])
    reference, rows = (
        (jpeg.pillow, jpeg.QUALITIES) if name == "jpeg_compression" else (pixelate.pillow, pixelate.SCALES)
    )
    for severity, row in enumerate(rows[table], 1):
        found = corruptions.corrupt(jax.random.key(0), images, f"imagenet_c/{name}", severity, table=table)
        np.testing.assert_array_equal(found, np.stack([reference(image, row) for image in images]))


@pytest.mark.parametrize(
    ("shape", "table", "side"), [((20, 50), None, 64), ((300, 180), "imagenet", 512), ((16, 40), "tiny", 64)]
)
def test_fog_of_larger_and_oblong_images_uses_the_next_power_of_two(shape, table, side):
    params = imagenet_c.fog.sample(jax.random.key(0), (*shape, 3), 3, table=table)
    assert params["displacements"].shape == (side**2 - 1,)
    image = photograph(*shape)
    found = imagenet_c.fog.apply(jnp.asarray(image, jnp.float32) / 255, params)
    row = float(params["strength"]), float(params["decay"])
    np.testing.assert_allclose(255 * np.asarray(found), fogged(image, params, row), atol=2e-3)


@pytest.mark.parametrize(("table", "map_side"), [(table, side) for table, _, side, *_ in fog.TABLES])
def test_fog_has_a_map_side_by_table(table, map_side):
    params = jax.eval_shape(lambda: dict(imagenet_c.fog.sample(jax.random.key(0), (SIDES[table],) * 2 + (3,), 1)))
    assert params["displacements"].shape == (map_side**2 - 1,)


def test_frost_truncates_as_the_original_in_float32():
    """Levels that are whole in exact arithmetic may fall one below; the budget is the original's in float32."""
    image, texture = photograph(224, 224), photograph(224, 224, seed=9)
    for severity, budget in zip(range(1, 6), (1e-4, 1e-3, 0.044, 0.014, 1e-4), strict=True):
        a, b = frost.WEIGHTS[224][severity - 1]
        params = dict(imagenet_c.frost.sample(jax.random.key(0), image.shape, severity))
        params["texture"] = jnp.asarray(texture, jnp.float32)
        found = np.floor(255 * np.asarray(imagenet_c.frost.apply(jnp.asarray(image, jnp.float32) / 255, params)))
        expected = np.floor(np.clip(a * np.float64(image) + b * np.float64(texture), 0, 255))
        assert (found != expected).mean() <= budget, severity


def test_points_on_a_line_keep_the_warp_finite():
    points = np.array([[10, 10], [20, 20], [30, 30]], np.float32)
    image, zero = jnp.ones((32, 32, 3)), jnp.zeros((32, 32))
    found = jax.jit(imagenet_c.elastic_transform.apply)(image, {"points": points, "dx": zero, "dy": zero})
    np.testing.assert_array_equal(found, image)


def test_black_stays_black_in_fog():
    assert not np.any(imagenet_c.fog(jax.random.key(0), jnp.zeros((32, 32, 3)), 5))


def test_no_liquid_leaves_the_image_alone():
    image = jnp.asarray(photograph(32, 32), jnp.float32) / 255
    for severity in (1, 5):
        params = dict(imagenet_c.spatter.sample(jax.random.key(0), (32, 32, 3), severity))
        params["noise"] = jnp.full((32, 32), 0.2)
        np.testing.assert_array_equal(jax.jit(imagenet_c.spatter.apply)(image, params), image)


def test_storage_is_jpeg_of_quality_85():
    image = photograph(40, 40, 1)
    stored = jax.jit(imagenet_c.store)(jnp.asarray(image, jnp.float32) / 255)
    np.testing.assert_array_equal(np.rint(np.asarray(stored) * 255), jpeg.pillow(image, 85))
