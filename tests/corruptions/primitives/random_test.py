"""Random words and the laws made of them: independent bits, positions and keys, and the stated distributions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from corruptions.primitives import random, special

COUNT = 1 << 18


@functools.cache
def consecutive(draw, count, number=64):
    """Draws of `number` consecutive keys, float64 [number, count]."""
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(7), i))(jnp.arange(number))
    return np.asarray(jax.vmap(lambda key: draw(key, (count,)))(keys))


def correlation(a, b):
    """Correlation of two samples in units of its standard error."""
    return np.corrcoef(a.ravel(), b.ravel())[0, 1] * np.sqrt(a.size)


def test_every_bit_is_balanced_and_independent_of_the_others():
    words = consecutive(random.bits, 1 << 12).ravel()
    assert words.dtype == np.uint32
    bits = (words[:, None] >> np.arange(32, dtype=np.uint32)) & 1
    z = (2.0 * bits - 1).T @ (2.0 * bits - 1) / np.sqrt(words.size)
    z[np.diag_indices(32)] = (2.0 * bits - 1).sum(0) / np.sqrt(words.size)
    assert np.abs(z).max() < 4.7  # 528 standard normal deviates: P < 0.2 % above


def test_flipping_one_bit_of_position_or_key_flips_half_of_the_word():
    key = jax.random.key(3)
    words = np.asarray(random.bits(key, (1 << 16,)))
    for bit in range(16):
        changed = words ^ words[np.arange(words.size) ^ (1 << bit)]
        mean = np.unpackbits(changed.view(np.uint8)).mean()
        assert abs(mean - 0.5) < 5 * 0.5 / np.sqrt(words.size * 32 / 2)
    others = [random.bits(jax.random.key(3 ^ (1 << bit)), (1 << 16,)) for bit in range(16)]
    for other in others:
        mean = np.unpackbits((words ^ np.asarray(other)).view(np.uint8)).mean()
        assert abs(mean - 0.5) < 5 * 0.5 / np.sqrt(words.size * 32)


def test_words_do_not_depend_on_batching_or_shape():
    keys = jax.random.split(jax.random.key(0), 5)
    batch = jax.jit(jax.vmap(lambda key: random.bits(key, (4, 5, 3))))(keys)
    for key, words in zip(keys, batch, strict=True):
        np.testing.assert_array_equal(random.bits(key, (4, 5, 3)), words)
        np.testing.assert_array_equal(random.bits(key, (60,)), words.reshape(60))


def test_other_key_implementations_are_accepted():
    for implementation in ("rbg", "unsafe_rbg"):
        first, second = (random.bits(jax.random.key(seed, impl=implementation), (100,)) for seed in (0, 1))
        assert np.sum(np.asarray(first) == np.asarray(second)) == 0


@pytest.mark.parametrize("lag", [1, 2, 3, 32, 96, 224, 672, 1024])
def test_no_correlation_along_a_stream(lag):
    # Images are rows of 32 or 224 pixels of 3 channels: the lags are its neighbours.
    for draw in (random.uniform, random.normal):
        x = consecutive(draw, 1 << 13)
        assert abs(correlation(x[:, lag:], x[:, :-lag])) < 4.5
        assert abs(correlation(x[:, lag:] ** 2, x[:, :-lag] ** 2)) < 4.5


@pytest.mark.parametrize("lag", [0, 1, 32, 224])
def test_no_correlation_between_consecutive_keys(lag):
    for draw in (random.uniform, random.normal):
        x = consecutive(draw, 1 << 13)
        stop = x.shape[1] - lag
        for step in (1, 2, 8):
            assert abs(correlation(x[step:, lag:], x[:-step, :stop])) < 4.5
            assert abs(correlation(x[step:, lag:] ** 2, x[:-step, :stop] ** 2)) < 4.5


def test_position_means_vary_as_independent_draws_do():
    # The mean over keys at each position: a pattern common to all keys would widen it.
    x = consecutive(random.normal, 1 << 12, number=256)
    assert stats.kstest(x.mean(0) * 16, "norm").pvalue > 1e-3
    assert stats.kstest(x.mean(1) * 64, "norm").pvalue > 1e-3


def test_normal_distribution():
    x = consecutive(random.normal, 1 << 15).ravel().astype(np.float64)
    assert stats.kstest(x, "norm").pvalue > 1e-3
    moments = {1: (0, 1), 2: (1, 2), 3: (0, 15), 4: (3, 96)}  # power: mean and variance of x^power
    for power, (mean, variance) in moments.items():
        assert abs((x**power).mean() - mean) < 4.5 * np.sqrt(variance / x.size)
    for threshold in (3.5, 4.0, 4.5):
        for tail in (x > threshold, x < -threshold):
            expected = x.size * stats.norm.sf(threshold)
            assert abs(tail.sum() - expected) < 4.5 * np.sqrt(expected)


def test_uniform_and_its_range():
    x = np.asarray(random.uniform(jax.random.key(1), (COUNT,)))
    assert x.min() >= 0 and x.max() < 1
    assert stats.kstest(x, "uniform").pvalue > 1e-3
    y = np.asarray(jax.jit(lambda low: random.uniform(jax.random.key(1), (COUNT,), low, 5.0))(-3.0))
    np.testing.assert_allclose(y, -3 + 8 * x, atol=1e-6)


def test_integers_and_bernoulli():
    for low, high in ((-4, 4), (0, 3), (-1, 1), (0, 256)):
        x = np.asarray(jax.jit(lambda a, b: random.integers(jax.random.key(2), (COUNT,), a, b))(low, high))
        counts = np.bincount(x - low, minlength=high - low)
        assert x.dtype == np.int32 and counts.size == high - low
        assert stats.chisquare(counts).pvalue > 1e-3
    for p in (0.0, 0.01, 0.27, 1.0):
        hits = int(np.sum(random.bernoulli(jax.random.key(3), p, (COUNT,))))
        assert abs(hits - p * COUNT) <= 4.5 * np.sqrt(p * (1 - p) * COUNT)


def test_normal_quantile():
    p = np.concatenate([np.linspace(1e-4, 1 - 1e-4, 10001), 2.0 ** -np.arange(2, 25)]).astype(np.float32)
    np.testing.assert_allclose(special.normal_quantile(p), stats.norm.ppf(p.astype(np.float64)), atol=2e-6)


@pytest.mark.parametrize("low, high", [(0, 1e-3), (0, 0.1), (0.1, 1), (1, 4), (4, 20), (20, 60), (60, 500)])
def test_poisson_quantile_is_scipys(low, high):
    rng = np.random.default_rng(0)
    size = 100_000
    mean = rng.uniform(low, high, size).astype(np.float32)
    # Half of the uniforms plain, the others deep in the tails; all multiples of 2^-24 as drawn.
    deep = 2.0 ** -rng.uniform(0, 23, size // 4)
    uniform = np.concatenate([rng.uniform(0, 1, size // 2), deep, 1 - deep])
    uniform = np.clip(np.round(uniform * 2**24) / 2**24, 2.0**-24, 1 - 2.0**-24).astype(np.float32)
    expected = stats.poisson.ppf(uniform.astype(np.float64), mean.astype(np.float64))
    wrong = np.asarray(jax.jit(special.poisson_quantile)(uniform, mean)) != expected
    assert wrong[: size // 2].mean() <= 1e-4
    # Where steps of the distribution function are as fine as the uniforms, float32 cannot tell their side.
    decided = np.abs(stats.poisson.cdf(expected, mean) - uniform) > 2.0**-22
    decided &= np.abs(stats.poisson.cdf(expected - 1, mean) - uniform) > 2.0**-22
    assert wrong[decided].mean() <= 1e-4


def test_poisson_moments_and_zero():
    uniform = random.uniform(jax.random.key(5), (COUNT,))
    for mean in (0.0, 0.02, 0.7, 4.5, 33.0, 444.0):
        x = np.asarray(special.poisson_quantile(uniform, jnp.full((COUNT,), mean)), np.float64)
        assert abs(x.mean() - mean) <= 4.5 * np.sqrt(mean / COUNT)
        assert abs(x.var() - mean) <= 4.5 * np.sqrt((mean + 2 * mean**2) / COUNT)
    np.testing.assert_array_equal(special.poisson_quantile(jnp.zeros(3), jnp.array([0.0, 30.0, 500.0])), 0)
