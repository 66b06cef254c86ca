"""Helpers for tests of many corruptions: they compare images by the promises of `corrupt`, compile a corruption, and
compare draws with their distributions.
"""

import contextlib
import functools

import jax
import numpy as np
import pytest
import scipy.stats

import corruptions
from corruptions.core.batch import from_float, to_float
from corruptions.core.errors import Refused

A_THOUSANDTH_OF_A_LEVEL = 1e-3 / 255
SHAPE = (24, 33, 3)


@contextlib.contextmanager
def refused(name, actual, kind=Refused):
    """Expects that the block refuses an argument of this name and value, in one line."""
    with pytest.raises(kind) as refusal:
        yield refusal
    error = refusal.value
    assert (error.name, str(error.actual)) == (name, str(actual)) and "\n" not in str(error), error


def assert_same(found, expected, bound=A_THOUSANDTH_OF_A_LEVEL):
    """Compares results of two batch sizes, pieces, numbers of devices or surrounding programs, by
    the promises of `corrupt`; `bound` is for float32.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    different = np.abs(found.astype(np.float64) - expected)
    said = f"{np.count_nonzero(different)} of {different.size} values differ, by up to {different.max()}"
    if found.dtype == np.uint8:  # as rounding falls on the two sides of a border between levels
        assert different.max() <= 1 and np.count_nonzero(different) <= max(1, different.size / 10_000), said
    else:
        assert np.count_nonzero(different > bound) <= different.size / 1000, said


def as_on(platform, monkeypatch):
    """Has what is traced from now on take its form for `platform`, say "cuda"."""

    def chosen(*arrays, **forms):
        return forms.get(platform, forms["default"])(*arrays)

    monkeypatch.setattr(jax.lax, "platform_dependent", chosen)


@functools.lru_cache(maxsize=60)
def compiled(name, shape, **options):
    """Makes (key, image, severity) -> (params, corrupted image of the same type), one compile for all severities."""
    corruption = corruptions.get(name)

    @jax.jit
    def run(key, image, severity):
        params = corruption.sample(key, shape, severity, **options)
        return params, from_float(corruption.apply(to_float(image), params), image.dtype, corruption.rounding)

    return run


@functools.cache
def drawn(name, number, severity=None, shape=(224, 224, 3), seed=7, **options):
    """Draws the params of `number` images, NumPy arrays with a leading axis; of several severities each in turn."""
    keys = jax.random.split(jax.random.key(seed), number)
    given = () if severity is None else (np.resize(severity, number),)
    sample = jax.jit(jax.vmap(lambda key, *given: dict(corruptions.get(name).sample(key, shape, *given, **options))))
    return jax.tree.map(np.asarray, sample(keys, *given))


def assert_uniform(values, low, high):
    """Kolmogorov-Smirnov; none outside."""
    values = np.ravel(values)
    assert low <= values.min() and values.max() <= high
    assert scipy.stats.kstest(values, scipy.stats.uniform(low, high - low).cdf).pvalue > 1e-4


def assert_whole(values, low, high):
    """Chi-squared test of whole numbers low..high, both ends among them and none outside."""
    values = np.ravel(values)
    assert (values.min(), values.max()) == (low, high)
    assert scipy.stats.chisquare(np.bincount(values - low, minlength=high - low + 1)).pvalue > 1e-4


def assert_frequencies(values, probabilities):
    """Chi-squared test of whole values against {value: probability}."""
    assert set(np.unique(values)) <= set(probabilities)
    counts = np.array([(values == value).sum() for value in probabilities])
    expected = len(values) * np.array(list(probabilities.values()))
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-4


def own_positions(height, width):
    return np.stack(np.mgrid[:height, :width], axis=-1).astype(np.float32)


def assert_looks_where_its_map_says(corruption):
    """Positions shown as colours, corrupted, are the map, but for what is mixed with the black outside
    (the third channel says which).
    """
    own, last = own_positions(*SHAPE[:2]), np.array(SHAPE[:2], np.float32) - 1
    image = np.concatenate([own / last, np.ones((*SHAPE[:2], 1), np.float32)], axis=-1)
    params = corruption.sample(jax.random.key(3), SHAPE, corruptions.severities(corruption)[-1])
    params = {**params, "light": np.float32(0)} if "light" in params else params
    found, where = (np.asarray(x) for x in (corruption.apply(image, params), corruption.coordinates(SHAPE, params)))
    assert where.shape == (*SHAPE[:2], 2) and where.dtype == np.float32
    inside = ((where >= 1) & (where <= last - 1)).all(-1) & (found[..., 2] > 1 - 1e-5)
    assert inside.mean() > 0.2 and np.abs(where - own)[inside].max() > 0.3
    np.testing.assert_allclose((found[..., :2] * last)[inside], where[inside], atol=1e-3)
