"""Effective robustness, drops and partial correlations on tables whose answers are known."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from analysis.frames import CLEAN
from projects.natural_shift import prediction
from projects.natural_shift.prediction import draw, p_value
from tests.projects.natural_shift.tables import changed, made_up, sigmoid


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
    pairs = prediction.together(exact, exact.natural, complete, weights).set_index(["first", "second"]).value
    assert list(pairs.index) == [
        ("imagenet_r", "imagenet_v2"), ("imagenet_r", "imagenet_sketch"), ("imagenet_v2", "imagenet_sketch")
    ]  # fmt: skip
    assert pairs["imagenet_r", "imagenet_sketch"] == pytest.approx(1)
    assert abs(pairs["imagenet_r", "imagenet_v2"]) < 0.6
