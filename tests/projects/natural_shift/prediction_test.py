"""Effective robustness, drops and partial correlations on tables whose answers are known."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from analysis import correlation
from analysis.correlation import draw
from analysis.frames import CLEAN
from analysis.selection.nk_benchmarks import categories
from projects.natural_shift import benchmarks, prediction
from projects.natural_shift.prediction import p_value
from tests.analysis import published
from tests.analysis.matrices import imagenet_c
from tests.projects.natural_shift.tables import changed, made_up, sigmoid
from tests.refusing import refuses


@pytest.fixture
def table():
    return made_up()


def predict(table, resamples=20):
    shifts, members = table.shifts(), table.members()
    complete = table.complete(shifts, members)
    weights = draw(len(complete), resamples)
    rows = prediction.predict(table, {"mean": table.mean(members)}, shifts, complete, weights, weights[:, complete])
    assert set(rows.benchmark) == {"mean"}
    return rows.set_index(["shift", "measure"])


def test_logits_have_no_ends():
    assert prediction.logit([50, 80]) == pytest.approx([0, np.log(4)])
    assert np.isnan(prediction.logit([0, 100, np.nan])).all()
    np.testing.assert_allclose(prediction.logit([0, 100], floor=0.01), [np.log(0.01 / 99.99), np.log(99.99 / 0.01)])


def test_effective_robustness_exceeds_the_line_of_standard_models(table):
    accuracy, clean = table.shift("imagenet_r")
    robustness, (line,) = prediction.effective_robustness(accuracy, clean, table.standard, np.ones((1, 24)))
    assert (line["slope"], line["intercept"], line["r2"]) == pytest.approx((0.6, -2, 1))
    assert (line["models"], line["dropped"], line["part"]) == (12, 0, "")
    on_line = sigmoid(0.6 * prediction.logit(clean) - 2)
    np.testing.assert_allclose(robustness[0], accuracy - on_line, atol=1e-9)
    np.testing.assert_allclose(robustness[0, :12], 0, atol=1e-9)
    accuracy = np.where(np.arange(24) == 2, 0, accuracy)
    _, (line,) = prediction.effective_robustness(accuracy, clean, table.standard, np.ones((1, 24)))
    assert (line["slope"], line["models"], line["dropped"]) == (pytest.approx(0.6), 11, 1)  # without accuracies of 0


def test_imagenet_a_has_two_lines_about_the_model_it_was_filtered_with():
    x = np.linspace(-1, 3, 21)  # the model in the middle has 0
    y = np.where(x < x[10], 0.2 * x - 4, 2.5 * x - 8)
    accuracy = np.where(np.arange(21) == 10, 0, sigmoid(y))
    standard = np.ones(21, bool)
    both = {f"natural__{name}": accuracy for name in ("imagenet_a", "imagenet_r")}
    clean = {f"clean__{name}": sigmoid(x) for name in ("imagenet_a", "imagenet_r")}
    table = dataclasses.replace(changed(made_up(21), **both, **clean), standard=standard)
    lines = prediction.lines(table, ["imagenet_a", "imagenet_r"]).set_index(["shift", "part"])
    assert list(lines.index) == [("imagenet_a", "below"), ("imagenet_a", "above"), ("imagenet_r", "")]
    expected = [[10, 0.2, -4], [10, 2.5, -8]]
    np.testing.assert_allclose(lines.loc["imagenet_a", ["models", "slope", "intercept"]], expected)
    assert prediction.pivot_of(accuracy + 1, sigmoid(x), standard) is None


def test_correlations_are_scipys(table):
    rows = predict(table).loc["imagenet_v2"]
    clean, natural = table[CLEAN], table["natural/imagenet_v2"]
    corrupted = np.mean([table[name] for name in table.synthetic], axis=0)
    expected = {
        "drop": stats.pearsonr(clean - natural, clean - corrupted),
        "spearman": stats.spearmanr(natural, corrupted),
        "accuracy": stats.pearsonr(natural, corrupted),
        "published_units": stats.pearsonr(clean / 100 - natural, clean / 100 - corrupted),
    }
    assert rows.value[list(expected)].tolist() == pytest.approx([found.statistic for found in expected.values()])
    assert p_value(rows.value["drop"], 24) == pytest.approx(expected["drop"].pvalue)
    assert rows.models[["drop", "partial", "effective"]].tolist() == [24, 24, 12]


def test_the_drop_of_the_same_classes_starts_from_their_accuracy(table):
    accuracy, clean = table.shift("imagenet_r")
    clean = np.minimum(100, clean + np.arange(24) % 3)
    rows = predict(changed(table, clean__imagenet_r=clean)).loc["imagenet_r"]
    lost = table[CLEAN] - table.mean(table.members())
    assert rows.value["drop_matched"] == pytest.approx(stats.pearsonr(clean - accuracy, lost).statistic)
    assert rows.value["drop"] == pytest.approx(stats.pearsonr(table[CLEAN] - accuracy, lost).statistic)


def test_the_partial_correlation_is_the_textbook_formula(table):
    of_classes = np.minimum(99, table[CLEAN] + np.arange(24) % 3)  # does not matter
    logits = prediction.logit([table["natural/imagenet_v2"], table.mean(table.members()), table[CLEAN]])
    r = np.corrcoef(logits)
    expected = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    found = predict(changed(table, clean__imagenet_v2=of_classes)).value["imagenet_v2"]
    assert found["partial"] == pytest.approx(expected) != pytest.approx(found["residual"])


def test_a_model_of_accuracy_zero_is_left_out_of_the_partial_correlation_or_raised_to_a_floor(table):
    accuracy, clean = table.shift("imagenet_v2")
    synthetic, weights, others = table.mean(table.members()), np.ones((1, 24)), np.arange(24) != 5
    columns = np.where(others, accuracy, 0), clean, synthetic, table[CLEAN]
    left_out = prediction.residual_correlation(*columns, weights)
    expected = prediction.residual_correlation(*(column[others] for column in columns), weights[:, others])
    assert left_out[0] == pytest.approx(expected[0]) and left_out[1] == 23
    assert prediction.residual_correlation(*columns, weights, floor=0.01)[1] == 24


def test_effective_robustness_is_found_again_where_clean_accuracy_explains_nothing_and_needs_standard_models(table):
    rows = predict(table, resamples=200)
    assert rows.low["imagenet_r", "effective"] > 0.7  # both exceed their lines by the same in logits
    row = rows.loc[("imagenet_v2", "effective")]
    assert row.low < 0 < row.high  # noise alone exceeds this line
    rows = predict(dataclasses.replace(table, standard=np.zeros(24, bool)))
    effective = rows.loc[("imagenet_r", "effective")]
    assert np.isnan(effective[["value", "low", "high"]].astype(float)).all() and effective.models == 0
    assert np.isfinite(rows.loc[("imagenet_r", "drop"), ["value", "low", "high"]].astype(float)).all()


def test_clean_accuracy_as_a_predictor_and_shifts_among_themselves(table):
    complete, weights = np.ones(24, bool), draw(24, 20)
    natural, clean = table.shift("imagenet_r")
    exact = changed(table, natural__imagenet_sketch=natural, clean__imagenet_sketch=clean)
    rows = prediction.from_clean(exact, exact.natural, complete, weights).set_index(["shift", "measure"])
    natural = table["natural/imagenet_v2"]
    expected = [
        np.corrcoef(natural, table[CLEAN])[0, 1],
        stats.spearmanr(natural, table[CLEAN]).statistic,
        np.corrcoef(prediction.logit([natural, table[CLEAN]]))[0, 1] ** 2,
    ]
    assert rows.value["imagenet_v2"][["pearson", "spearman", "r2"]].tolist() == pytest.approx(expected)
    zero = changed(table, natural__imagenet_v2=np.where(np.arange(24) == 5, 0.0, natural))
    without = prediction.from_clean(zero, ["imagenet_v2"], complete, weights).set_index("measure").models
    assert without.to_dict() == {"pearson": 24, "spearman": 24, "r2": 23}
    pairs = prediction.together(exact, exact.natural, complete, weights).set_index(["first", "second"]).value
    assert list(pairs.index) == [
        ("imagenet_r", "imagenet_v2"), ("imagenet_r", "imagenet_sketch"), ("imagenet_v2", "imagenet_sketch")
    ]  # fmt: skip
    assert pairs["imagenet_r", "imagenet_sketch"] == pytest.approx(1)
    assert abs(pairs["imagenet_r", "imagenet_v2"]) < 0.6


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    x = rng.normal(50, 10, 40).round()  # with ties
    return x, x + rng.normal(0, 8, 40), correlation.draw(40, 25, seed=1)


def test_weights_are_ones_and_then_samples_with_replacement():
    weights = correlation.draw(7, 200)
    assert weights.shape == (201, 7) and (weights[0] == 1).all()
    assert (weights.sum(axis=1) == 7).all() and (weights == weights.round()).all()
    assert abs((weights[1:] == 0).mean() - (6 / 7) ** 7) < 0.05
    assert (weights == correlation.draw(7, 200)).all() and (weights != correlation.draw(7, 200, seed=1)).any()


@pytest.mark.parametrize(
    "statistic, reference",
    [
        (correlation.pearson, lambda x, y: stats.pearsonr(x, y)[0]),
        (correlation.spearman, lambda x, y: stats.spearmanr(x, y)[0]),
        (lambda *given: np.transpose(prediction.line(*given)), lambda x, y: np.polyfit(x, y, 1)),
        (lambda x, y, weights: prediction.covariances([x, y], weights), lambda x, y: np.cov([x, y], ddof=0)),
    ],
)
def test_statistics_are_those_of_repeated_samples(sample, statistic, reference):
    x, y, weights = sample
    expected = [reference(*(np.repeat(values, row.astype(int)) for values in (x, y))) for row in weights]
    np.testing.assert_allclose(statistic(x, y, weights), expected, atol=1e-9)


def test_models_without_a_value_take_no_part(sample):
    x, y, weights = sample
    x[3], y[5] = np.nan, np.nan
    kept = np.delete(np.arange(40), [3, 5])
    for statistic in (correlation.pearson, correlation.spearman):
        np.testing.assert_allclose(
            statistic(x, y, weights), statistic(x[kept], y[kept], weights[:, kept]), rtol=0, atol=1e-12
        )


def test_what_does_not_vary_has_no_correlation_and_no_line():
    for value in (0.1, 80.3, np.nan):
        given = np.full(5, value), np.arange(5.0), np.ones((1, 5))
        assert np.isnan(correlation.pearson(*given)).all() and np.isnan(prediction.line(*given)[0]).all()


def test_the_interval_is_about_that_of_fishers_transformation():
    x, noise = np.random.default_rng(0).normal(size=(2, 115))
    y = 0.75 * x + noise
    found = prediction.estimate(correlation.pearson(x, y, correlation.draw(115, 2000)))
    low, high = np.tanh(np.arctanh(found["value"]) + np.array([-1, 1]) * 1.96 / np.sqrt(112))
    assert found["value"] == pytest.approx(stats.pearsonr(x, y)[0])
    assert (found["low"], found["high"]) == (pytest.approx(low, abs=0.05), pytest.approx(high, abs=0.05))


def test_an_interval_takes_half_of_the_resamples_and_a_p_three_models():
    assert np.isnan(prediction.estimate([0.5, np.nan, np.nan, 0.4])["low"])
    assert prediction.estimate([0.5, 0.3, np.nan, 0.4])["low"] == pytest.approx(0.3025)
    assert np.isnan(prediction.estimate([np.nan, np.nan])["high"])
    assert prediction.p_value(1.0, 10) == 0
    assert np.isnan(prediction.p_value(0.5, 2))


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
    assert categories(imagenet_c().overlap, published.IMAGENET_C).clusters == benchmarks.IMAGENET_C_CATEGORIES
    members = [f"imagenet_c/{name}" for name in published.IMAGENET_C]
    assert sorted(sum(benchmarks.categories_of(members), ())) == sorted(members)
    refuses(lambda: benchmarks.categories_of(members[1:]), "15 corruptions of ImageNet-C", "14 others")


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
    constant = {"none": np.full_like(synthetic["z"], 3.0)}
    again = benchmarks.leaders(constant | synthetic, {"imagenet_r": natural["imagenet_r"]}, draw(30, 50))
    assert again.corruption.tolist() == [*found.corruption, "none"]
