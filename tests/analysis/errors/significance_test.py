"""Differences between models on the same images, and the tables they are printed in."""

import numpy as np
import pytest
from scipy import stats

from analysis.errors import scores, significance


def values(*images):
    return [scores.of_images(np.asarray(one, float)) for one in images]


def test_a_difference_is_a_paired_t_test():
    rng = np.random.default_rng(0)
    first = rng.normal(size=50)
    second = first + rng.normal(0.1, 0.3, 50)
    found = significance.paired(values(first), values(second))
    known = stats.ttest_rel(first, second)
    assert found.p == pytest.approx(known.pvalue) and found.value / found.se == pytest.approx(known.statistic)
    assert significance.paired([scores.Value(1, 0.1)], values(second)) is None
    assert significance.paired(values(first), values(first)).p == 1


def test_seeds_add_their_spread():
    rng = np.random.default_rng(1)
    images = rng.normal(size=(2, 3, 200)) + np.array([0, 0.5, 1.0])[:, None]
    found = significance.paired(values(*images[0]), values(*images[1]))
    between = sum(np.var(images[k].mean(1), ddof=1) / 3 for k in (0, 1))
    within = np.var(images[0].mean(0) - images[1].mean(0), ddof=1) / 200
    assert found.se == pytest.approx((between + within) ** 0.5)
    fixed = significance.paired(values(images[0].mean(0)), values(images[1].mean(0)))
    assert found.p > fixed.p


def test_holm_is_the_published_procedure():
    assert significance.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert significance.holm([0.5, 0.9]) == [1.0, 1.0] and significance.holm([]) == []


def test_the_best_is_clear_only_against_every_other():
    rng = np.random.default_rng(2)
    base = rng.normal(size=300)
    a, b, c = base, base + 0.5 + rng.normal(0, 0.1, 300), base + 1 + rng.normal(0, 0.1, 300)
    assert significance.clearly_best({"b": values(b), "a": values(a), "c": values(c)}) == "a"
    near = base + rng.normal(0, 0.1, 300)
    assert significance.clearly_best({"a": values(a), "near": values(near), "c": values(c)}) is None
    assert significance.clearly_best({"a": values(a)}) is None
    assert significance.clearly_best({"a": values(a), "b": [scores.Value(2, 0.1)]}) is None
