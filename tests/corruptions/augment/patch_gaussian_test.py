"""Patch Gaussian: geometry of the patch, moments of the noise, and one field per transform."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from corruptions import augment
from tests.corruptions.augment.drawing import assert_frequencies, assert_uniform, draws

SCHEME = augment.get("patch_gaussian")
apply = jax.jit(SCHEME.apply)
GREY = jnp.full((32, 32, 3), 0.5, jnp.float32)


def params(**changes):
    base = {"row": 10, "column": 20, "width": np.float32(25), "sigma": np.float32(0.1), "seed": np.uint32([1, 2])}
    return base | changes


def noisy(row, column, width, shape=(32, 32)):
    """Finds the pixels of the image that change."""
    found = apply(jnp.full((*shape, 3), 0.5, jnp.float32), params(row=row, column=column, width=np.float32(width)))
    return np.asarray(found != 0.5).any(-1)


@pytest.mark.parametrize(
    ("row", "column", "width"),
    [(16, 16, 25), (0, 31, 25), (3, 30, 25), (12, 9, 4), (12, 9, 4.2), (8, 8, 0.4), (1, 1, 99)],
)
def test_patch_covers_the_stated_rows_and_columns(row, column, width):
    inside = np.zeros((32, 32), bool)
    before, after = int(np.floor(width / 2)), int(np.ceil(width / 2))
    inside[max(0, row - before) : row + after, max(0, column - before) : column + after] = True
    np.testing.assert_array_equal(noisy(row, column, width), inside)


def test_noise_is_normal_with_the_drawn_sigma():
    seeds = jax.random.bits(jax.random.key(0), (200, 2), jnp.uint32)
    fields = jax.jit(jax.vmap(lambda seed: SCHEME.apply(GREY, params(seed=seed, width=jnp.float32(99)))))(seeds)
    standard = (np.asarray(fields, np.float64) - 0.5) / 0.1
    assert scipy.stats.kstest(standard[0].reshape(-1), "norm").pvalue > 1e-4
    inner = standard[np.abs(standard) < 4.9]  # the clip to [0, 1] lies at 5
    assert abs(inner.mean()) < 4 / np.sqrt(inner.size) and abs(inner.std() - 1) < 3e-3
    flat = standard.reshape(200, -1)
    correlations = [
        np.mean(flat[:, :-1] * flat[:, 1:]),
        np.mean(flat[:-1] * flat[1:]),
        np.mean(standard[..., 0] * standard[..., 1]),
    ]
    assert np.abs(correlations).max() < 0.01


def test_result_is_clipped_and_not_rounded():
    found = np.asarray(apply(jnp.ones((32, 32, 3), jnp.float32), params(sigma=np.float32(1.0), width=np.float32(99))))
    assert found.min() == 0.0 and found.max() == 1.0
    between = found[(found > 0) & (found < 1)] * 255
    assert (np.abs(between - np.round(between)) > 1e-3).mean() > 0.9


def test_one_transform_shows_one_field_to_all_images():
    images = jnp.linspace(0.3, 0.6, 4)[:, None, None, None] * jnp.ones((4, 32, 32, 3), jnp.float32)
    found = jax.jit(jax.vmap(SCHEME.apply, (0, None)))(images, params(sigma=np.float32(0.04)))
    fields = np.asarray(found - images)
    np.testing.assert_allclose(fields, np.broadcast_to(fields[:1], fields.shape), atol=1e-6)
    other = apply(images[0], params(sigma=np.float32(0.04), seed=np.uint32([1, 3])))
    assert np.abs(np.asarray(other) - np.asarray(found[0])).max() > 0.01


def test_draws_for_cifar():
    drawn = draws("patch_gaussian")
    assert np.all(drawn["width"] == 25)
    assert_uniform(drawn["sigma"], 0, 1)
    for place in ("row", "column"):
        assert_frequencies(drawn[place], {k: 1 / 32 for k in range(32)})
    assert len(np.unique(drawn["seed"], axis=0)) == len(drawn["seed"])
    assert abs(np.corrcoef(drawn["row"], drawn["column"])[0, 1]) < 0.03


def test_draws_for_imagenet():
    drawn = draws("patch_gaussian_imagenet", shape=(224, 224, 3))
    assert_uniform(drawn["width"], 0, 250)
    assert_uniform(drawn["sigma"], 0, 1)
    assert abs(np.corrcoef(drawn["width"], drawn["sigma"])[0, 1]) < 0.03
    assert (drawn["row"].max(), drawn["column"].min()) == (223, 0)


def test_width_scales_with_the_image_unless_given():
    assert np.all(draws("patch_gaussian", 4, shape=(64, 96, 3))["width"] == 50)
    assert np.all(draws("patch_gaussian", 4, shape=(64, 96, 3), width=9.0)["width"] == 9)
    assert draws("patch_gaussian", 2000, sigma=0.3)["sigma"].max() <= 0.3
    with pytest.raises(ValueError, match=r"positive sigma, found -1\.0"):
        draws("patch_gaussian", 4, sigma=-1.0)
    with pytest.raises(ValueError, match="table among cifar, imagenet, found 'svhn'"):
        draws("patch_gaussian", 4, table="svhn")
