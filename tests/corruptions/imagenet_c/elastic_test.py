import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage, stats

import corruptions
from corruptions.imagenet_c import elastic
from tests.corruptions import goldens
from tests.corruptions.elsewhere import as_on
from tests.reference.imagenet_c.elastic import reference, reference_anchors, reference_coordinates
from tests.reference.photographs import photograph

# alpha, sigma, affine jitter in pixels, severities 1..5.
PIXELS = {
    "cifar": [(0, 0, 2.56), (1.6, 6.4, 2.24), (2.56, 1.92, 1.92), (3.2, 1.28, 1.6), (3.2, 0.96, 0.96)],
    "tiny": [(0, 0, 5.12), (3.2, 19.2, 3.84), (6.4, 5.12, 3.84), (6.4, 1.92, 1.92), (10.24, 1.92, 1.28)],
    "imagenet": [(488, 170.8, 24.4), (488, 19.52, 48.8), (12.2, 2.44, 4.88), (17.08, 2.44, 4.88), (29.28, 2.44, 4.88)],
    "inception": [(720, 252, 36), (720, 28.8, 72), (18, 3.6, 7.2), (25.2, 3.6, 7.2), (43.2, 3.6, 7.2)],
}

# Jitted: step by step, the many small operations would each be compiled.
sample = jax.jit(elastic.elastic_transform.sample, static_argnums=1, static_argnames="table")
apply = jax.jit(elastic.elastic_transform.apply)


@pytest.mark.parametrize("shape", [(32, 32), (64, 50), (48, 97), (224, 224)])
def test_affine_coordinates_are_those_of_the_fixed_point_warp(shape):
    rng = np.random.default_rng(0)
    coordinates = jax.jit(elastic.affine_coordinates, static_argnums=1)
    wrong = total = 0
    for jitter in (0.02, 0.1, 0.2):
        for _ in range(10):
            points = reference_anchors(*shape) + rng.uniform(-jitter, jitter, (3, 2)) * min(shape)
            points = points.astype(np.float32)
            for found, expected in zip(coordinates(points, shape), reference_coordinates(points, *shape), strict=True):
                difference = np.abs(np.asarray(found) - expected)
                assert difference.max() <= 1
                wrong, total = wrong + np.count_nonzero(difference), total + difference.size
    assert wrong <= 2e-5 * total


def test_coordinates_stay_finite_where_the_points_are_on_a_line():
    points = np.array([[10, 10], [20, 20], [30, 30]], np.float32)
    image = jnp.ones((32, 32, 3))
    zero = jnp.zeros((32, 32))
    found = apply(image, {"points": points, "dx": zero, "dy": zero})
    np.testing.assert_array_equal(found, image)


@pytest.mark.parametrize(
    ("shape", "table", "severity"),
    [
        ((32, 32), "cifar", 1),
        ((32, 32), "cifar", 4),
        ((64, 48), "tiny", 3),
        ((60, 90), "imagenet", 2),
        ((100, 75), "imagenet", 5),
    ],
)
def test_equals_the_definition_given_the_draws(shape, table, severity):
    image = photograph(*shape, severity)
    x = image.astype(np.float32) / np.float32(255)
    params = sample(jax.random.key(severity), (*shape, 3), severity, table=table)
    found = 255 * np.asarray(apply(x, params), np.float64)
    expected = reference(image, *(np.asarray(params[name], np.float64) for name in ("points", "dx", "dy")))
    close = np.abs(found - expected) < 2e-3
    # The few others read a position 1/32 px away, see the test of the coordinates.
    assert np.mean(close) > 0.9995
    assert np.abs(np.floor(found) - np.floor(expected)).max() <= 2


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_others_see_the_same_without_a_loop(platform, monkeypatch):
    image = photograph(32, 32, 4).astype(np.float32) / 255
    params = sample(jax.random.key(4), image.shape, 4, table="cifar")
    traced = jax.jit(elastic.elastic_transform.apply).trace(image, params)
    assert "stablehlo.while" not in traced.lower(lowering_platforms=(platform,)).as_text()
    expected = apply(image, params)
    as_on(platform, monkeypatch)
    drawn = jax.jit(lambda: elastic.elastic_transform.sample(jax.random.key(4), image.shape, 4, table="cifar"))()
    for name, values in params.items():
        np.testing.assert_allclose(drawn[name], values, rtol=0, atol=1e-5, err_msg=name)  # pixels
    found = jax.jit(lambda image, params: elastic.elastic_transform.apply(image, params))(image, params)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_batches_have_gradients():
    def brightness(images):
        return corruptions.corrupt(jax.random.key(0), images, "imagenet_c/elastic_transform", 3).sum()

    images = jax.ShapeDtypeStruct((2, 32, 32, 3), jnp.float32)
    assert jax.eval_shape(jax.grad(brightness), images).shape == images.shape


@pytest.mark.parametrize("table", PIXELS)
def test_fields_are_smoothed_noise(table):
    height, width = 41, 56
    noise = np.random.default_rng(0).uniform(-1, 1, (height, width)).astype(np.float32)
    radii = [int(3 * sigma + 0.5) for _, sigma, _ in PIXELS[table]]
    smooth = jax.jit(
        lambda u, alpha, sigma: elastic.smooth_fields([u], u.shape, alpha, sigma, max(radii), radii[-1])[0]
    )
    for alpha, sigma, _ in PIXELS[table]:
        expected = np.zeros((height, width))
        if alpha:
            expected = alpha * ndimage.gaussian_filter(noise.astype(np.float64), sigma, mode="reflect", truncate=3)
        np.testing.assert_allclose(smooth(noise, alpha, sigma), expected, atol=2e-6 * max(alpha, 1))


@pytest.mark.parametrize(("table", "side"), [("cifar", 32), ("tiny", 64), ("imagenet", 224)])
def test_draws_have_the_published_distributions(table, side):
    number = 400 if side < 224 else 30
    keys = jax.random.split(jax.random.key(1), number)
    draw = jax.jit(jax.vmap(lambda key, s: elastic.elastic_transform.sample(key, (side, side, 3), s), (0, None)))
    for severity, (alpha, sigma, jitter) in enumerate(PIXELS[table], 1):
        params = draw(keys, severity)
        offsets = (np.asarray(params["points"]) - reference_anchors(side, side)) / jitter
        assert stats.kstest(offsets.ravel(), stats.uniform(-1, 2).cdf).pvalue > 1e-3
        assert abs(np.corrcoef(offsets.reshape(number, 6).T) - np.eye(6)).max() < 4.5 / np.sqrt(number)
        if not alpha:
            assert not np.any(params["dx"]) and not np.any(params["dy"])
            continue
        # White noise of variance 1/3, filtered along both axes: covariance (alpha^2 / 3) K (x) K
        # with K = G G^T, hence mean square (alpha tr K / n)^2 / 3, with relative standard error
        # sqrt(2) tr K^2 / (tr K)^2 per field.
        g = ndimage.gaussian_filter1d(np.eye(side), sigma, axis=0, mode="reflect", truncate=3)
        k = g @ g.T
        expected = (alpha * np.trace(k) / side) ** 2 / 3
        error = np.sqrt(2) * np.trace(k @ k) / np.trace(k) ** 2 / np.sqrt(2 * number)
        found = np.mean(np.square([params["dx"], params["dy"]], dtype=np.float64))
        assert abs(found / expected - 1) < 4 * error
        rows = np.corrcoef(np.ravel(params["dx"]), np.ravel(params["dy"]))[0, 1]
        assert abs(rows) < 4 * error


@pytest.mark.parametrize("size", [32, 224])
def test_features_match_the_original(shared, size):
    goldens.assert_features(shared, elastic.elastic_transform, size)
