"""Every ImageNet-C corruption, given its draws, equals an independent reference in float64 before truncation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from corruptions import imagenet_c
from tests.reference.imagenet_c import blur, color, fog, noise, pillow, snow, spatter
from tests.reference.imagenet_c.expected import FROST, REFERENCES, SIDES, expected
from tests.reference.photographs import photograph, scene

# name: (tolerance in levels, share of values beyond it, largest difference in levels).
BOUNDS = {
    **dict.fromkeys((*blur.CASES, "jpeg_compression", "pixelate"), (1e-3, 0, 1e-3)),
    **dict.fromkeys(color.CASES, (1e-4, 0, 1e-4)),
    **dict.fromkeys((*noise.TABLES, "fog", "frost"), (2e-3, 0, 2e-3)),
    # At the border of two counts of photons, 1 value in 100 000 is a whole photon off: 256 / c levels.
    "shot_noise": (2e-3, 1e-4, None),
    # The few others read a position 1/32 px away, see the test of the affine coordinates.
    "elastic_transform": (2e-3, 5e-4, None),
    # A whole number before the first truncation may fall to either side, and is then a level off.
    "glass_blur": (2e-3, 0.02, 1.001),
    "motion_blur": (2e-3, 2e-3, 1.001),
    "snow": (2e-3, 1e-3, 3),
    # Thresholds of the blurred noise are sharp: rounding in float32 moves a few pixels across them.
    "spatter": (2e-3, 1e-3, 255),
}
# name: (largest difference after truncation in levels, share of the values that differ).
TRUNCATED = {
    **dict.fromkeys(color.CASES, (1, 1)),
    "elastic_transform": (2, 1),
    "fog": (1, 1e-3),
    "frost": (1, 1),
    "jpeg_compression": (0, 0),
    "motion_blur": (1, 2e-3),
    "pixelate": (0, 0),
}
DRAWN_FOR_TABLES = ("fog", "frost", "snow", "spatter")  # compared at the side of each table


def shapes(name, table):
    """Sizes at which a table is compared."""
    if name in DRAWN_FOR_TABLES:
        return [(SIDES[table],) * 2, *([(40, 57)] if name == "snow" and table == "cifar" else [])]
    if name == "elastic_transform":
        return {"cifar": [(32, 32)], "tiny": [(64, 48)], "imagenet": [(60, 90), (100, 75)], "inception": []}[table]
    if name in blur.CASES:
        return [(32, 32) if table in ("cifar", "imagenet") else (41, 60)]
    if name == "pixelate":  # 26 and 30 have pixel centres on block borders, 71 has them when enlarging
        return [(16, 17), (26, 30), (71, 33), (64, 224)]
    if name in noise.TABLES:
        return [(96, 80)] if table == "imagenet" else []
    return {"glass_blur": [(30, 44)], "jpeg_compression": [(33, 47)], "motion_blur": [(24, 36)]}.get(name, [(21, 30)])


def test_every_corruption_has_a_reference():
    members = corruptions.names("imagenet_c") + corruptions.names("imagenet_c_extra")
    assert {f"imagenet_c/{name}" for name in REFERENCES} == set(members) and REFERENCES.keys() == BOUNDS.keys()


def check_draws(name, table, severity, drawn):
    """The fields of snow and spatter have the published distributions, and glass the published reach and passes."""
    if name == "glass_blur":
        assert (drawn["reach"], drawn["passes"]) == blur.GLASS[table][severity - 1][1:]
    if name in ("snow", "spatter"):
        mean, deviation, *_ = (snow if name == "snow" else spatter).LEVELS[SIDES[table]][severity - 1]
        assert abs(drawn["noise"].mean() - mean) < 5 * deviation / drawn["noise"].size ** 0.5
        assert abs(drawn["noise"].std() / deviation - 1) < 5 / drawn["noise"].size ** 0.5


def cases():
    """Each corruption at each size, with the tables compared there, which share a program where they can."""
    for name in BOUNDS:
        for shape in dict.fromkeys(shape for table in SIDES for shape in shapes(name, table)):
            slow = shape[0] == 299 or (name, shape) == ("elastic_transform", (100, 75))
            marks = [pytest.mark.slow] if slow else []
            yield pytest.param(name, shape, id=f"{name}-{shape[0]}x{shape[1]}", marks=marks)


@pytest.mark.parametrize(("name", "shape"), cases())
def test_equals_the_reference(name, shape):
    apply = jax.jit(getattr(imagenet_c, name).apply)
    for table in SIDES:
        if shape in shapes(name, table):
            assert_equals_the_reference(name, table, shape, apply)


def assert_equals_the_reference(name, table, shape, apply):
    tolerance, share, most = BOUNDS[name]
    corruption = getattr(imagenet_c, name)
    options = {} if name in DRAWN_FOR_TABLES else {"table": table}
    sample = jax.jit(lambda key, severity: dict(corruption.sample(key, (*shape, 3), severity, **options)))
    noisy = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    for severity in range(1, 6):
        params = sample(jax.random.key(severity), severity)
        drawn = jax.tree.map(np.asarray, params)
        check_draws(name, table, severity, drawn)
        images = [photograph(*shape, severity) if name in DRAWN_FOR_TABLES else scene(*shape)]
        for image in images + [noisy] * (name == "pixelate"):
            found = np.asarray(apply(jnp.asarray(image, jnp.float32) / 255, params))
            wanted = expected(name, image, drawn, table, severity)
            off = np.abs(255 * np.float64(found) - wanted)
            bound = 256 / noise.TABLES[name][table][severity - 1] if name == "shot_noise" else most
            assert np.mean(off > tolerance) <= share, f"severity {severity}"
            assert bound is None or off.max() <= bound, f"severity {severity}"
            levels = np.abs(np.floor(np.float32(255) * found) - np.floor(wanted))
            largest, different = TRUNCATED.get(name, (255, 1))
            assert levels.max() <= largest and np.mean(levels > 0) <= different, f"severity {severity}"


@pytest.mark.parametrize(
    "table", ["cifar", *(pytest.param(t, marks=pytest.mark.slow) for t in pillow.QUALITIES if t != "cifar")]
)
@pytest.mark.parametrize("name", ["jpeg_compression", "pixelate"])
def test_batches_of_bytes_are_bit_exact_with_pillow(name, table):
    images = np.stack([photograph(33, 47, seed) for seed in range(2)])
    for severity in range(1, 6):
        found = corruptions.corrupt(jax.random.key(0), images, f"imagenet_c/{name}", severity, table=table)
        np.testing.assert_array_equal(found, [expected(name, image, {}, table, severity) for image in images])


@pytest.mark.parametrize(
    ("shape", "table", "side"), [((20, 50), None, 64), ((300, 180), "imagenet", 512), ((16, 40), "tiny", 64)]
)
def test_fog_of_larger_and_oblong_images_uses_the_next_power_of_two(shape, table, side):
    params = imagenet_c.fog.sample(jax.random.key(0), (*shape, 3), 3, table=table)
    assert params["displacements"].shape == (side**2 - 1,)
    image = photograph(*shape)
    found = imagenet_c.fog.apply(jnp.asarray(image, jnp.float32) / 255, params)
    given = float(params["strength"]), float(params["decay"]), side, np.float64(params["displacements"])
    np.testing.assert_allclose(255 * np.asarray(found), fog.reference_fog(image, *given), atol=2e-3)


def test_frost_truncates_as_the_original_in_float32():
    """Levels that are whole in exact arithmetic may fall one below; the budget is the original's in float32."""
    image, texture = photograph(224, 224), photograph(224, 224, seed=9)
    for severity, budget in zip(range(1, 6), (1e-4, 1e-3, 0.044, 0.014, 1e-4), strict=True):
        a, b = FROST[224][severity - 1]
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
    np.testing.assert_array_equal(np.rint(np.asarray(stored) * 255), pillow.jpeg(image, 85))
