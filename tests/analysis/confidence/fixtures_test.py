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


def losses(p, labels):
    """-ln p of the label, nats, [N]."""
    with np.errstate(divide="ignore"):
        return -np.log(np.asarray(p)[np.arange(len(labels)), labels])


def brier(p, labels):
    """sum_c (p_c - [c = y])^2, [N]."""
    return ((np.asarray(p) - np.eye(np.shape(p)[1])[labels]) ** 2).sum(1)


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
    "ace": lambda p, y: metrics.ece(binned(*top((p, y)), mass=True)),
    "ace3": lambda p, y: metrics.ece(binned(*top((p, y)), 3, mass=True)),
    "ace_bins": lambda p, y: len(binned(*top((p, y)), mass=True).number),
    "debiased3": lambda p, y: metrics.debiased_square(binned(*top((p, y)), 3, mass=True)),
    "debiased": lambda p, y: metrics.debiased_square(binned(*top((p, y)), mass=True)),
    "brier": lambda p, y: brier(p, y).mean(),
    "nll": lambda p, y: losses(p, y).mean(),
    "aurc": lambda p, y: metrics.aurc(ranked(*top((p, y)))),
    "e_aurc": lambda p, y: metrics.excess_aurc(ranked(*top((p, y)))),
    "auroc": lambda p, y: metrics.auroc(ranked(*top((p, y)))),
    "fpr95": lambda p, y: metrics.fpr95(ranked(*top((p, y)))),
}
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (A, {"accuracy": 0.7, "mean_k": 0.654, "ece": 0.276, "ece10": 0.276, "ece5": 0.166, "ece30": 0.356}),
        (A, {"ace": 0.356, "ace_bins": 10, "ace3": 0.066}),
        (A, {"debiased3": -0.061643}),
        (A, {"brier": 0.387220, "nll": 0.668833, "aurc": 0.133571, "e_aurc": 0.068849}),
        (A, {"auroc": 0.761905, "fpr95": 1}),
        (B, {"ece": 0.3, "ace": 0.3, "debiased": 0.066667, "brier": 0.6, "nll": INF}),
        (B, {"aurc": 0.3, "auroc": 0.5, "e_aurc": 0.235278}),
        (C, {"ece": 0, "debiased": -0.0625, "brier": 0.75, "nll": 1.386294, "aurc": 0.75, "e_aurc": 0.270833}),
        (C, {"auroc": 0.5, "ace_bins": 1}),
        (D, {"ece": 0.5}),
        (E, {"ece": 0.583333, "nll": INF, "brier": 0.875, "auroc": 0, "aurc": 0.611111}),
        (F, {"ece": 0.3, "brier": 0.18, "nll": 0.356675, "debiased": 0, "auroc": NAN, "fpr95": NAN, "aurc": 0}),
        (G, {"ece": 0.25, "ace": 0.25, "debiased": -0.048333, "aurc": 0.397222, "auroc": 0.666667}),
        (G, {"nll": 0.809452, "brier": 0.57}),
        (H, {"ece": 0.202, "nll": 0.241211, "aurc": 0, "e_aurc": 0, "auroc": NAN, "fpr95": NAN}),
        (I, {"ece": 0.798, "nll": 2.127491, "aurc": 1, "e_aurc": 0, "auroc": NAN}),
        (J, {"ece": 0.033333, "debiased": -0.046944}),
        (J, {"aurc": 0.100785, "auroc": 0.796296}),
        (K, {"ece": 0.485}),
        (M, {"fpr95": 0.75, "auroc": 0.60625, "aurc": 0.158224, "e_aurc": 0.140073}),
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
        assert measure(p, labels) == pytest.approx(measure(p[order], labels[order]), nan_ok=True), name


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


def test_ensembles_are_no_worse_than_their_members():
    logits = np.random.default_rng(0).normal(size=(4, 300, 5)) * 2
    labels = np.random.default_rng(1).integers(0, 5, 300)
    members = [log_softmax(one, axis=1) for one in logits]
    mean = np.exp(members).mean(0)
    for score in (losses, brier):
        assert score(mean, labels).mean() <= np.mean([score(np.exp(one), labels).mean() for one in members])
    predicted = [one.argmax(1) for one in members]
    pairs = [(a != b).mean() for i, a in enumerate(predicted) for b in predicted[:i]]
    assert temperature.disagreement(predicted) == pytest.approx(np.mean(pairs))
    assert math.isnan(temperature.disagreement(predicted[:1]))


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
    assert brier(p, labels).mean() == pytest.approx(brier, abs=1e-12)
    if (p > 0).all():
        assert losses(p, labels).mean() == pytest.approx(sklearn.log_loss(labels, p, labels=classes), abs=1e-9)


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
    assert float(error(*given, n_bins=15, norm="l1")) == pytest.approx(metrics.ece(binned(k, hit)), abs=2e-6)


@pytest.mark.slow
@pytest.mark.needs("torch", "torchmetrics")
def test_a_confidence_of_1_has_a_bin_of_its_own_in_torchmetrics():
    import torch
    from torchmetrics.functional.classification import multiclass_calibration_error as error

    p, labels = K
    found = float(error(torch.tensor(p, dtype=torch.float32), torch.tensor(labels), 2, n_bins=15))
    assert found == pytest.approx(0.515, abs=1e-6) and MEASURES["ece"](*K) == pytest.approx(0.485)
