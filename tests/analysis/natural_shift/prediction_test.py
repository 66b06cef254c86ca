"""Effective robustness, drops and partial correlations on tables whose answers are known."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from analysis.natural_shift import baseline, effective, prediction, resampling
from analysis.natural_shift.table import Shift
from tests.analysis.natural_shift.tables import made_up, sigmoid


@pytest.fixture
def table():
    return made_up()


def predict(table, resamples=20):
    shifts, members = table.shifts(), table.members()
    complete = table.complete(shifts, members)
    weights = resampling.draw(len(table.models), resamples)
    rows = prediction.predict(table, {"mean": table.mean(members)}, shifts, complete, weights, weights[:, complete])
    return {row.shift: row for row in rows}


def test_logits_have_no_ends():
    assert effective.logit([50, 80]) == pytest.approx([0, np.log(4)])
    assert np.isnan(effective.logit([0, 100, np.nan])).all()
    np.testing.assert_allclose(effective.logit([0, 100], floor=0.01), [np.log(0.01 / 99.99), np.log(99.99 / 0.01)])


def test_effective_robustness_is_what_exceeds_the_line_of_standard_models(table):
    natural = table.natural["imagenet_r"]
    found = effective.effective_robustness(natural.accuracy, natural.clean, table.standard, np.ones((1, 24)))
    (line,) = found.lines
    assert (line.slope, line.intercept, line.r2) == pytest.approx((0.6, -2, 1))
    assert (line.models, line.dropped, line.part) == (12, 0, "")
    on_line = sigmoid(0.6 * effective.logit(natural.clean) - 2)
    np.testing.assert_allclose(found.robustness[0], natural.accuracy - on_line, atol=1e-9)
    np.testing.assert_allclose(found.robustness[0, :12], 0, atol=1e-9)


def test_accuracies_of_zero_are_left_out_of_the_line_and_counted(table):
    natural = table.natural["imagenet_r"]
    accuracy = np.where(np.arange(24) == 2, 0, natural.accuracy)
    found = effective.effective_robustness(accuracy, natural.clean, table.standard, np.ones((1, 24)))
    assert found.lines[0].slope == pytest.approx(0.6)
    assert (found.lines[0].models, found.lines[0].dropped) == (11, 1)


def test_imagenet_a_has_two_lines_about_the_model_it_was_filtered_with():
    x = np.linspace(-1, 3, 21)  # the model in the middle has 0
    y = np.where(x < x[10], 0.2 * x - 4, 2.5 * x - 8)
    accuracy = np.where(np.arange(21) == 10, 0, sigmoid(y))
    standard = np.ones(21, bool)
    base = made_up(21)
    shifts = {"imagenet_a": Shift(accuracy, sigmoid(x)), "imagenet_r": Shift(accuracy, sigmoid(x))}
    table = dataclasses.replace(base, natural=shifts, standard=standard)
    below, above = prediction.natural_lines(table, "imagenet_a")
    assert (below.part, below.models, below.slope, below.intercept) == (
        "below",
        10,
        pytest.approx(0.2),
        pytest.approx(-4),
    )
    assert (above.part, above.models, above.slope, above.intercept) == (
        "above",
        10,
        pytest.approx(2.5),
        pytest.approx(-8),
    )
    assert [line.part for line in prediction.natural_lines(table, "imagenet_r")] == [""]
    assert effective.pivot_of(accuracy + 1, sigmoid(x), standard) is None


def test_correlations_are_scipys(table):
    row = predict(table)["imagenet_v2"]
    clean, natural = table.clean, table.natural["imagenet_v2"].accuracy
    corrupted = np.mean(list(table.synthetic.values()), axis=0)
    expected = stats.pearsonr(clean - natural, clean - corrupted)
    assert (row.drop.value, row.drop_p) == pytest.approx((expected.statistic, expected.pvalue))
    assert row.spearman.value == pytest.approx(stats.spearmanr(natural, corrupted).statistic)
    assert row.accuracy.value == pytest.approx(stats.pearsonr(natural, corrupted).statistic)
    assert row.published_units.value == pytest.approx(
        stats.pearsonr(clean / 100 - natural, clean / 100 - corrupted).statistic
    )
    assert (row.models, row.partial_models, row.shown) == (24, 24, 12)


def test_the_drop_of_the_same_classes_starts_from_their_accuracy(table):
    natural = table.natural["imagenet_r"]
    own = Shift(natural.accuracy, np.minimum(100, natural.clean + np.arange(24) % 3))
    row = predict(dataclasses.replace(table, natural={**table.natural, "imagenet_r": own}))["imagenet_r"]
    lost = table.clean - table.mean(table.members())
    assert row.drop_matched.value == pytest.approx(stats.pearsonr(own.clean - own.accuracy, lost).statistic)
    assert row.drop.value == pytest.approx(stats.pearsonr(table.clean - own.accuracy, lost).statistic)


def test_the_partial_correlation_is_the_textbook_formula(table):
    row = predict(table)["imagenet_v2"]
    logits = effective.logit([table.natural["imagenet_v2"].accuracy, table.mean(table.members()), table.clean])
    r = np.corrcoef(logits)
    expected = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    assert row.partial.value == pytest.approx(expected)


def test_a_model_of_accuracy_zero_is_left_out_of_the_partial_correlation_or_raised_to_a_floor(table):
    natural = table.natural["imagenet_v2"]
    zero = Shift(np.where(np.arange(24) == 5, 0, natural.accuracy), natural.clean)
    synthetic, weights, others = table.mean(table.members()), np.ones((1, 24)), np.arange(24) != 5
    left_out = prediction.partial_correlation(zero, synthetic, table.clean, weights)
    without = Shift(natural.accuracy[others], natural.clean[others])
    expected = prediction.partial_correlation(without, synthetic[others], table.clean[others], weights[:, others])
    assert left_out[0] == pytest.approx(expected[0]) and left_out[1] == 23
    assert prediction.partial_correlation(zero, synthetic, table.clean, weights, floor=0.01)[1] == 24


def test_effective_robustness_is_found_again_where_clean_accuracy_explains_nothing(table):
    rows = predict(table, resamples=200)
    assert rows["imagenet_r"].effective.low > 0.7  # both exceed their lines by the same in logits
    low, high = rows["imagenet_v2"].effective[1:]
    assert low < 0 < high  # noise alone exceeds this line


def test_without_standard_models_there_is_no_effective_robustness(table):
    row = predict(dataclasses.replace(table, standard=np.zeros(24, bool)))["imagenet_r"]
    assert np.isnan(row.effective).all() and row.shown == 0
    assert np.isfinite(row.drop).all()


def test_p_is_that_of_a_sure_and_of_no_correlation():
    assert prediction.p_value(1.0, 10) == 0
    assert np.isnan(prediction.p_value(0.5, 2))


def test_clean_accuracy_as_a_predictor_and_shifts_among_themselves(table):
    complete, weights = np.ones(24, bool), resampling.draw(24, 20)
    exact = dataclasses.replace(table, natural={**table.natural, "imagenet_sketch": table.natural["imagenet_r"]})
    rows = {row.shift: row for row in baseline.from_clean(exact, exact.natural, complete, weights)}
    natural = table.natural["imagenet_v2"].accuracy
    logits = effective.logit([natural, table.clean])
    assert rows["imagenet_v2"].pearson.value == pytest.approx(np.corrcoef(natural, table.clean)[0, 1])
    assert rows["imagenet_v2"].spearman.value == pytest.approx(stats.spearmanr(natural, table.clean).statistic)
    assert rows["imagenet_v2"].r2.value == pytest.approx(np.corrcoef(logits)[0, 1] ** 2)
    pairs = {
        (row.first, row.second): row.correlation for row in baseline.together(exact, exact.natural, complete, weights)
    }
    assert list(pairs) == [
        ("imagenet_r", "imagenet_v2"), ("imagenet_r", "imagenet_sketch"), ("imagenet_v2", "imagenet_sketch")
    ]  # fmt: skip
    assert pairs["imagenet_r", "imagenet_sketch"].value == pytest.approx(1)
    assert abs(pairs["imagenet_r", "imagenet_v2"].value) < 0.6
