"""Coverage against hand calculations, published tables and simulated studies of known truth."""

import statistics

import numpy as np
import pytest

from analysis.overlap.score import compute
from analysis.overlap.uncertainty import resample_accuracies
from analysis.selection.benchmark import COVERED, NOT_COVERED, NOT_SHOWN, UNDEFINED, UNTESTED, measure_coverage
from tests.analysis.matrices import by_definition, noc
from tests.analysis.published import NOC

NORMAL = statistics.NormalDist()
MATRIX = np.array([[1, 0.4, 0, -0.3], [0.4, 1, 0.2, -0.1], [0, 0.2, 1, -0.2], [-0.3, -0.1, -0.2, 1.0]])


def test_the_largest_overlap_by_hand():
    found = measure_coverage(MATRIX, "abcd", ["a", "c"])
    assert list(found) == ["b", "d"]
    assert found["b"][:2] == (0.4, "a") and found["d"][:2] == (0.0, "c")
    assert {row.verdict for row in found.values()} == {UNTESTED} and all(np.isnan(row.p) for row in found.values())
    assert measure_coverage(MATRIX, "abcd", ["c"])["b"].member == "c"


def test_bonferroni_by_hand():
    se = np.full((4, 4), 0.1)
    found = measure_coverage(MATRIX, "abcd", ["a", "c"], se=se)
    assert found["b"].p == pytest.approx(2 * NORMAL.cdf(-4)) and found["b"].verdict == COVERED
    # d lies 3 and 2 standard errors below 0: as sure as the weaker of the two.
    assert found["d"].p_uncovered == pytest.approx(NORMAL.cdf(-2)) and found["d"].verdict == NOT_COVERED
    assert found["d"].p == 1
    assert measure_coverage(MATRIX, "abcd", ["a", "c"], se=se, level=0.02)["d"].verdict == NOT_SHOWN
    above = measure_coverage(MATRIX, "abcd", ["a", "c"], se=se, above=0.3)
    assert above["b"].p == pytest.approx(2 * NORMAL.cdf(-1)) and above["b"].verdict == NOT_SHOWN


def test_no_member_of_imagenet_noc_is_covered_by_the_others():
    """Above the threshold .1 that it was selected with: none is covered, and border is shown not to be."""
    whole = noc(number=5000)
    rows = {
        name: measure_coverage(whole.unclipped, NOC, [m for m in NOC if m != name], se=whole.se, above=0.1)[name]
        for name in NOC
    }
    assert COVERED not in {row.verdict for row in rows.values()}
    assert max(row.overlap for row in rows.values()) == pytest.approx(0.07, abs=0.005)
    assert [name for name, row in rows.items() if row.verdict == NOT_COVERED] == ["border"]
    assert [name for name, row in rows.items() if row.overlap == 0] == ["border"]


def normal_samples(rng, centre, deviation, correlation, resamples):
    """Resamples [B, n, n] around [M] overlaps of corruption 0 with M members whose noise is correlated."""
    size = len(centre) + 1
    noise = np.sqrt(correlation) * rng.normal(size=(resamples, 1)) + np.sqrt(1 - correlation) * rng.normal(
        size=(resamples, size - 1)
    )
    samples = np.zeros((resamples, size, size))
    samples[:, 0, 1:] = samples[:, 1:, 0] = centre + deviation * noise
    return samples


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_false_claims_stay_below_the_level(correlation):
    """True overlaps of 0 with eight members: neither verdict more often than the level."""
    rng, trials, names = np.random.default_rng(0), 1500, "cabdefghi"
    verdicts, bonferroni = [], []
    for _ in range(trials):
        observed = normal_samples(rng, np.zeros(8), 0.05, correlation, 1)[0]
        samples = normal_samples(rng, observed[0, 1:], 0.05, correlation, 199)
        verdicts.append(measure_coverage(observed, names, names[1:], samples=samples)["c"].verdict)
        bonferroni.append(measure_coverage(observed, names, names[1:], se=np.full((9, 9), 0.05))["c"].verdict)
    rate = np.mean([v == COVERED for v in verdicts])
    assert rate == pytest.approx(0.05, abs=0.018)  # 3 standard errors of 1500 trials
    corrected = np.mean([v == COVERED for v in bonferroni])
    assert corrected <= 0.05 + 0.015 and (correlation < 0.5 or corrected < rate - 0.01)
    assert np.mean([v == NOT_COVERED for v in verdicts]) <= 0.05 + 0.018


def test_a_true_overlap_is_found_more_often_with_correlated_resamples():
    rng, names, truth = np.random.default_rng(1), "cabdefghi", np.array([0.12, *[0.0] * 7])
    found, bonferroni = 0, 0
    for _ in range(300):
        observed = normal_samples(rng, truth, 0.05, 0.9, 1)[0]
        samples = normal_samples(rng, observed[0, 1:], 0.05, 0.9, 199)
        found += measure_coverage(observed, names, names[1:], samples=samples)["c"].verdict == COVERED
        bonferroni += measure_coverage(observed, names, names[1:], se=np.full((9, 9), 0.05))["c"].verdict == COVERED
    assert found > bonferroni > 100


def test_resampled_answers_give_the_verdicts_of_known_accuracies():
    """Four models: b helps a fully, c and a do not touch each other, d harms both."""
    full = np.array([
        [0.9, 0.4, 0.4, 0.5, 0.6],
        [0.9, 0.8, 0.8, 0.5, 0.4],
        [0.9, 0.8, 0.8, 0.5, 0.4],
        [0.9, 0.4, 0.4, 0.8, 0.4],
        [0.9, 0.3, 0.3, 0.3, 0.8],
    ])  # fmt: skip
    bits = np.random.default_rng(2).uniform(size=(5, 5, 2000)) < full[..., None]
    *_, samples = compute(resample_accuracies(bits, 400, seed=3))
    from_answers = by_definition(bits.mean(axis=-1))
    found = measure_coverage(from_answers, "abcd", ["b", "c"], samples=samples)
    assert found["a"].verdict == COVERED and found["a"].member == "b" and found["a"].p == pytest.approx(1 / 401)
    assert found["d"].verdict == NOT_COVERED
    np.testing.assert_allclose(found["a"].se, samples[:, 0, 1].std(), rtol=1e-12)
    alone = measure_coverage(from_answers, "abcd", ["c"], samples=samples)
    assert alone["a"].verdict == NOT_SHOWN and alone["a"].members == 1


def test_undefined_overlaps_are_left_out():
    rng = np.random.default_rng(4)
    samples = MATRIX + 0.05 * rng.normal(size=(99, 4, 4))
    matrix = MATRIX.copy()
    matrix[0] = matrix[:, 0] = np.nan
    assert measure_coverage(matrix, "abcd", ["a", "c"], samples=samples)["b"][1::5] == ("c", 1)
    assert measure_coverage(matrix, "abcd", ["c"], samples=samples)["a"].verdict == UNDEFINED
    assert measure_coverage(matrix, "abcd", ["a"], se=np.ones((4, 4)))["d"].verdict == UNDEFINED
    # Undefined in a few resamples: those count against a verdict. In many: the member is left out.
    few, many = samples.copy(), samples.copy()
    few[:3, :, 0] = few[:3, 0] = np.nan
    many[:30, :, 0] = many[:30, 0] = np.nan
    assert measure_coverage(MATRIX, "abcd", ["a"], samples=samples)["b"].p == pytest.approx(0.01)
    assert measure_coverage(MATRIX, "abcd", ["a"], samples=few)["b"].p == pytest.approx(0.04)
    assert measure_coverage(MATRIX, "abcd", ["a", "c"], samples=few)["b"].members == 2
    assert measure_coverage(MATRIX, "abcd", ["a", "c"], samples=many)["b"][1::5] == ("c", 1)
