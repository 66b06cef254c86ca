"""Many transforms of a scheme at once, as NumPy arrays, and tests of their distributions."""

import dataclasses
import functools

import jax
import numpy as np
import scipy.stats

from corruptions import augment
from corruptions.augment import operations

NAMES = (None, *operations.OPERATIONS)  # indexed by code


@functools.cache
def draws(name, number=20_000, shape=(32, 32, 3), seed=0, **options):
    """Params of `number` transforms, with a leading axis."""
    keys = jax.random.split(jax.random.key(seed), number)
    sampler = _sampler(name.partition("=")[0], shape, tuple(options.items()))
    return {k: np.asarray(v) for k, v in sampler(keys, augment.get(name).choices).items()}


@functools.cache
def _sampler(family, shape, options):
    """One compile for all members of a family: their operations are an argument."""
    member = augment.get(family + "=rotate" if family.startswith("op") else family)

    @jax.jit
    def sample(keys, choices):
        scheme = dataclasses.replace(member, choices=choices)
        return jax.vmap(lambda key: scheme.sample(key, shape, **dict(options)))(keys)

    return sample


def assert_uniform(values, low, high):
    """Kolmogorov-Smirnov; by chance one in 10,000 fails, and the seeds are fixed."""
    assert low <= values.min() and values.max() <= high
    assert scipy.stats.kstest(values, scipy.stats.uniform(low, high - low).cdf).pvalue > 1e-4


def assert_frequencies(values, probabilities):
    """Chi-squared test of whole values against {value: probability}."""
    assert set(np.unique(values)) <= set(probabilities)
    counts = np.array([(values == value).sum() for value in probabilities])
    expected = len(values) * np.array(list(probabilities.values()))
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-4
