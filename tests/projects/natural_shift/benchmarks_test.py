"""Benchmarks of n categories and k corruptions against a loop, and the published categories."""

import numpy as np
import pytest

from analysis.overlap import overlap_matrix
from analysis.selection.nk_benchmarks import categories
from projects.natural_shift import benchmarks
from projects.natural_shift.prediction import draw
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
    members = [f"imagenet_c/{name}" for name in published.IMAGENET_C]
    assert sorted(sum(benchmarks.categories_of(members), ())) == sorted(members)
    with pytest.raises(ValueError, match=r"15 corruptions of ImageNet-C.*found 14 others"):
        benchmarks.categories_of(members[1:])


def test_r_is_averaged_over_the_benchmarks_of_a_bin(drops):
    synthetic, natural = drops
    bins, _ = benchmarks.compare_benchmarks(*drops, CLUSTERS, draw(30, 10), fewest=1)
    of = bins.set_index(["categories", "per_category", "spread", "shift"])
    assert list(of.index.droplevel("shift").unique()) == [
        (1, 1, 0.0), (1, 2, 0.0), (1, 3, 0.0), (1, 4, 0.0), (2, 1, 0.0), (2, 2, 0.0), (2, 2, 1.0), (2, 3, 0.0), (2, 3, 1.0)
    ]  # fmt: skip
    assert (of.benchmarks[2, 1, 0.0] == 12).all() and (of["size"][2, 3, 1.0] == 6).all()
    pairs = [(a, b) for a in CLUSTERS[0] for b in CLUSTERS[1]]
    for shift, drop in natural.items():
        r = [np.corrcoef(synthetic[a] + synthetic[b], drop)[0, 1] for a, b in pairs]
        assert of.value[2, 1, 0.0, shift] == pytest.approx(np.mean(r))
    lopsided = of.loc[2, 3, 1.0]  # two of a, b, c and all of the others
    r = [np.corrcoef(sum(synthetic[n] for n in NAMES if n != out), natural["imagenet_r"])[0, 1] for out in "abc"]
    assert (lopsided.benchmarks == 3).all() and lopsided.value["imagenet_r"] == pytest.approx(np.mean(r))
    assert lopsided.value["mean"] == pytest.approx(lopsided.value[list(natural)].mean())
    assert lopsided.low["mean"] < lopsided.value["mean"]


def test_more_categories_predict_a_shift_of_both_kinds_better(drops):
    synthetic, natural = drops
    only = {"imagenet_r": natural["imagenet_r"]}
    bins, effects = benchmarks.compare_benchmarks(synthetic, only, CLUSTERS, draw(30, 100), fewest=1)
    means = bins[bins["shift"] == "mean"]
    rows = np.column_stack([np.ones(len(means)), means[["categories", "size", "spread"]]])
    expected = np.linalg.lstsq(rows, means.value, rcond=None)[0]
    assert effects.effect.tolist() == ["categories", "size", "spread"]
    assert effects.value.tolist() == pytest.approx(expected[1:]) and effects.low[0] > 0


def test_too_few_bins_tell_no_effects(drops):
    bins, effects = benchmarks.compare_benchmarks(*drops, (tuple("abc"),), draw(30, 5))
    assert (bins["shift"] == "mean").sum() == 3 and effects.value.isna().all()


def test_leaders_are_ordered_and_counted(drops):
    synthetic, natural = drops
    synthetic = {**synthetic, "z": natural["imagenet_r"]}
    found = benchmarks.leaders(synthetic, {"imagenet_r": natural["imagenet_r"]}, draw(30, 50))
    assert found.iloc[0][["corruption", "first"]].tolist() == ["z", 1] and found.value[0] == pytest.approx(1)
    expected = [np.corrcoef(synthetic[name], natural["imagenet_r"])[0, 1] for name in found.corruption]
    assert found.value.tolist() == pytest.approx(expected) == sorted(expected, reverse=True)
