import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import corruptions.batch
from corruptions.imagenet_c import noise
from tests.corruptions import goldens
from tests.reference.imagenet_c.noise import TABLES, reference
from tests.reference.photographs import photograph

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
