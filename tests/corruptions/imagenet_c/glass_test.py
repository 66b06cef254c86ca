import jax
import jax.numpy as jnp
import numpy as np
import pytest

from corruptions.imagenet_c import glass
from tests.corruptions import goldens
from tests.corruptions.elsewhere import as_on
from tests.reference.imagenet_c.glass import TABLES, reference, scrambled
from tests.reference.photographs import photograph

KEY = jax.random.key(0)
copied_from = jax.jit(glass.copied_from)


@pytest.mark.parametrize("shape", [(16, 16), (23, 37), (40, 29)])
@pytest.mark.parametrize("reach", [1, 2, 3, 4, 5])
def test_one_pass_is_the_double_loop(reach, shape):
    rng = np.random.default_rng(reach)
    for _ in range(3):
        shifts = rng.integers(-reach, reach, (2, *shape))
        pixels = rng.integers(0, 256, (*shape, 3), dtype=np.uint8)
        source = np.asarray(copied_from(jnp.asarray(shifts, jnp.int32), reach))
        np.testing.assert_array_equal(pixels.reshape(-1, 3)[source], scrambled(pixels, shifts, reach))


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_long_chains_of_copies(platform, monkeypatch):
    # Every pixel of 60 in a row takes its right neighbour's new value: one value runs through all
    # of them.
    as_on(platform, monkeypatch)
    copied_from = jax.jit(lambda shifts: glass.copied_from(shifts, 2))
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (16, 64, 3), dtype=np.uint8)
    row = np.stack([np.zeros((16, 64), int), np.ones((16, 64), int)])
    for shifts in (row, rng.integers(-2, 2, row.shape)):
        source = np.asarray(copied_from(jnp.asarray(shifts, jnp.int32)))
        np.testing.assert_array_equal(pixels.reshape(-1, 3)[source], scrambled(pixels, shifts, 2))


@pytest.mark.parametrize("table", TABLES)
def test_exact_given_the_draws(table):
    image = photograph(30, 44)
    x = jnp.asarray(image / 255.0, jnp.float32)
    sample = jax.jit(lambda key, severity: glass.glass_blur.sample(key, x.shape, severity, table=table))
    apply = jax.jit(glass.glass_blur.apply)
    for severity, row in enumerate(TABLES[table], 1):
        params = sample(jax.random.key(severity), severity)
        assert (int(params["reach"]), int(params["passes"])) == row[1:]
        found = 255 * np.asarray(apply(x, params), np.float64)
        difference = np.abs(found - reference(image, row, np.asarray(params["shifts"])))
        # A whole number before the first truncation may fall to either side, and is then a level
        # off.
        assert difference.max() < 1.001 and (difference > 2e-3).mean() < 0.02


def test_shifts_are_uniform():
    sample = jax.jit(lambda key, severity: glass.glass_blur.sample(key, (96, 96, 3), severity, table="imagenet"))
    for severity, (_, reach, _) in enumerate(TABLES["imagenet"], 1):
        params = sample(jax.random.key(severity), severity)
        shifts = np.asarray(params["shifts"]).reshape(3, 2, -1)
        assert shifts.min() == -reach and shifts.max() == reach - 1
        joint = np.histogram2d(shifts[:, 0].ravel(), shifts[:, 1].ravel(), bins=2 * reach)[0]
        expected = joint.sum() / joint.size
        assert abs(((joint - expected) ** 2 / expected).sum() - (joint.size - 1)) < 5 * np.sqrt(2 * joint.size)


def test_real_severities_round_reach_and_passes():
    sample = jax.jit(lambda severity: glass.glass_blur.sample(KEY, (224, 224, 3), severity, interpolate=True))
    params = sample(2.6)
    assert (int(params["reach"]), int(params["passes"])) == (2, 2)


@pytest.mark.parametrize("size", [32, 224])
def test_features_match_the_original(shared, size):
    goldens.assert_features(shared, glass.glass_blur, size)


def test_sources_by_need_are_sources():
    """Fewer passes and doublings: the same for each image of a batch, whatever the others need."""
    rng = np.random.default_rng(0)
    shifts = np.stack([rng.integers(-reach, reach, (3, 2, 16, 23)) for reach in (1, 4, 2)])
    shifts[2, 1] = [[[0]], [[1]]]  # each row's pixels hand one value on to the left
    params = {"shifts": jnp.asarray(shifts, jnp.int32), "reach": jnp.array([1, 4, 2]), "passes": jnp.array([1, 2, 3])}
    by_need, expected = jax.jit(jax.vmap(glass.sources_by_need)), jax.jit(jax.vmap(glass.sources))(params)
    np.testing.assert_array_equal(by_need(params), expected)
    for some in ([0, 0, 0], [0, 1, 0]):
        few = jax.tree.map(lambda x, some=some: x[np.array(some)], params)
        np.testing.assert_array_equal(by_need(few), expected[np.array(some)])
