"""Draws of ImageNet-C: published distributions, shares of the image, and severities between two levels."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage, stats

from corruptions import imagenet_c
from corruptions.imagenet_c import elastic_transform, fog, glass_blur, motion_blur, snow, spatter
from corruptions.imagenet_c.fog import diamond_square
from tests.corruptions.comparing import drawn
from tests.reference.imagenet_c import blur, noise, pillow
from tests.reference.imagenet_c.elastic import PIXELS, reference_anchors
from tests.reference.imagenet_c.snow import LARGE, reference_flakes
from tests.reference.photographs import photograph

KEY, SHAPE = jax.random.key(11), (96, 80, 3)


@pytest.mark.parametrize(
    ("name", "table"), [(name, table) for name, tables in noise.TABLES.items() for table in tables]
)
def test_noise_has_the_published_distribution(name, table):
    corruption = getattr(imagenet_c, name)
    draw = jax.jit(lambda key, severity: corruption.sample(key, SHAPE, severity, table=table))
    for severity, parameter in enumerate(noise.TABLES[name][table], 1):
        params = {k: np.asarray(v) for k, v in draw(jax.random.fold_in(KEY, severity), severity).items()}
        if name in ("gaussian_noise", "speckle_noise"):
            assert stats.kstest(params["noise"].ravel() / parameter, "norm").pvalue > 1e-4
        elif name == "shot_noise":
            assert params["photons"] == parameter
            assert stats.kstest(params["uniform"].ravel(), "uniform").pvalue > 1e-4
        else:
            size = params["flip"].size
            assert abs(params["flip"].sum() - parameter * size) < 4.5 * np.sqrt(parameter * size)
            assert abs(params["salt"].sum() - size / 2) < 4.5 * np.sqrt(size / 4)
            salted = params["salt"][params["flip"]]
            assert abs(salted.mean() - 0.5) < 4.5 * 0.5 / np.sqrt(salted.size)


def test_shot_noise_counts_are_poisson_for_any_float_image():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, SHAPE).astype(np.float32)
    x[:8] = 0
    params = imagenet_c.shot_noise.sample(KEY, SHAPE, 1, table="imagenet")
    counts = np.asarray(jax.jit(imagenet_c.shot_noise.apply)(x, params), np.float64) * 60
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-4)
    assert counts[:8].max() == 0
    clipped = x < 0.5  # above, counts are cut at 60
    mean = 60.0 * x[clipped]
    scores = (counts[clipped] - mean) / np.sqrt(np.maximum(mean, 1e-9))
    assert abs(scores[mean > 0].mean()) < 4.5 / np.sqrt((mean > 0).sum())
    assert abs((scores[mean > 1] ** 2).mean() - 1) < 4.5 * np.sqrt(3 / (mean > 1).sum())


def test_angles_of_motion_are_uniform():
    angles = drawn("imagenet_c/motion_blur", 4000, 1, (32, 32, 3))["angle"]
    assert stats.kstest(angles, "uniform", (-45, 90)).pvalue > 1e-3


def test_angles_of_snow_are_uniform_and_independent_of_the_noise():
    params = drawn("imagenet_c/snow", 1000, 1, (16, 16, 3))
    angles = params["angle"]
    assert stats.kstest(angles, stats.uniform(-135, 90).cdf).pvalue > 1e-4
    assert abs(np.corrcoef(angles, params["noise"].mean((1, 2)))[0, 1]) < 4 / np.sqrt(1000)


def test_coverage_of_snow():
    """Share of pixels with snow before the blur, per cent, measured on the original at 224."""
    sample = jax.jit(snow.sample, static_argnums=1)
    for severity, expected in enumerate((2.5, 7, 4, 6, 7), 1):
        share = []
        for seed in range(6):
            params = sample(jax.random.key(seed), (224, 224, 3), severity)
            noise = np.asarray(params["noise"], np.float64)
            share.append((reference_flakes(noise, LARGE[severity - 1][2], LARGE[severity - 1][3]) > 0).mean())
        assert abs(100 * np.mean(share) - expected) < 0.5 + 0.15 * expected


# Pixels changed on a dark image, per cent, measured on the original; severities 1 to 5.
@pytest.mark.parametrize(
    ("side", "images", "expected"),
    [
        (224, 8, (3.4, 13.6, 21.4, 12.3, 19.8)),
        (32, 200, (2.7, 6.7, 18.3, 4.0, 6.8)),
        (64, 60, (2.4, 6.4, 18.4, 7.1, 10.3)),
    ],
)
def test_coverage_of_spatter(side, images, expected):
    dark = jnp.full((side, side, 3), 10, jnp.float32) / 255
    keys = jax.random.split(jax.random.key(3), images)
    cover = jax.jit(lambda severity: jax.lax.map(lambda key: spatter(key, dark, severity), keys))
    for severity, per_cent in enumerate(expected, 1):
        changed = np.floor(np.asarray(cover(severity)) * 255 + 1e-3) != 10
        share = 100 * changed.any(-1).mean((1, 2))
        assert abs(share.mean() - per_cent) < 3 * share.std() / np.sqrt(images) + 0.1 * per_cent


@functools.cache
def maps_of_fog(side):
    """Makes (numbers, decay) -> the maps of images with these numbers as seeds."""

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None))
    def drawn(number, decay):
        uniforms = fog.sample(jax.random.key(number), (side, side, 3), 1, table="cifar")["displacements"]
        return diamond_square(uniforms, decay)

    return drawn


# Published maps: mean, standard deviation inside a map, and mean step between neighbours along x (60 maps each).
@pytest.mark.parametrize(
    ("side", "decay", "mean", "std", "step"),
    [
        (256, 2, 0.51, 0.142, 0.0028),
        (256, 1.7, 0.51, 0.154, 0.0035),
        (256, 1.5, 0.51, 0.167, 0.0053),
        (256, 1.4, 0.51, 0.173, 0.0081),
        (32, 3, 0.52, 0.150, 0.021),
        (32, 1.75, 0.52, 0.171, 0.029),
        (64, 3, 0.49, 0.150, 0.010),
        (64, 2, 0.49, 0.164, 0.012),
    ],
)
def test_maps_of_fog_look_as_measured_on_the_original(side, decay, mean, std, step):
    number = 60
    maps = np.asarray(maps_of_fog(side)(jnp.arange(number), jnp.float32(decay)))
    low, high = maps.min((1, 2), keepdims=True), maps.max((1, 2), keepdims=True)
    maps = (maps - low) / (high - low)
    assert abs(maps.mean() - mean) < 4 * 0.096 * np.sqrt(2 / number)
    assert abs(maps.std((1, 2)).mean() / std - 1) < 0.12
    assert abs(np.abs(np.diff(maps, axis=2)).mean() / step - 1) < 0.12


def test_displacements_of_fog_are_uniform():
    values = np.asarray(fog.sample(jax.random.key(1), (32, 32, 3), 1)["displacements"])
    assert stats.kstest(values, stats.uniform(-1, 2).cdf).pvalue > 1e-4
    other = np.asarray(fog.sample(jax.random.key(2), (32, 32, 3), 1)["displacements"])
    assert abs(np.corrcoef(values, other)[0, 1]) < 4 / np.sqrt(values.size)


def test_shifts_of_glass_are_uniform():
    sample = jax.jit(lambda key, severity: glass_blur.sample(key, (96, 96, 3), severity, table="imagenet"))
    for severity, (_, reach, _) in enumerate(blur.GLASS["imagenet"], 1):
        params = sample(jax.random.key(severity), severity)
        shifts = np.asarray(params["shifts"]).reshape(3, 2, -1)
        assert shifts.min() == -reach and shifts.max() == reach - 1
        joint = np.histogram2d(shifts[:, 0].ravel(), shifts[:, 1].ravel(), bins=2 * reach)[0]
        expected = joint.sum() / joint.size
        assert abs(((joint - expected) ** 2 / expected).sum() - (joint.size - 1)) < 5 * np.sqrt(2 * joint.size)


@pytest.mark.parametrize(("table", "side"), [("cifar", 32), ("tiny", 64), ("imagenet", 224)])
def test_warps_have_the_published_distributions(table, side):
    number = 400 if side < 224 else 30
    keys = jax.random.split(jax.random.key(1), number)
    draw = jax.jit(jax.vmap(lambda key, s: elastic_transform.sample(key, (side, side, 3), s), (0, None)))
    for severity, (alpha, sigma, jitter) in enumerate(PIXELS[table], 1):
        params = draw(keys, severity)
        offsets = (np.asarray(params["points"]) - reference_anchors(side, side)) / jitter
        assert stats.kstest(offsets.ravel(), stats.uniform(-1, 2).cdf).pvalue > 1e-3
        assert abs(np.corrcoef(offsets.reshape(number, 6).T) - np.eye(6)).max() < 4.5 / np.sqrt(number)
        if not alpha:
            assert not np.any(params["dx"]) and not np.any(params["dy"])
            continue
        # White noise of variance 1/3, filtered along both axes: covariance (alpha^2 / 3) K (x) K with K = G G^T, hence
        # mean square (alpha tr K / n)^2 / 3, with relative standard error sqrt(2) tr K^2 / (tr K)^2 per field.
        g = ndimage.gaussian_filter1d(np.eye(side), sigma, axis=0, mode="reflect", truncate=3)
        k = g @ g.T
        expected = (alpha * np.trace(k) / side) ** 2 / 3
        error = np.sqrt(2) * np.trace(k @ k) / np.trace(k) ** 2 / np.sqrt(2 * number)
        found = np.mean(np.square([params["dx"], params["dy"]], dtype=np.float64))
        assert abs(found / expected - 1) < 4 * error
        rows = np.corrcoef(np.ravel(params["dx"]), np.ravel(params["dy"]))[0, 1]
        assert abs(rows) < 4 * error


@pytest.mark.parametrize("name", ["defocus_blur", "gaussian_blur", "zoom_blur", "gaussian_noise", "contrast"])
def test_real_severities_lie_between(name):
    image = jnp.asarray(photograph(48, 48) / 255.0, jnp.float32)
    corruption = getattr(imagenet_c, name)
    low, middle, high = (corruption(jax.random.key(0), image, s, interpolate=True) for s in (1, 1.5, 2))
    assert float(jnp.abs(middle - low).mean()) < float(jnp.abs(high - low).mean())
    assert float(jnp.abs(middle - high).mean()) < float(jnp.abs(high - low).mean())


def test_real_severities_round_reach_and_passes():
    sample = jax.jit(lambda severity: glass_blur.sample(KEY, (224, 224, 3), severity, interpolate=True))
    params = sample(2.6)
    assert (int(params["reach"]), int(params["passes"])) == (2, 2)


def test_real_severities_interpolate_the_taps():
    key = jax.random.key(0)
    weights = motion_blur.sample(key, (224, 224, 3), 1.5, interpolate=True)["weights"]
    expected = np.exp(-(np.arange(27) ** 2) / (2 * 4.0**2))  # radius 12.5, standard deviation 4
    np.testing.assert_allclose(weights, np.pad(expected / expected.sum(), (0, 14)), atol=1e-6)


def test_real_severities_take_sizes_between_two_levels():
    image = jnp.asarray(photograph(100, 100), jnp.float32) / 255
    found = jax.jit(lambda x: imagenet_c.pixelate(jax.random.key(0), x, 1.5, table="imagenet", interpolate=True))(image)
    expected = pillow.pixelated(photograph(100, 100), 0.55)
    np.testing.assert_array_equal(np.rint(255 * np.asarray(found)), expected)
