import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import corruptions.batch
from corruptions.imagenet_c import noise
from tests.corruptions import goldens
from tests.corruptions.photographs import photograph

TABLES = {
    "gaussian_noise": {
        "cifar": (0.04, 0.06, 0.08, 0.09, 0.10),
        "tiny": (0.04, 0.08, 0.12, 0.15, 0.18),
        "imagenet": (0.08, 0.12, 0.18, 0.26, 0.38),
        "inception": (0.09, 0.13, 0.19, 0.27, 0.40),
    },
    "speckle_noise": {
        "cifar": (0.06, 0.1, 0.12, 0.16, 0.2),
        "tiny": (0.15, 0.2, 0.25, 0.3, 0.35),
        "imagenet": (0.15, 0.2, 0.35, 0.45, 0.6),
        "inception": (0.16, 0.21, 0.36, 0.46, 0.61),
    },
    "shot_noise": {
        "cifar": (500, 250, 100, 75, 50),
        "tiny": (250, 100, 50, 30, 15),
        "imagenet": (60, 25, 12, 5, 3),
        "inception": (50, 20, 10, 5, 3),
    },
    "impulse_noise": {
        "cifar": (0.01, 0.02, 0.03, 0.05, 0.07),
        "tiny": (0.01, 0.02, 0.05, 0.08, 0.14),
        "imagenet": (0.03, 0.06, 0.09, 0.17, 0.27),
        "inception": (0.04, 0.07, 0.10, 0.18, 0.28),
    },
}
CASES = [(name, table) for name, tables in TABLES.items() for table in tables]
SHAPE = (96, 80, 3)
KEY = jax.random.key(11)


def sampler(name, table):
    """Jitted severity -> params: one compile for all severities."""
    corruption = getattr(noise, name)
    return jax.jit(lambda key, severity: corruption.sample(key, SHAPE, severity, table=table))


@pytest.mark.parametrize("name, table", CASES)
def test_draws_have_the_published_distribution(name, table):
    draw = sampler(name, table)
    for severity, parameter in enumerate(TABLES[name][table], 1):
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


def reference(name, x, params):
    """Float64 levels before truncation, from the drawn parameters."""
    p = {k: np.asarray(v) for k, v in params.items()}
    if name == "gaussian_noise":
        y = x + p["noise"]
    elif name == "speckle_noise":
        y = x + x * p["noise"]
    elif name == "shot_noise":
        c = float(p["photons"])
        y = np.maximum(stats.poisson.ppf(p["uniform"].astype(np.float64), c * x), 0) / c
    else:
        y = np.where(p["flip"], np.where(p["salt"], 1.0, 0.0), x)
    return 255 * np.clip(y, 0, 1)


@pytest.mark.parametrize("name", TABLES)
def test_exact_given_the_draws(name):
    image = photograph(*SHAPE[:2])
    image[:4], image[4:8] = 0, 255
    x = image / 255.0
    corruption, draw = getattr(noise, name), sampler(name, "imagenet")
    apply = jax.jit(corruption.apply)
    for severity in range(1, 6):
        params = draw(KEY, severity)
        found = 255 * np.asarray(apply(jnp.asarray(x, jnp.float32), params), np.float64)
        difference = np.abs(found - reference(name, x, params))
        assert (difference > 2e-3).mean() <= (1e-4 if name == "shot_noise" else 0)
        # A count of photons at the border of two, 1 in 100 000, is a whole photon off.
        assert difference.max() < (256 / TABLES[name]["imagenet"][severity - 1] if name == "shot_noise" else 2e-3)


def test_shot_noise_counts_are_poisson_for_any_float_image():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, SHAPE).astype(np.float32)
    x[:8] = 0
    params = noise.shot_noise.sample(KEY, SHAPE, 1, table="imagenet")
    counts = np.asarray(jax.jit(noise.shot_noise.apply)(x, params), np.float64) * 60
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-4)
    assert counts[:8].max() == 0
    clipped = x < 0.5  # above, counts are cut at 60
    mean = 60.0 * x[clipped]
    scores = (counts[clipped] - mean) / np.sqrt(np.maximum(mean, 1e-9))
    assert abs(scores[mean > 0].mean()) < 4.5 / np.sqrt((mean > 0).sum())
    assert abs((scores[mean > 1] ** 2).mean() - 1) < 4.5 * np.sqrt(3 / (mean > 1).sum())


def test_severities_share_a_compile_and_interpolate():
    images = photograph(*SHAPE[:2])[None]
    found = [
        np.asarray(corruptions.batch.corrupt(KEY, images, noise.gaussian_noise, s, interpolate=True), np.float64)
        for s in (2, 2.5, 3)
    ]
    deviations = [np.std(f - images) for f in found]
    assert deviations[0] < deviations[1] < deviations[2]


@pytest.mark.parametrize("size", [32, 224])
@pytest.mark.parametrize("name", TABLES)
def test_features_match_the_original(shared, name, size):
    goldens.assert_features(shared, getattr(noise, name), size)
