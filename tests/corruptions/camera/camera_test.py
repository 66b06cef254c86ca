"""Cameras: RoboDepth's functions by references and by the exact law of a sensor; LIBERO-Plus beside ImageNet-C."""

import jax
import jax.numpy as jnp
import numpy as np
import PIL.Image
import PIL.ImageOps
import pytest

import corruptions
from corruptions import camera
from corruptions.camera import libero, sensors
from tests.pages import example_of
from tests.reference import camera as reference
from tests.reference import libero as released
from tests.reference.photographs import photograph

# {grey: (mean, standard deviation) at severities 1 to 5}, of `dark` in an image that holds 0 and 255 too.
DARK_LAW = {
    64: ((9.138, 2.887), (7.580, 4.095), (6.375, 5.200), (5.835, 6.407), (5.832, 7.547)),
    128: ((38.051, 4.542), (31.625, 6.497), (25.202, 8.700), (18.965, 11.570), (13.675, 12.398)),
    255: ((152.500, 8.323), (127.000, 11.811), (101.500, 15.424), (76.000, 20.837), (50.536, 22.880)),
}
ISO_LAW = {
    0: ((5.449, 8.169), (8.297, 12.337), (12.569, 18.589), (18.266, 26.925), (26.809, 39.422)),
    128: ((127.479, 38.775), (127.466, 41.869), (127.434, 47.944), (127.390, 57.198), (127.370, 70.250)),
    255: ((231.163, 28.884), (229.306, 30.375), (226.221, 33.844), (221.669, 39.916), (214.259, 50.478)),
}
# Standard deviation of a displacement in pixels at severities 1 to 5.
DISPLACEMENTS = {(192, 640): (0.56, 0.73, 0.95, 1.12, 1.34), (224, 224): (1.02, 1.33, 1.73, 2.04, 2.45)}
TORN = ("libero_motion_blur", "libero_gaussian_blur", "libero_zoom_blur", "libero_fog", "libero_glass_blur")


@pytest.mark.parametrize("name", ["dark", "iso_noise"])
def test_exposures_equal_their_references(name):
    corruption, image = getattr(camera, name), photograph(40, 33)
    for level in range(5):
        params = corruption.sample(jax.random.key(level), image.shape, level + 1)
        draws = (np.float64(params[k]) for k in ("uniform", "noise"))
        expected = getattr(reference, name)(image / 255.0, level, *draws)
        found = np.floor(255 * np.float64(corruption.apply(np.float32(image / 255), params)) + 1e-4)
        different = np.abs(found - expected)
        assert (different > 0).mean() <= 1e-3 and different.max() <= 255 / float(params["photons"]) + 1


@pytest.mark.parametrize(("name", "laws"), [("dark", DARK_LAW), ("iso_noise", ISO_LAW)])
def test_a_sensor_has_its_exact_law(name, laws):
    """The tables above are computed again from the law, and eight corrupted images of 64x64 have its mean and deviation."""
    for grey, rows in laws.items():
        for level, (mean, deviation) in enumerate(rows):
            scale, photons, sigma = reference.DARK[level] if name == "dark" else (1, 25, reference.ISO[level])
            light = scale * (grey / 255) ** 2 if name == "dark" else grey / 255
            exact = reference.law(light, photons, sigma)
            assert exact[:2] == pytest.approx((mean, deviation), abs=6e-4)
    images = np.full((8, 64, 64, 3), 128, np.uint8)
    images[:, 0, 0], images[:, 0, 1] = 0, 255
    for level in (0, 4):
        values = np.asarray(corruptions.corrupt(jax.random.key(1), images, f"camera/{name}", level + 1))[:, 1:].ravel()
        mean, deviation = laws[128][level]
        assert abs(values.mean() - mean) < 4.5 * deviation / values.size**0.5
        assert values.std() == pytest.approx(deviation, rel=0.015)


def test_colours_are_quantised_as_pillow_posterises():
    levels = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1).repeat(3, -1)
    picture = PIL.Image.fromarray(levels[0])
    for severity in range(1, 6):
        found = np.asarray(corruptions.corrupt(jax.random.key(0), levels, "color_quant", severity))
        np.testing.assert_array_equal(found[0], np.asarray(PIL.ImageOps.posterize(picture, 6 - severity)))
        again = corruptions.corrupt(jax.random.key(0), found, "color_quant", severity)
        np.testing.assert_array_equal(again, found)
        floats = corruptions.corrupt(jax.random.key(0), np.float32(levels / 255), "color_quant", severity)
        np.testing.assert_array_equal(np.round(255 * np.asarray(floats)), found)
        coarse = (levels / 255).astype(np.float16)  # up to an eighth of a level off: rounded before bits are lost
        coarse = corruptions.corrupt(jax.random.key(0), coarse, "color_quant", severity)
        np.testing.assert_array_equal(np.round(255 * np.float32(coarse)), found)


def test_the_field_displaces_as_imagecorruptions_does():
    image = np.float32(photograph(40, 56) / 255)
    params = camera.elastic_field.sample(jax.random.key(3), image.shape, 4)
    expected = reference.displaced(np.float64(image), np.float64(params["dx"]), np.float64(params["dy"]))
    np.testing.assert_allclose(camera.elastic_field.apply(image, params), expected, atol=0.5 / 255)


def test_labels_follow_the_field_where_it_mirrors_the_border():
    params = camera.elastic_field.sample(jax.random.key(4), (64, 64, 3), 5)
    where = camera.elastic_field.coordinates((64, 64, 3), params)
    planes = np.stack(np.mgrid[:64, :64], -1).astype(np.float64)
    assert (np.abs(planes[..., 0] + params["dy"] - 31.5) > 32).any()  # the field looks beyond the border
    expected = reference.displaced(planes, np.float64(params["dx"]), np.float64(params["dy"]))
    np.testing.assert_allclose(where, expected, atol=1e-3)
    assert (corruptions.move_masks(np.ones((1, 64, 64), np.int8), where[None]) == 1).all()  # no pixel is filled


@pytest.mark.parametrize("shape", DISPLACEMENTS)
def test_displacements_have_their_published_size(shape):
    sample = jax.jit(jax.vmap(lambda key, s: camera.elastic_field.sample(key, (*shape, 3), s), in_axes=(0, None)))
    for severity in (1, 5):
        drawn = sample(jax.random.split(jax.random.key(0), 12), severity)
        for axis in ("dx", "dy"):
            assert np.asarray(drawn[axis]).std() == pytest.approx(DISPLACEMENTS[shape][severity - 1], rel=0.03)


def test_a_field_is_noise_filtered_as_scipy_does(monkeypatch):
    """The sampler is given white noise; the sides differ, so that exchanged ones would show."""
    noise = np.random.default_rng(0).uniform(-1, 1, (150, 210)).astype(np.float32)
    monkeypatch.setattr(sensors.random, "uniform", lambda key, shape, low, high: (high - low) / 2 * noise)
    sample = jax.jit(lambda key, severity: camera.elastic_field.sampler(key, (*noise.shape, 3), severity))
    found = sample(jax.random.key(0), 4.0)
    for axis in ("dx", "dy"):
        np.testing.assert_allclose(found[axis], reference.elastic_noise(np.float64(noise), 25), atol=2e-5)


@pytest.mark.parametrize("name", ["motion_blur", "gaussian_blur", "zoom_blur", "fog", "glass_blur"])
def test_every_level_of_libero_is_the_released_function(name):
    corruption, image = corruptions.get(f"camera/libero_{name}"), photograph(60, 60)
    for level in range(1, 11):
        params = corruption.sample(jax.random.key(level), image.shape, level)
        drawn = {key: np.asarray(v, np.float64 if v.dtype == np.float32 else v.dtype) for key, v in params.items()}
        found = 255 * np.float64(corruption.apply(np.float32(image / 255), params))
        off = np.abs(found - released.reference(name, image, level, drawn))
        # Values cut to 8 bits in between may fall to either side.
        assert off.max() < (1.01 if name in ("motion_blur", "glass_blur") else 1e-3), level
        assert (off > 1e-3).mean() < 0.03, level


# {level of LIBERO-Plus: severity of ImageNet-C} where both have the same parameters.
SHARED = {
    "zoom_blur": {1: 1, 2: 2, 3: 3, 4: 4, 5: 5},
    "gaussian_blur": {1: 1, 2: 2, 3: 3, 4: 4, 6: 5},
    "glass_blur": {5: 4, 7: 5},
}


@pytest.mark.parametrize("name", SHARED)
def test_rows_of_libero_that_imagenet_c_has_give_its_pixels(name):
    image = np.float32(photograph(224, 224) / 255)
    ours, original = corruptions.get(f"camera/libero_{name}"), corruptions.get(f"imagenet_c/{name}")
    pairs = SHARED[name].items() if name == "gaussian_blur" else list(SHARED[name].items())[-2:]
    for level, severity in pairs:
        params, other = (c.sample(jax.random.key(5), image.shape, s) for c, s in ((ours, level), (original, severity)))
        if name == "glass_blur":
            np.testing.assert_array_equal(params["shifts"][:2], other["shifts"][:2])
        found, expected = (np.asarray(c.apply(image, p)) for c, p in ((ours, params), (original, other)))
        np.testing.assert_allclose(found, expected, atol=2e-6)


def test_libero_has_ten_levels_of_its_own():
    assert corruptions.names("libero_plus_noise") == tuple(f"camera/{name}" for name in TORN)
    for name in TORN:
        assert corruptions.severities(f"camera/{name}") == tuple(range(1, 11))
    taps = corruptions.get("camera/libero_motion_blur").sample(jax.random.key(0), (64, 64, 3), 10)["weights"]
    i = np.arange(71)
    np.testing.assert_allclose(taps, np.exp(-(i**2) / 800) / np.exp(-(i**2) / 800).sum(), rtol=1e-5)
    weaker = corruptions.get("camera/libero_motion_blur").sample(jax.random.key(0), (64, 64, 3), 1)["weights"]
    assert np.count_nonzero(weaker) == 11
    layers = [np.count_nonzero(row) for row in libero.blur.zoom_weights(libero._ZOOM)]
    last = [np.arange(1, end, step)[-1] for end, step in zip(released.ENDS, released.STEPS)]
    assert layers == [12, 16, 11, 13, 11, 37, 41, 23, 26, 19]
    np.testing.assert_allclose(last, [1 + step * (n - 1) for (step, n) in libero._ZOOM])


def test_benchmarks_take_the_table_of_224_pixels_at_any_size():
    assert [len(corruptions.names(b)) for b in ("robodepth", "robodepth_nyu")] == [18, 15]
    for name in corruptions.names("robodepth"):
        described = corruptions.get(name).describe((900, 1600, 3))
        assert described == ({} if name.startswith("camera/") else {"table": "imagenet"}), name
    assert corruptions.severities("camera/dark", "robobev") == (3, 4, 5)
    assert corruptions.severities("robobev/snow_bgr", "robobev") == (1, 2, 3)
    assert corruptions.get("fog").qualified_name == "imagenet_c/fog" and "robodepth/fog" not in corruptions.names()
    images = photograph(32, 32)[None]
    key, swapped = jax.random.key(0), images[..., ::-1]
    bgr = corruptions.corrupt(key, images, "robobev/snow_bgr", 2)
    rgb = corruptions.corrupt(key, swapped, "imagenet_c/snow", 2, table="imagenet")
    np.testing.assert_array_equal(bgr, np.asarray(rgb)[..., ::-1])


RIG = np.ones((5, 6, 16, 16, 3), np.uint8)


def black(rig):
    """Finds the black cameras, bool [N, M]; the other cameras must be unchanged."""
    rig = np.asarray(rig)
    lost = (rig == 0).all((2, 3, 4))
    assert (rig[~lost] == 1).all()
    return lost


def test_crashed_cameras_are_those_of_the_key():
    """The same in all samples and batches; the published law of the number of different ones among six."""
    found = black(camera.camera_crash(jax.random.key(3), RIG, 4))
    assert (found == found[0]).all()
    np.testing.assert_array_equal(black(camera.camera_crash(jax.random.key(3), RIG[:2], 4)), found[:2])
    sample = np.ones((1, 6, 16, 16, 1), np.uint8)
    crash = jax.jit(jax.vmap(lambda key: (camera.camera_crash(key, sample, 4) == 0).all((0, 2, 3, 4)).sum()))
    numbers = np.bincount(crash(jax.random.split(jax.random.key(0), 10_000)), minlength=5)[1:] / 10_000
    np.testing.assert_allclose(numbers, [0.005, 0.162, 0.556, 0.278], atol=0.02)
    assert black(camera.camera_crash(jax.random.key(0), RIG, 4, replace=False))[0].sum() == 4


def test_frames_are_lost_one_by_one():
    key, index = jax.random.key(1), np.arange(4000)
    rig = np.ones((4000, 6, 16, 16, 1), np.uint8)
    for severity in (2, 5):
        found = black(camera.frame_lost(key, rig, severity))
        assert abs(found.mean() - severity / 6) < 5 * 0.5 / found.size**0.5
        assert np.abs(np.corrcoef(found.T) - np.eye(6)).max() < 5 / 4000**0.5
    some = black(camera.frame_lost(key, rig[:3, :4], 5, index=index[[7, 0, 99]]))
    np.testing.assert_array_equal(some, found[[7, 0, 99], :4])


def test_black_is_the_low_end_of_the_range_of_values():
    """The same cameras go black as without a range."""
    for lose in (camera.camera_crash, camera.frame_lost):
        signed = lose(jax.random.key(3), RIG.astype(np.float16), 4, value_range=(-1, 1))
        assert signed.dtype == np.float16
        expected = np.where(black(lose(jax.random.key(3), RIG, 4)), -1, 1)
        np.testing.assert_array_equal(signed[:, :, 0, 0, 0], expected)
        np.testing.assert_array_equal(np.ptp(signed, axis=(2, 3, 4)), 0)


def test_the_recipe_of_the_page():
    recipe = example_of("docs/howto/corrupt.md", "Corrupt the images of robots and cars")
    found = {"corruptions": corruptions, "key": jax.random.key(0), "images": photograph(32, 32)[None]}
    found |= {"np": np, "positions": np.arange(1)}
    exec(recipe.replace('names("robobev")', 'names("robobev")[:1]'), found)
    np.testing.assert_array_equal(found["corrupted"], found["images"] // 64 * 64)
    assert found["crashed"].shape == found["lost"].shape == (1, 6, 32, 32, 3)


def test_dark_stretches_by_the_extremes_and_squares_a_constant_image():
    image = np.float32(photograph(32, 32) / 255)
    params = dict(camera.dark.sample(jax.random.key(0), image.shape, 1))
    params |= {"noise": jnp.zeros(image.shape), "uniform": jnp.full(image.shape, 0.5), "photons": jnp.float32(900)}
    found = camera.dark.apply(image, params)
    assert float(found.min()) == 0 and float(found.max()) == pytest.approx(0.6, abs=2e-3)
    np.testing.assert_allclose(camera.dark.apply(0.5 * image + 0.2, params), found, atol=2e-3)
    for value in (0.0, 0.5, 1.0):
        constant = np.full((16, 16, 3), value, np.float32)
        flat = {k: v[:16, :16] if v.ndim else v for k, v in params.items()}
        np.testing.assert_allclose(camera.dark.apply(constant, flat), 0.6 * value**2, atol=1.1e-3)
    faint = np.zeros((16, 16, 3), np.float32)
    faint[0, 0] = 1e-39  # which some processors count as 0 in a quotient, and not in a comparison
    for applied in (camera.dark.apply, jax.jit(camera.dark.apply)):
        np.testing.assert_allclose(applied(faint, flat), 0, atol=1.1e-3)


def test_dark_darkens_with_severity_and_stays_finite_on_constant_images():
    images = np.stack([photograph(32, 32), np.full((32, 32, 3), 200, np.uint8), np.zeros((32, 32, 3), np.uint8)])
    floats = images / np.float32(255)
    found = [np.asarray(corruptions.corrupt(jax.random.key(0), floats, "camera/dark", s)) for s in range(1, 6)]
    assert np.isfinite(found).all()
    means = np.array([x.mean((1, 2, 3)) for x in found])
    assert (np.diff(means[:, :2], axis=0) < 0).all()
    np.testing.assert_allclose(means[:, 1], [c * (200 / 255) ** 2 for c, _, _ in reference.DARK], atol=0.01)
