"""Benchmarks of n categories and k corruptions against a loop, and the published categories."""

import numpy as np
import pytest

from analysis.natural_shift import benchmarks, resampling
from analysis.overlap import overlap_matrix
from analysis.selection.categories import categories
from tests.analysis import published

CLUSTERS = (("a", "b", "c"), ("d", "e", "f", "g"))
NAMES = "abcdefg"


@pytest.fixture
def drops():
    rng = np.random.default_rng(0)
    kinds = rng.normal(size=(2, 30))
    synthetic = {name: kinds[int(name > "c")] + 0.5 * rng.normal(size=30) for name in NAMES}
    natural = {"imagenet_r": kinds.sum(axis=0) + 0.3 * rng.normal(size=30), "imagenet_v2": rng.normal(size=30)}
    return synthetic, natural


def test_the_published_categories_follow_from_the_published_errors():
    accuracy = published.accuracies(published.TABLE7, published.ALEXNET_S4, published.IMAGENET_C)
    found = overlap_matrix(accuracy, names=published.IMAGENET_C)
    assert categories(found.overlap, published.IMAGENET_C).clusters == benchmarks.IMAGENET_C_CATEGORIES


def test_categories_are_known_of_imagenet_c_alone():
    members = [f"imagenet_c/{name}" for name in published.IMAGENET_C]
    assert sorted(sum(benchmarks.categories_of(members), ())) == sorted(members)
    with pytest.raises(ValueError, match=r"15 corruptions of ImageNet-C.*found 14 others"):
        benchmarks.categories_of(members[1:])


def test_r_is_averaged_over_the_benchmarks_of_a_bin(drops):
    synthetic, natural = drops
    bins, _ = benchmarks.compare_benchmarks(*drops, CLUSTERS, resampling.draw(30, 10), fewest=1)
    of = {(row.categories, row.per_category, row.spread): row for row in bins}
    assert list(of) == [
        (1, 1, 0.0), (1, 2, 0.0), (1, 3, 0.0), (1, 4, 0.0), (2, 1, 0.0), (2, 2, 0.0), (2, 2, 1.0), (2, 3, 0.0), (2, 3, 1.0)
    ]  # fmt: skip
    assert of[2, 1, 0.0].benchmarks == 12 and of[2, 3, 1.0].size == 6
    pairs = [(a, b) for a in CLUSTERS[0] for b in CLUSTERS[1]]
    for shift, drop in natural.items():
        r = [np.corrcoef(synthetic[a] + synthetic[b], drop)[0, 1] for a, b in pairs]
        assert of[2, 1, 0.0].correlation[shift].value == pytest.approx(np.mean(r))
    lopsided = of[2, 3, 1.0]  # two of a, b, c and all of the others
    r = [np.corrcoef(sum(synthetic[n] for n in NAMES if n != out), natural["imagenet_r"])[0, 1] for out in "abc"]
    assert lopsided.benchmarks == 3 and lopsided.correlation["imagenet_r"].value == pytest.approx(np.mean(r))
    means = [estimate.value for estimate in lopsided.correlation.values()]
    assert lopsided.mean.value == pytest.approx(np.mean(means)) and lopsided.mean.low < lopsided.mean.value


def test_more_categories_predict_a_shift_of_both_kinds_better(drops):
    synthetic, natural = drops
    only = {"imagenet_r": natural["imagenet_r"]}
    bins, effects = benchmarks.compare_benchmarks(synthetic, only, CLUSTERS, resampling.draw(30, 100), fewest=1)
    rows = np.array([(1, b.categories, b.size, b.spread) for b in bins])
    expected = np.linalg.lstsq(rows, [b.mean.value for b in bins], rcond=None)[0]
    assert [effects.categories.value, effects.size.value, effects.spread.value] == pytest.approx(expected[1:])
    assert effects.categories.low > 0


def test_too_few_bins_tell_no_effects(drops):
    bins, effects = benchmarks.compare_benchmarks(*drops, (tuple("abc"),), resampling.draw(30, 5))
    assert len(bins) == 3 and np.isnan(effects.categories.value)


def test_leaders_are_ordered_and_counted(drops):
    synthetic, natural = drops
    synthetic = {**synthetic, "z": natural["imagenet_r"]}
    found = benchmarks.leaders(synthetic, {"imagenet_r": natural["imagenet_r"]}, resampling.draw(30, 50))
    assert found[0].corruption == "z" and found[0].mean.value == pytest.approx(1) and found[0].first == 1
    expected = [np.corrcoef(synthetic[row.corruption], natural["imagenet_r"])[0, 1] for row in found]
    assert [row.mean.value for row in found] == pytest.approx(expected) == sorted(expected, reverse=True)
