"""AugMix: its transforms equal a composition by Pillow and NumPy, and its draws have the stated distributions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from corruptions import augment
from corruptions.augment import operations
from corruptions.core.batch import to_float
from corruptions.primitives import random
from tests.corruptions.augment.drawing import NAMES, augmix, draws
from tests.corruptions.comparing import assert_frequencies, assert_uniform
from tests.reference.photographs import photographs

ALL = range(1, 10)
SQUARE = (224, 224, 3)


def composed(image, params):
    chains = [
        ([NAMES[code] for code in codes], strengths)
        for codes, strengths in zip(params["operation"], params["strength"], strict=True)
    ]
    return augmix(image, np.float64(params["weights"]), np.float64(params["mix"]), chains)


@jax.jit
def loop(images, params):
    """Every image with its own params, one after the other; all subsets are applied alike."""
    return jax.lax.map(lambda args: augment.get("augmix").apply(*args), (images, params))


@pytest.mark.parametrize("name", ["augmix", "augmix_imagenet", "augmix=posterize+shear_y+solarize"])
def test_equals_pillow_and_numpy(name):
    images = photographs(32, 32, 32)
    params = draws(name, 32, seed=3)
    found = np.asarray(loop(to_float(jnp.asarray(images)), params)) * 255.0
    expected = [composed(image, {k: v[i] for k, v in params.items()}) for i, image in enumerate(images)]
    difference = np.abs(found - np.stack(expected))
    # Values one level off after a resampling may be moved further by an operation that follows.
    assert (difference > 1e-3).mean() <= 1e-3, f"{(difference > 1e-3).mean():.2e} differ"


def test_weights_and_mix():
    params = draws("augmix")
    np.testing.assert_allclose(params["weights"].sum(1), 1, atol=1e-6)
    for weight in params["weights"].T:  # the marginal of Dirichlet(1, 1, 1)
        assert scipy.stats.kstest(weight, scipy.stats.beta(1, 2).cdf).pvalue > 1e-4
    covariance = np.cov(params["weights"].T)
    np.testing.assert_allclose(covariance, (np.eye(3) * 3 - 1) / 36, atol=1.5e-3)
    assert_uniform(params["mix"], 0, 1)


@pytest.mark.parametrize("name", ["augmix", "augmix_imagenet"])
def test_lengths_and_operations(name):
    code = draws(name)["operation"]
    present = code != operations.IDENTITY
    assert np.all(present[:, :, :-1] >= present[:, :, 1:]), "the identity only follows a chain"
    lengths = present.sum(-1)
    for length in lengths.T:
        assert_frequencies(length, {k: 1 / 3 for k in (1, 2, 3)})
    for place in np.ndindex(3, 3):
        at = code[(slice(None), *place)]
        assert_frequencies(at[at > 0], {k: 1 / 9 for k in ALL})
    # Neighbouring draws are independent: all pairs of first operations are equally frequent.
    pairs = code[:, 0, 0] * 10 + code[:, 1, 0]
    assert_frequencies(pairs, {10 * i + j: 1 / 81 for i in ALL for j in ALL})


def of(name, params):
    return np.float64(params["strength"][params["operation"] == operations.CODES[name]])


def whole(scale, low, high):
    """P(floor(scale l) = k) for l ~ U(low, high)."""
    edges = {k: np.clip([k / scale, (k + 1) / scale], low, high) for k in range(int(scale * high) + 1)}
    return {k: (b - a) / (high - low) for k, (a, b) in edges.items() if b > a}


def test_strengths_for_cifar():
    params = draws("augmix")
    for name, unit in (("rotate", 3), ("shear_x", 0.03), ("shear_y", 0.03), ("translate_x", 32 / 30)):
        strength = of(name, params) / unit
        assert_uniform(np.abs(strength), 0.1 - 1e-6, 3 + 1e-6)
        assert_frequencies(np.sign(strength), {-1: 0.5, 1: 0.5})
    assert_uniform(np.abs(of("translate_y", params)), 3.2 / 30 - 1e-6, 3.2 + 1e-6)
    assert_frequencies(4 - of("posterize", params), whole(0.4, 0.1, 3))
    assert_frequencies(256 - of("solarize", params), whole(25.6, 0.1, 3))
    for name in ("autocontrast", "equalize"):
        assert not of(name, params).any()


def test_strengths_for_imagenet():
    params = draws("augmix_imagenet", shape=SQUARE)
    assert_frequencies(np.abs(of("rotate", params)), whole(3, 0.1, 1))
    for name in ("translate_x", "translate_y"):
        assert_frequencies(np.abs(of(name, params)), whole(224 / 30, 0.1, 1))
        assert_frequencies(np.sign(of(name, params)[of(name, params) != 0]), {-1: 0.5, 1: 0.5})
    assert_uniform(np.abs(of("shear_x", params)), 0.003 - 1e-7, 0.03 + 1e-7)
    assert np.all(of("posterize", params) == 4)
    assert_frequencies(256 - of("solarize", params), whole(25.6, 0.1, 1))


def test_translations_follow_their_own_axis():
    params = draws("augmix", shape=(30, 90, 3))
    assert 2.9 < np.abs(of("translate_y", params)).max() <= 3 < 8.9 < np.abs(of("translate_x", params)).max() <= 9


def test_options():
    params = draws("augmix", 500, severity=10.0, width=4, depth=2)
    assert params["operation"].shape == params["strength"].shape == (500, 4, 2)
    assert params["weights"].shape == (500, 4)
    assert 28 < np.abs(of("rotate", params)).max() <= 30
    assert of("posterize", params).min() == 1


def test_a_single_chain_has_all_the_weight_where_its_draw_is_0(monkeypatch):
    scheme = augment.get("augmix")
    monkeypatch.setattr(random, "uniform", lambda key, shape: jnp.zeros(shape))
    options = {**dict(scheme.defaults), "width": 1, "depth": 1}
    params = scheme.sampler(jax.random.key(0), (32, 32, 3), scheme.choices, **options)
    assert params["weights"].tolist() == [1]


def test_subset_draws_its_operations_alone():
    params = draws("augmix=rotate+equalize")
    first = params["operation"][:, :, 0].reshape(-1)
    assert_frequencies(first, {operations.CODES["equalize"]: 0.5, operations.CODES["rotate"]: 0.5})


def test_empty_subset_is_the_identity():
    params = draws("augmix=", 32)
    assert not params["operation"].any()
    images = np.random.default_rng(0).uniform(size=(32, 32, 32, 3)).astype(np.float32)
    np.testing.assert_array_equal(loop(images, params), images)


@pytest.mark.parametrize("name", operations.BASE)
def test_operation_alone_has_the_strength_it_has_in_augmix(name):
    alone, mixed = draws(f"op={name}"), draws("augmix")
    assert np.all(alone["operation"] == operations.CODES[name])
    if np.ptp(alone["strength"]) > 0:
        assert scipy.stats.ks_2samp(alone["strength"], of(name, mixed)).pvalue > 1e-4
    else:
        assert np.all(alone["strength"] == of(name, mixed)[0])


def test_loop_batch_and_shared_params_agree():
    images = to_float(jnp.asarray(photographs(32, 32, 32)))
    params = draws("augmix", 32, seed=5)
    at_once = jax.jit(jax.vmap(augment.get("augmix").apply))
    shared = jax.jit(jax.vmap(augment.get("augmix").apply, (0, None)))
    looped = np.asarray(loop(images, params))
    np.testing.assert_allclose(at_once(images, params), looped, atol=2e-7)
    drawn = {k: v[4] for k, v in params.items()}
    np.testing.assert_allclose(shared(images, drawn)[4], looped[4], atol=2e-7)
