"""Overlap against the published matrices, a loop written from the definition, and simulation."""

import numpy as np
import pytest
from scipy import stats

from analysis.overlap import overlap_matrix, score
from tests.analysis import published
from tests.analysis.matrices import by_definition, imagenet_c, noc
from tests.analysis.published import IMAGENET_C, NOC


def test_table7_gives_the_published_matrix():
    """Its entries do not depend on AlexNet's errors (they cancel in T); the gains do."""
    found = imagenet_c()
    assert published.FIGURE3_ROWS == IMAGENET_C == found.names
    np.testing.assert_allclose(found.overlap, published.FIGURE3, atol=0.01)
    np.testing.assert_allclose(score.mean_overlap(found.overlap), published.FIGURE3_MEAN, atol=0.01)
    assert score.mean_overlap(found.overlap).mean() == pytest.approx(0.244, abs=0.0005)
    np.testing.assert_allclose(found.gain, published.GAIN_IMAGENET_C, atol=0.0051)
    np.testing.assert_allclose(found.robustness[0], published.STANDARD_ROBUSTNESS, atol=0.006)
    assert found.robustness[1:].diagonal().min() > 0.945
    # S1's Set1 (noises, blurs, pixelate) are the eight largest mean overlaps.
    largest = np.argsort(-score.mean_overlap(found.overlap))[:8]
    assert {IMAGENET_C[i] for i in largest} == set(published.SET1)


def test_table8_gives_the_published_pairs():
    found = noc()
    expected = np.eye(8)
    for (a, b), value in published.NOC_PAIRS.items():
        i, j = NOC.index(a), NOC.index(b)
        expected[i, j] = expected[j, i] = value
    np.testing.assert_allclose(found.overlap, expected, atol=0.0051)
    assert (found.overlap[expected == 0] == 0).all()
    assert score.mean_overlap(found.overlap).mean() == pytest.approx(0.015, abs=0.0005)
    np.testing.assert_allclose(found.gain, published.GAIN_NOC, atol=0.0051)
    quant, shear = NOC.index("quantization"), NOC.index("shear")
    assert found.unclipped[quant, shear] == found.unclipped.min() == pytest.approx(-0.32, abs=0.005)
    assert found.flags == ("",) * 8


def test_table2_balance():
    for values, std, sample, spread, mean in (
        (published.TABLE2A, 12.1, 12.5, 40, 76.0),
        (published.TABLE2B, 3.7, 4.0, 11, 83.2),
    ):
        found = score.balance(values)
        assert found.std == pytest.approx(std, abs=0.06)
        assert found.sample_std == pytest.approx(sample, abs=0.06)
        assert (found.range, found.mean) == (spread, pytest.approx(mean, abs=0.06))
    np.testing.assert_array_equal(published.TABLE2A, published.TABLE7[1:, -1])


def test_outgoing_transfer_predicts_mce_and_overlap_does_not():
    found = imagenet_c()
    outgoing, incoming = score.mean_transfer(found.transfer)
    overlap = score.mean_overlap(found.overlap)
    assert np.corrcoef(outgoing, published.TABLE2A)[0, 1] == pytest.approx(-0.97, abs=0.005)
    assert np.corrcoef(overlap, published.TABLE2A)[0, 1] == pytest.approx(-0.64, abs=0.005)
    assert stats.spearmanr(outgoing, published.TABLE2A).statistic == pytest.approx(-0.96, abs=0.005)
    pixelate = IMAGENET_C.index("pixelate")
    assert (incoming[pixelate], outgoing[pixelate]) == (pytest.approx(0.66, abs=0.005), pytest.approx(0.16, abs=0.005))
    # Mean overlap says nothing of the mCE of models trained with one corruption of ImageNet-NOC.
    assert abs(np.corrcoef(score.mean_overlap(noc().overlap), published.TABLE2B)[0, 1]) < 0.1


@pytest.mark.parametrize("raw", [False, True])
def test_matches_the_definition_on_random_accuracies(raw):
    full = np.random.default_rng(0).uniform(0.2, 0.5, (7, 7))
    np.fill_diagonal(full, 0.9)
    found = overlap_matrix(full[:, 1:], np.ones(7) if raw else full[:, 0], names="abcdef")
    expected = by_definition(full, raw)
    np.testing.assert_allclose(found.unclipped, expected, rtol=1e-12)
    np.testing.assert_allclose(found.overlap, np.maximum(expected, 0), rtol=1e-12)
    np.testing.assert_array_equal(found.overlap.diagonal(), 1)


@pytest.mark.parametrize(
    ("of", "table", "alexnet", "names", "raw"),
    [
        (noc, published.TABLE8, published.ALEXNET_NOC, NOC, False),
        (noc, published.TABLE8, published.ALEXNET_NOC, NOC, True),
        (imagenet_c, published.TABLE7, published.ALEXNET_S4, IMAGENET_C, False),
    ],
)
def test_standard_errors_match_simulated_test_sets(of, table, alexnet, names, raw):
    """First order falls short by up to an eighth where a gain is small (jpeg: .10), and nowhere else by much."""
    number, found = 5000, of(number=5000, raw=raw)
    full = published.accuracies(table, alexnet, names)
    simulated = np.random.default_rng(2).binomial(number, full, (3000, *full.shape)) / number
    ratio = (simulated if raw else simulated / simulated[:, :, :1])[:, :, 1:]
    gains = np.diagonal(ratio[:, 1:], axis1=1, axis2=2) - ratio[:, 0]
    transfer = (ratio[:, 1:] - ratio[:, :1]) / gains[:, None]
    spread, off = ((transfer + transfer.swapaxes(1, 2)) / 2).std(axis=0), ~np.eye(len(names), dtype=bool)
    np.testing.assert_allclose(found.se[off], spread[off], rtol=0.125)
    assert abs(np.median(found.se[off] / spread[off]) - 1) < 0.02
    assert (found.se.diagonal() == 0).all()
    np.testing.assert_allclose(found.gain_se, gains.std(axis=0), rtol=0.06)


def test_seeds_average_accuracies_and_add_their_variance():
    rng = np.random.default_rng(3)
    base = np.array([[0.8, 0.4, 0.4], [0.8, 0.7, 0.5], [0.8, 0.45, 0.7]])
    seeds = base + rng.normal(0, 0.02, (3, 3, 3))
    found = overlap_matrix(seeds, names="ab", number=2000)
    np.testing.assert_allclose(found.unclipped, by_definition(seeds.mean(axis=0)), rtol=1e-12)
    left = np.array([by_definition(np.delete(seeds, s, axis=0).mean(axis=0)) for s in range(3)])
    between = 2 / 3 * ((left - left.mean(axis=0)) ** 2).sum(axis=0)
    within = overlap_matrix(seeds.mean(axis=0), names="ab", number=2000).se ** 2
    np.testing.assert_allclose(found.se[0, 1], np.sqrt(between + within)[0, 1], rtol=1e-9)
    assert found.seeds == 3
    only_seeds = overlap_matrix(seeds, names="ab")
    np.testing.assert_allclose(only_seeds.se[0, 1], np.sqrt(between)[0, 1], rtol=1e-9)
    assert np.isnan(overlap_matrix(base, names="ab").se[0, 1])


def test_the_jackknife_covers_the_true_spread_over_trainings():
    """Mean of the squared SE over many studies of 5 seeds = variance of the estimate."""
    rng = np.random.default_rng(4)
    base = np.array([[0.8, 0.4, 0.4], [0.8, 0.7, 0.5], [0.8, 0.45, 0.7]])
    found = [overlap_matrix(base + rng.normal(0, 0.01, (5, 3, 3)), names="ab") for _ in range(400)]
    spread = np.std([f.unclipped[0, 1] for f in found])
    assert np.sqrt(np.mean([f.se[0, 1] ** 2 for f in found])) == pytest.approx(spread, rel=0.12)


def test_a_corruption_without_gain_is_invalid_and_its_sign_never_flips():
    full = np.array([[0.8, 0.4, 0.6, 0.5], [0.8, 0.7, 0.5, 0.52], [0.8, 0.3, 0.55, 0.5], [0.8, 0.5, 0.6, 0.53]])
    found = overlap_matrix(full, names=("a", "b", "c"), number=1000)
    assert found.flags == ("", "invalid", "weak")
    assert np.isnan(found.overlap[1]).all() and np.isnan(found.overlap[:, 1]).all() and np.isnan(found.se[1]).all()
    assert np.isnan(found.transfer[:, 1]).all() and np.isfinite(found.transfer[1, [0, 2]]).all()
    assert np.isfinite(found.overlap[np.ix_([0, 2], [0, 2])]).all()
    np.testing.assert_allclose(found.overlap[0, 2], by_definition(full)[0, 2])
    assert [w.split(":")[0] for w in found.warnings] == ["b", "c"]
    # Exactly zero gain, where the code of the papers divides 0 by 0.
    full[2, 2] = full[0, 2]
    assert overlap_matrix(full, names=("a", "b", "c")).flags == ("", "invalid", "")


def test_weak_is_below_three_hundredths_or_three_standard_errors():
    def flag(gain, number):
        full = np.array([[0.5, 0.2, 0.2], [0.5, 0.2 + gain / 2, 0.2], [0.5, 0.2, 0.4]])
        found = overlap_matrix(full, names="ab", number=number)
        return found.flags[0], found.gain_se[0]

    assert flag(0.029, None)[0] == "weak" and flag(0.031, None)[0] == ""
    for gain in (0.05, 0.4):
        name, se = flag(gain, 100)
        assert name == ("weak" if gain < 3 * se else "")
    assert flag(0.05, 100)[0] == "weak" and flag(0.4, 2000)[0] == ""


def test_a_standard_model_near_chance_is_flagged():
    full = np.array([[0.12, 0.05], [0.12, 0.11]])
    above = overlap_matrix(full, names="a", num_classes=100)
    assert above.flags == ("",) and above.warnings == ()
    near = overlap_matrix(full, names="a", num_classes=10)
    assert near.flags == ("weak",) and near.overlap == above.overlap
    (warning,) = near.warnings
    assert warning.startswith(
        "standard: clean accuracy 0.1200 is near chance (expected at least 0.1450 with 10 classes"
    )
    few = overlap_matrix(full, names="a", num_classes=100, number=50)  # 3 SE above chance are required
    assert few.flags == ("weak",) and "near chance" in few.warnings[0]


@pytest.mark.parametrize("number", [None, 100])
@pytest.mark.parametrize("model, defined", [(0, []), (1, [1])])
def test_without_a_right_answer_on_clean_images_no_overlap_is_defined(model, defined, number):
    full = np.array([[0.5, 0.2, 0.2], [0.5, 0.3, 0.2], [0.5, 0.2, 0.4]])
    full[model, 0] = 0
    found = overlap_matrix(full, names="ab", number=number)
    assert [k for k, flag in enumerate(found.flags) if flag != "invalid"] == defined
    assert np.isnan(found.overlap[0, 1]) and np.isnan(found.gain[0])
    assert f"{('standard', 'a')[model]}: clean accuracy 0, so no overlap of it is defined" in found.warnings


def test_a_model_far_below_the_standard_one_is_reported():
    full = np.array([[0.8, 0.4, 0.4], [0.69, 0.6, 0.4], [0.75, 0.4, 0.7]])
    (warning,) = overlap_matrix(full, names="ab").warnings
    assert warning.startswith("a: clean accuracy 0.6900 is far below the standard model's 0.8000")
    assert imagenet_c().warnings == ()


def test_equal_robustness_is_no_gain_whatever_its_last_bit():
    """Right answers [model, condition] whose ratios are equal fractions: of 30/45 and 20/30, floats differ."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        base, times = rng.integers(1, 60, 2), rng.integers(1, 16, 3)
        clean, right = int(max(base)), int(min(base))
        number = 1000
        counts = np.array([[clean * t, right * t, right * t] for t in times.tolist()]) / number
        found = overlap_matrix(counts, names=("a", "b"), number=number)
        assert (found.gain == 0).all() and found.flags == ("invalid", "invalid") and np.isnan(found.unclipped).all()
    assert np.array_equal(score.compute([[0.9, 0.6], [0.9, 0.6 + 1e-6]])[1] > 0, [True])


@pytest.mark.parametrize("number, seeds", [(7, 1), (1000, 1), (50_000, 3), (99_991, 5)])
def test_of_counts_equal_ratios_are_none_and_unequal_ones_are_some_exactly(number, seeds):
    """Random counts of right answers over a number and seeds, some of equal ratios: the sign of a gain is that of integers."""
    rng, ties = np.random.default_rng(number), 0
    for _ in range(300):
        right = rng.integers(1, number + 1, (seeds, 3, 3))
        if (tie := rng.integers(3)) < 2:  # the sums over seeds have one ratio: all but clean and own of model 1 + tie
            right[:, 1 + tie] = right[:, 0][rng.permutation(seeds)]
        total = right.sum(axis=0).tolist()
        found = overlap_matrix(right / number, names=("a", "b"), number=number)
        for j in (1, 2):
            apart = total[j][j] * total[0][0] - total[0][j] * total[j][0]
            ties += apart == 0
            assert np.sign(found.gain[j - 1]) == np.sign(apart)
            assert found.gain[j - 1] == pytest.approx(apart / (total[j][0] * total[0][0]), rel=1e-12)
            assert (found.flags[j - 1] == "invalid") == (apart <= 0)
    assert ties > 100


def test_ratios_of_counts_that_differ_by_less_than_floats_tell_are_told_apart():
    number = 10**8
    counts = [[number, number - 1], [number - 1, number - 2]]  # a gain of -1e-16
    for sign, right in ((-1, counts), (1, counts[::-1])):
        gain = overlap_matrix(np.array(right) / number, names=("a",), number=number).gain
        assert gain[0] == pytest.approx(sign * 1e-16, rel=1e-6)
    with_rounded = overlap_matrix(np.round([[2 / 3, 1 / 3], [1 / 3, 1 / 6]], 4), names=("a",), number=12)
    assert with_rounded.gain[0] == pytest.approx(0.1667 / 0.3333 - 0.3333 / 0.6667)  # no counts: as given
