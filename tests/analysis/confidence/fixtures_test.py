"""Nineteen cases with exact answers computed apart from this code, their edge cases, and two peers."""

import math

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from analysis.confidence import metrics, temperature
from analysis.confidence.metrics import binned, ranked

A = (
    np.array(
        [
            [0.70, 0.20, 0.10], [0.55, 0.25, 0.20], [0.34, 0.33, 0.33], [0.10, 0.85, 0.05], [0.05, 0.90, 0.05],
            [0.20, 0.60, 0.20], [0.02, 0.03, 0.95], [0.25, 0.30, 0.45], [0.15, 0.05, 0.80], [0.40, 0.40, 0.20],
        ]
    ),
    np.array([0, 1, 0, 1, 1, 0, 2, 2, 2, 1]),
)  # fmt: skip
B = np.eye(3)[[0, 1, 2, 0, 1, 2, 0, 1, 2, 0]], np.array([0, 1, 2, 0, 1, 2, 0, 2, 0, 1])
C = np.full((4, 4), 0.25), np.arange(4)
E = np.array([[1, 0, 0], [0.5, 0.5, 0], [0, 0.25, 0.75]]), np.array([1, 0, 2])
F = np.array([[0.3, 0.7]]), np.array([1])


def two_classes(confidence, correct):
    """(probabilities [N, 2], labels): class 0 is predicted with this confidence."""
    k = np.asarray(confidence, float)
    return np.stack([k, 1 - k], 1), 1 - np.asarray(correct)


D = two_classes([0.6, 0.62, 0.8, 0.82], [0, 1, 1, 0])
G = two_classes([0.9, 0.9, 0.9, 0.6, 0.6, 0.6], [1, 0, 1, 0, 1, 0])
H = two_classes([0.99, 0.9, 0.8, 0.7, 0.6], [1] * 5)
I = two_classes([0.99, 0.9, 0.8, 0.7, 0.6], [0] * 5)  # noqa: E741
J = two_classes(np.repeat([0.55, 0.75, 0.95], 4), [1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1])
K = two_classes([1.0, 0.97], [0, 1])
L = two_classes([0.5, 0.6, 0.7, 0.8, 0.9], [1, 0, 1, 1, 0])
M = two_classes([*np.round(np.arange(0.99, 0.795, -0.01), 2), 0.985, 0.9, 0.815, 0.5], [1] * 20 + [0] * 4)


def top(case):
    """(confidence, correct) of a case."""
    p, labels = case
    return p.max(1), p.argmax(1) == labels


MEASURES = {
    "accuracy": lambda p, y: top((p, y))[1].mean(),
    "mean_k": lambda p, y: p.max(1).mean(),
    "ece": lambda p, y: metrics.ece(binned(*top((p, y)))),
    "ece10": lambda p, y: metrics.ece(binned(*top((p, y)), 10)),
    "ece5": lambda p, y: metrics.ece(binned(*top((p, y)), 5)),
    "ece30": lambda p, y: metrics.ece(binned(*top((p, y)), 30)),
    "mce": lambda p, y: metrics.mce(binned(*top((p, y)))),
    "rms": lambda p, y: metrics.rms(binned(*top((p, y)))),
    "ace": lambda p, y: metrics.ece(binned(*top((p, y)), mass=True)),
    "ace3": lambda p, y: metrics.ece(binned(*top((p, y)), 3, mass=True)),
    "ace_bins": lambda p, y: len(binned(*top((p, y)), mass=True).number),
    "plug_in3": lambda p, y: metrics.rms(binned(*top((p, y)), 3, mass=True)) ** 2,
    "debiased3": lambda p, y: metrics.debiased_square(binned(*top((p, y)), 3, mass=True)),
    "debiased": lambda p, y: metrics.debiased_square(binned(*top((p, y)), mass=True)),
    "groups3": lambda p, y: metrics.rms_of_groups(*top((p, y)), 3),
    "released3": lambda p, y: metrics.rms_of_groups(*top((p, y)), 3, released=True),
    "groups2": lambda p, y: metrics.rms_of_groups(*top((p, y)), 2),
    "released2": lambda p, y: metrics.rms_of_groups(*top((p, y)), 2, released=True),
    "class_wise": metrics.class_wise_ece,
    "brier": lambda p, y: metrics.brier(p, y).mean(),
    "nll": lambda p, y: metrics.losses(p, y).mean(),
    "nll12": lambda p, y: metrics.losses(p, y, 1e-12).mean(),
    "nll7": lambda p, y: metrics.losses(p, y, 1e-7).mean(),
    "entropy": lambda p, y: metrics.entropies(p).mean(),
    "aurc": lambda p, y: metrics.aurc(ranked(*top((p, y)))),
    "e_aurc": lambda p, y: metrics.excess_aurc(ranked(*top((p, y)))),
    "e_aurc_continuous": lambda p, y: metrics.excess_aurc(ranked(*top((p, y))), continuous=True),
    "auroc": lambda p, y: metrics.auroc(ranked(*top((p, y)))),
    "fpr95": lambda p, y: metrics.fpr95(ranked(*top((p, y)))),
    "accuracy_at_9": lambda p, y: metrics.accuracy_at(ranked(*top((p, y))), 0.9),
    "accuracy_at_8": lambda p, y: metrics.accuracy_at(ranked(*top((p, y))), 0.8),
    "accuracy_at_5": lambda p, y: metrics.accuracy_at(ranked(*top((p, y))), 0.5),
    "reliability": lambda p, y: metrics.parts(*top((p, y))).reliability,
    "resolution": lambda p, y: metrics.parts(*top((p, y))).resolution,
    "uncertainty": lambda p, y: metrics.parts(*top((p, y))).uncertainty,
    "within_variance": lambda p, y: metrics.parts(*top((p, y))).within_variance,
    "within_covariance": lambda p, y: metrics.parts(*top((p, y))).within_covariance,
}
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (A, {"accuracy": 0.7, "mean_k": 0.654, "ece": 0.276, "ece10": 0.276, "ece5": 0.166, "ece30": 0.356}),
        (A, {"mce": 0.575, "rms": 0.340962, "ace": 0.356, "ace_bins": 10, "ace3": 0.066, "plug_in3": 0.005023}),
        (A, {"debiased3": -0.061643, "groups3": 0.228480, "released3": 0.214367, "class_wise": 0.240667}),
        (A, {"brier": 0.387220, "nll": 0.668833, "entropy": 0.772751, "aurc": 0.133571, "e_aurc": 0.068849}),
        (A, {"e_aurc_continuous": 0.083244, "auroc": 0.761905, "fpr95": 1, "accuracy_at_9": 0.666667}),
        (A, {"accuracy_at_8": 0.75, "accuracy_at_5": 1, "reliability": 0.116255, "resolution": 0.16}),
        (A, {"uncertainty": 0.21, "within_variance": 0.000305, "within_covariance": -0.006}),
        (B, {"ece": 0.3, "ace": 0.3, "mce": 0.3, "rms": 0.3, "debiased": 0.066667, "brier": 0.6, "nll": INF}),
        (B, {"nll12": 8.289306, "nll7": 4.835429, "aurc": 0.3, "auroc": 0.5, "e_aurc": 0.235278}),
        (C, {"ece": 0, "debiased": -0.0625, "brier": 0.75, "nll": 1.386294, "aurc": 0.75, "e_aurc": 0.270833}),
        (C, {"auroc": 0.5, "entropy": math.log(4), "ace_bins": 1}),
        (D, {"ece": 0.5, "rms": 0.551543}),
        (E, {"ece": 0.583333, "nll": INF, "nll12": 9.537283, "brier": 0.875, "auroc": 0, "aurc": 0.611111}),
        (E, {"class_wise": 0.388889}),
        (F, {"ece": 0.3, "brier": 0.18, "nll": 0.356675, "debiased": 0, "auroc": NAN, "fpr95": NAN, "aurc": 0}),
        (G, {"ece": 0.25, "ace": 0.25, "debiased": -0.048333, "aurc": 0.397222, "auroc": 0.666667}),
        (G, {"accuracy_at_8": 0.533333, "nll": 0.809452, "brier": 0.57}),
        (H, {"ece": 0.202, "nll": 0.241211, "aurc": 0, "e_aurc": 0, "auroc": NAN, "fpr95": NAN}),
        (I, {"ece": 0.798, "nll": 2.127491, "aurc": 1, "e_aurc": 0, "auroc": NAN, "e_aurc_continuous": 0}),
        (J, {"ece": 0.033333, "rms": 0.040825, "debiased": -0.046944, "reliability": 0.001667}),
        (J, {"resolution": 0.041667, "uncertainty": 0.1875, "aurc": 0.100785, "auroc": 0.796296}),
        (K, {"ece": 0.485}),
        (L, {"groups2": 0.108012, "released2": 0.031623}),
        (M, {"fpr95": 0.75, "auroc": 0.60625, "aurc": 0.158224, "e_aurc": 0.140073, "accuracy_at_5": 0.833333}),
    ],
)
def test_cases_have_their_exact_answers(case, expected):
    found = {name: MEASURES[name](*case) for name in expected}
    assert found == pytest.approx(expected, abs=6e-7, nan_ok=True)


@pytest.mark.parametrize(
    ("logits", "labels", "value", "before", "after"),
    [
        ([[2, 0]] * 4, [0, 0, 0, 1], 1.820478, 0.626928, 0.562335),
        ([[3, 1, 0], [0, 4, 1], [2, 2.5, 0], [1, 0, 5], [4, 3, 2]], [0, 1, 0, 2, 1], 1.042055, 0.538398, 0.537960),
    ],
)
def test_temperatures_of_cases(logits, labels, value, before, after):
    found = temperature.fit(np.array(logits, float), np.array(labels))
    assert found == pytest.approx((value, False, before, after), abs=6e-7)


def test_temperatures_without_an_optimum_are_flagged():
    logits = np.array([[1.0, 0], [0, 2]])
    right, wrong = temperature.fit(logits, np.array([0, 1])), temperature.fit(logits, np.array([1, 0]))
    assert right[:2] == (1e-3, True) and wrong[:2] == (1e3, True)
    assert temperature.fit(np.zeros((3, 4)), np.array([0, 1, 2]))[:2] == (1e3, True)  # uninformative


def test_the_mean_of_two_members():
    members = np.log([[[0.9, 0.1]], [[0.5, 0.5]]])
    mean, labels = temperature.log_mean(list(members)), np.array([1])
    assert metrics.losses(np.exp(mean), labels)[0] == pytest.approx(1.203973, abs=6e-7)
    assert np.mean([metrics.losses(np.exp(one), labels) for one in members]) == pytest.approx(1.497866, abs=6e-7)
    of_logits = log_softmax(members.mean(0), axis=1)
    assert -of_logits[0, 1] == pytest.approx(1.386294, abs=6e-7)


def test_pooled_cells_are_not_their_mean():
    cells = [(np.full(2, 0.9), np.array(hits)) for hits in ([1, 1], [0, 0])]
    assert np.mean([metrics.ece(binned(*cell)) for cell in cells]) == pytest.approx(0.5)
    pooled = [np.concatenate(arrays) for arrays in zip(*cells, strict=True)]
    assert metrics.ece(binned(*pooled)) == pytest.approx(0.4)


def test_confidences_on_an_edge_stay_below_it_as_the_code_of_two_bytes_says():
    k = np.array([0.5, 0.54, 11 / 15, np.float64(np.float32(0.1)), 1 / 3, 1, 2**-20])
    code = np.ceil(60000 * k - 1e-9).astype(int)
    assert code.tolist() == [30000, 32400, 44000, 6001, 20000, 60000, 1]
    for bins in (10, 12, 15, 20, 24, 25, 30, 50, 60, 75, 100):
        expected = np.unique((code - 1) * bins // 60000, return_counts=True)[1]
        np.testing.assert_array_equal(binned(k, np.ones(len(k)), bins).number, expected)


def drawn(number=2000, classes=5, seed=0, sharpness=1.0):
    """Probabilities, and labels drawn from them if they are calibrated."""
    generator = np.random.default_rng(seed)
    logits = 2 * generator.normal(size=(number, classes))
    p = softmax(logits, axis=1)
    labels = (generator.random(number)[:, None] > p.cumsum(1)).sum(1).clip(0, classes - 1)
    return softmax(sharpness * logits, axis=1), labels


def test_the_order_of_images_is_irrelevant():
    p, labels = drawn(301)
    p[:100] = np.round(p[:100], 1) / np.round(p[:100], 1).sum(1, keepdims=True)  # ties
    order = np.random.default_rng(1).permutation(301)
    for name, measure in MEASURES.items():
        # Groups part equal confidences by the order of the images, as published.
        if not name.startswith(("groups", "released")):
            assert measure(p, labels) == pytest.approx(measure(p[order], labels[order]), nan_ok=True), name


def test_a_class_of_probability_0_changes_the_class_wise_error_alone():
    p, labels = drawn(200)
    more = np.concatenate([p, np.zeros((200, 1))], 1)
    for name, measure in MEASURES.items():
        same = measure(more, labels) == pytest.approx(measure(p, labels))
        assert same == (name != "class_wise"), name


@pytest.mark.parametrize("debiased", [False, True])
def test_parts_sum_to_the_brier_score_of_the_top_label(debiased):
    k, hit = top(drawn(500, sharpness=2.0))
    of = metrics.parts(k, hit, debiased=debiased)
    whole = of.reliability - of.resolution + of.uncertainty + of.within_variance - of.within_covariance
    assert whole == pytest.approx(((k - hit) ** 2).mean(), abs=1e-12)
    if debiased:
        plain = metrics.parts(k, hit)
        assert of.reliability < plain.reliability and of.resolution != plain.resolution


def test_parts_by_predicted_class_are_near_the_scores_of_a_constant_predictor():
    """Each part predicts the frequencies of its labels: nothing is unreliable, and the sum is exact."""
    labels = np.repeat([0, 1, 1, 2, 0, 2], [30, 10, 20, 5, 15, 20])
    part = np.repeat([0, 0, 1, 1, 2, 2], [30, 10, 20, 5, 15, 20])
    frequencies = np.stack([np.bincount(labels[part == k], minlength=3) / (part == k).sum() for k in range(3)])
    p = frequencies[part]
    for likelihood, score in ((False, metrics.brier(p, labels).mean() - 1), (True, metrics.losses(p, labels).mean())):
        of = metrics.class_parts(p, labels, likelihood)
        assert of.reliability == pytest.approx(0, abs=1e-12)
        assert of.reliability - of.resolution + of.uncertainty == pytest.approx(score)


def test_a_random_order_has_the_area_of_the_error_rate():
    generator = np.random.default_rng(0)
    of = ranked(generator.random(20_000), generator.random(20_000) < 0.7)
    assert metrics.aurc(of) == pytest.approx(0.3, abs=0.02) and metrics.auroc(of) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(("number", "low", "high"), [(500, 0.044, 0.066), (2000, 0.0225, 0.0325)])
def test_the_bias_of_a_calibrated_model_is_that_of_the_formula(number, low, high):
    """k uniform on .1 .. 1: ECE .055 (sd .011) of 500 answers, .0275 (.005) of 2,000; the debiased square is 0."""
    generator, found, squares = np.random.default_rng(0), [], []
    for _ in range(40):
        k = generator.uniform(0.1, 1, number)
        hit = generator.random(number) < k
        found.append(metrics.ece(binned(k, hit)))
        squares.append(metrics.debiased_square(binned(k, hit, mass=True)))
    assert low < np.mean(found) < high
    assert abs(np.mean(squares)) < 4 * np.std(squares) / 40**0.5


def test_newton_ends_where_bisection_does_and_never_above_the_start():
    for seed in range(5):
        p, labels = drawn(400, seed=seed, sharpness=[0.4, 1.0, 2.0, 5.0, 30.0][seed])
        logits = np.log(p)
        found = temperature.fit(logits, labels)
        low, high = 1e-3, 1e3
        for _ in range(200):
            b = (low + high) / 2
            q = softmax(b * logits, axis=1)
            slope = ((q * logits).sum(1) - logits[np.arange(400), labels]).mean()
            low, high = (b, high) if slope < 0 else (low, b)
        assert found.value == pytest.approx(1 / b, rel=1e-9) and not found.at_bound
        assert found.after <= found.before
        assert found.value == pytest.approx([0.4, 1.0, 2.0, 5.0, 30.0][seed], rel=0.2)  # labels drawn at T = 1


def test_vector_scaling_is_no_worse_than_a_temperature_and_its_shift_has_mean_0():
    p, labels = drawn(600, sharpness=3.0)
    logits = np.log(p) + np.array([1.0, 0, 0, 0, -1])
    w, v = temperature.fit_vector(logits, labels)
    after = metrics.losses(softmax(w * logits + v, axis=1), labels).mean()
    assert after < temperature.fit(logits, labels).after and v.mean() == pytest.approx(0, abs=1e-12)


def test_ensembles_are_no_worse_than_their_members():
    logits = np.random.default_rng(0).normal(size=(4, 300, 5)) * 2
    labels = np.random.default_rng(1).integers(0, 5, 300)
    members = [log_softmax(one, axis=1) for one in logits]
    mean = np.exp(temperature.log_mean(members))
    np.testing.assert_allclose(mean, np.exp(members).mean(0), rtol=1e-12)
    for score in (metrics.losses, metrics.brier):
        assert score(mean, labels).mean() <= np.mean([score(np.exp(one), labels).mean() for one in members])
    predicted = [one.argmax(1) for one in members]
    pairs = [(a != b).mean() for i, a in enumerate(predicted) for b in predicted[:i]]
    assert temperature.disagreement(predicted) == pytest.approx(np.mean(pairs))
    assert math.isnan(temperature.disagreement(predicted[:1]))


def test_groups_of_a_hundred_as_released_leave_out_the_last():
    k, hit = top(drawn(150))
    assert metrics.rms_of_groups(k, hit, released=True) == 0 < metrics.rms_of_groups(k, hit)


# Against scikit-learn and torchmetrics, where they are installed.
CASES = {"A": A, "C": C, "H": H, "J": J, "drawn": drawn(3000), "sharp": drawn(3000, 10, 1, 3.0)}


@pytest.mark.slow
@pytest.mark.needs("sklearn")
@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_scikit_learn(name):
    import sklearn.metrics as sklearn

    p, labels = CASES[name]
    k, hit = top(CASES[name])
    if 0 < hit.sum() < len(hit):
        assert metrics.auroc(ranked(k, hit)) == pytest.approx(sklearn.roc_auc_score(hit, k), abs=1e-12)
    classes = np.arange(p.shape[1])
    brier = sum(np.mean((p[:, c] - (labels == c)) ** 2) for c in classes)
    assert metrics.brier(p, labels).mean() == pytest.approx(brier, abs=1e-12)
    if (p > 0).all():
        assert metrics.losses(p, labels).mean() == pytest.approx(sklearn.log_loss(labels, p, labels=classes), abs=1e-9)


@pytest.mark.slow
@pytest.mark.needs("torch", "torchmetrics")
@pytest.mark.parametrize("name", CASES)
def test_calibration_is_that_of_torchmetrics(name):
    """Its bins are [lo, hi), with one of its own for a confidence of exactly 1."""
    import torch
    from torchmetrics.functional.classification import multiclass_calibration_error as error

    p, labels = CASES[name]
    given = torch.tensor(p, dtype=torch.float32), torch.tensor(labels), p.shape[1]
    k, hit = top((p.astype(np.float32).astype(float), labels))
    inside = np.abs(15 * k - np.round(15 * k)) > 1e-4  # on an edge it falls into another bin there
    k, hit, given = k[inside], hit[inside], (given[0][inside], given[1][inside], given[2])
    for norm, own in (("l1", metrics.ece), ("l2", metrics.rms), ("max", metrics.mce)):
        assert float(error(*given, n_bins=15, norm=norm)) == pytest.approx(own(binned(k, hit)), abs=2e-6)


@pytest.mark.slow
@pytest.mark.needs("torch", "torchmetrics")
def test_a_confidence_of_1_has_a_bin_of_its_own_in_torchmetrics():
    import torch
    from torchmetrics.functional.classification import multiclass_calibration_error as error

    p, labels = K
    found = float(error(torch.tensor(p, dtype=torch.float32), torch.tensor(labels), 2, n_bins=15))
    assert found == pytest.approx(0.515, abs=1e-6) and MEASURES["ece"](*K) == pytest.approx(0.485)
