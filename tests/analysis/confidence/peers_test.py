"""Against scikit-learn and torchmetrics, where they are installed."""

import numpy as np
import pytest

from analysis.confidence import metrics
from analysis.confidence.metrics import binned, ranked
from tests.analysis.confidence.fixtures_test import MEASURES, A, C, H, J, K, drawn, top

pytestmark = pytest.mark.slow
CASES = {"A": A, "C": C, "H": H, "J": J, "drawn": drawn(3000), "sharp": drawn(3000, 10, 1, 3.0)}


@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_scikit_learn(name):
    sklearn = pytest.importorskip("sklearn.metrics")
    p, labels = CASES[name]
    k, hit = top(CASES[name])
    if 0 < hit.sum() < len(hit):
        assert metrics.auroc(ranked(k, hit)) == pytest.approx(sklearn.roc_auc_score(hit, k), abs=1e-12)
    classes = np.arange(p.shape[1])
    brier = sum(np.mean((p[:, c] - (labels == c)) ** 2) for c in classes)
    assert metrics.brier(p, labels).mean() == pytest.approx(brier, abs=1e-12)
    if (p > 0).all():
        assert metrics.losses(p, labels).mean() == pytest.approx(sklearn.log_loss(labels, p, labels=classes), abs=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_calibration_is_that_of_torchmetrics(name):
    """Its bins are [lo, hi), with one of its own for a confidence of exactly 1."""
    torch = pytest.importorskip("torch")
    error = pytest.importorskip("torchmetrics.functional.classification").multiclass_calibration_error
    p, labels = CASES[name]
    given = torch.tensor(p, dtype=torch.float32), torch.tensor(labels), p.shape[1]
    k, hit = top((p.astype(np.float32).astype(float), labels))
    inside = np.abs(15 * k - np.round(15 * k)) > 1e-4  # on an edge it falls into another bin there
    k, hit, given = k[inside], hit[inside], (given[0][inside], given[1][inside], given[2])
    for norm, own in (("l1", metrics.ece), ("l2", metrics.rms), ("max", metrics.mce)):
        assert float(error(*given, n_bins=15, norm=norm)) == pytest.approx(own(binned(k, hit)), abs=2e-6)


def test_a_confidence_of_1_has_a_bin_of_its_own_in_torchmetrics():
    torch = pytest.importorskip("torch")
    error = pytest.importorskip("torchmetrics.functional.classification").multiclass_calibration_error
    p, labels = K
    found = float(error(torch.tensor(p, dtype=torch.float32), torch.tensor(labels), 2, n_bins=15))
    assert found == pytest.approx(0.515, abs=1e-6) and MEASURES["ece"](*K) == pytest.approx(0.485)
