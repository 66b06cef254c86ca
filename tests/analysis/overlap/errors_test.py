"""Standard errors against plain loops, the delta method and known truth, in every place that shows them."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from analysis.overlap import overlap_matrix, uncertainty
from analysis.overlap import study as overlap_study
from analysis.overlap.measured import read_overlap
from analysis.overlap.score import compute
from analysis.overlap.uncertainty import Repeats, resample_accuracies, standard_errors
from corruptions.scoring import intervals
from tests.analysis import published
from tests.analysis.published import NOC
from tests.tools import report_studies

NAMES = ("a/x", "a/y", "a/z")
SEEDS = (0, 1, 2)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("errors") / "work"
    bits = report_studies.write(workdir, NAMES, SEEDS, number=600)
    return workdir, bits


BY_HAND = ("mean_overlap", "outgoing", "incoming", "gain", "standard", "trained", "clean")


def by_hand(accuracy):
    """Mean overlap, outgoing and incoming transfer, and gain from accuracies [1 + n, 1 + n], clean first."""
    n = len(accuracy) - 1
    r = accuracy / accuracy[:, :1]
    gain = np.array([r[j, j] - r[0, j] for j in range(1, n + 1)])
    t = np.array([[(r[i, j] - r[0, j]) / gain[j - 1] for j in range(1, n + 1)] for i in range(1, n + 1)])
    o = np.maximum((t + t.T) / 2, 0)
    others = [[k for k in range(n) if k != j] for j in range(n)]
    rows = [np.mean([table[j, k] for k in others[j]]) for table in (o, t, t.T) for j in range(n)]
    return np.concatenate([rows, gain, r[0, 1:], np.diag(r)[1:], accuracy[:, 0]])


def test_errors_of_means_are_those_of_a_plain_loop(study):
    _, bits = study
    one = bits[:1]
    number = one.shape[-1]
    found = standard_errors(one)
    rng = np.random.default_rng(7)
    draws = []
    for _ in range(1500):  # half an image right and half a one wrong beside the images, of each accuracy
        weights, more = rng.exponential(size=number), rng.gamma(0.5, size=(2, 4, 4))
        draws.append(by_hand((one[0] @ weights + more[0]) / (weights.sum() + more.sum(axis=0))))
    expected = np.std(draws, axis=0)
    expected[-len(NAMES) - 1 :] = intervals.of_accuracy(one[0][:, 0].mean(axis=-1), number)  # of test images alone
    values = np.concatenate([getattr(found, name) for name in BY_HAND])
    # The clipped mean is no normal variable, so its half width and its deviation differ a little more.
    np.testing.assert_allclose(values[3:], expected[3:], rtol=0.12)
    np.testing.assert_allclose(values[:3], expected[:3], rtol=0.3, atol=1e-3)


def test_errors_of_one_seed_are_deviations_over_resampled_images_and_say_so(study):
    _, bits = study
    overlaps = [
        overlap_matrix(a, names=NAMES).unclipped for a in resample_accuracies(bits[:1], uncertainty.RESAMPLES, seed=0)
    ]
    found = standard_errors(bits[:1])
    np.testing.assert_allclose(found.overlap, np.std(overlaps, axis=0), rtol=1e-3, atol=1e-4)
    for seeds, text in ((1, "test images only"), (len(SEEDS), "test images and 3 trainings")):
        overlap = overlap_matrix(bits[:seeds].mean(axis=-1), names=NAMES, number=bits.shape[-1])
        assert standard_errors(bits[:seeds], 20).held == text
        assert f", of {text}):" in overlap_study.overlap_text(overlap, found.overlap)


def test_a_matrix_without_any_defined_overlap_says_so_and_nothing_else():
    """Resamples with a gain give its pairs errors, though the study has none."""
    accuracy = np.array([[0.9, 0.6, 0.6], [0.9, 0.6, 0.7], [0.9, 0.7, 0.59]])
    none, se = overlap_matrix(accuracy, names=NAMES[:2], number=300), np.full((2, 2), 15.497)
    text = overlap_study.overlap_text(none, se)
    assert "overlap: undefined, for no pair of corruptions has a gain on both\nwarning" in text
    assert "15.497" not in text and "nan" not in text.split("overlap:")[1]
    accuracy[1, 1] = 0.8
    one = overlap_matrix(accuracy, names=NAMES[:2], number=300)
    assert "overlap: undefined" in overlap_study.overlap_text(one, se)
    accuracy[2, 2] = 0.8
    assert "standard error 15.497" in overlap_study.overlap_text(overlap_matrix(accuracy, names=NAMES[:2]), se)


# Accuracies of synthetic studies: a probit model in which images, images under a condition, trainings, trainings under a
# condition, and single answers add normal noise, so that the expected accuracies are known exactly.
IMAGES, IMAGES_UNDER, ANSWERS = 1.2, 0.7, 0.5


def synthetic(rng, seeds, training, under, number, candidates=6):
    """(accuracies without noise [1 + n, 1 + n], answers [seeds, 1 + n, 1 + n, number])."""
    diagonal = np.arange(1, candidates + 1)
    mean = np.full((candidates + 1, candidates + 1), 1.6)
    mean[:, 1:] += rng.uniform(-2.1, -0.4, candidates)
    gains = rng.uniform(0.5, 1.2, candidates)
    alike = rng.uniform(0, 0.6, (candidates, candidates))
    baseline = mean[0].copy()
    mean[1:, 1:] += (alike + alike.T) / 2 * gains
    mean[diagonal, diagonal] = baseline[1:] + gains
    total = np.sqrt(IMAGES**2 + IMAGES_UNDER**2 + training**2 + under**2 + ANSWERS**2)
    truth = scipy.stats.norm.cdf(mean / total)
    models = candidates + 1
    latent = mean[..., None] + IMAGES * rng.normal(size=number) + IMAGES_UNDER * rng.normal(size=(models, number))
    latent = (
        latent + training * rng.normal(size=(seeds, models, 1, 1)) + under * rng.normal(size=(seeds, models, models, 1))
    )
    return truth, latent + ANSWERS * rng.normal(size=(seeds, models, models, number)) > 0


def coverage(seeds, training, under, studies, number, resamples, candidates=6, repeated=0):
    """Shares of the true overlaps within 1.96 errors: errors of images alone, errors of images and trainings.

    With `repeated`, the overlaps come from the first seed, the noise of training from that many models' seeds.
    """
    rng, within, pairs = np.random.default_rng(0), [], np.triu_indices(candidates, 1)
    for study in range(studies):
        truth, bits = synthetic(rng, seeds, training, under, number, candidates)
        rows = tuple(range(0, 2 * repeated, 2))
        repeats = Repeats(bits[:, rows], rows) if repeated else None
        bits = bits[:1] if repeated else bits
        found, truth = (compute(accuracy)[-1] for accuracy in (bits.mean(axis=(0, -1)), truth))
        *_, drawn = compute(resample_accuracies(bits, resamples, study))
        errors = np.std(drawn, axis=0), standard_errors(bits, resamples, study, repeats).overlap
        within.append([np.mean((np.abs(found - truth) < 1.96 * error)[pairs]) for error in errors])
    return np.mean(within, axis=0)


def test_training_noise_widens_the_intervals_to_what_they_promise():
    shares = coverage(2, 0.06, 0.06, studies=16, number=500, resamples=100)
    assert shares[0] < 0.85 and 0.9 < shares[1] <= 0.99


def test_second_trainings_of_some_models_tell_the_noise_of_training_of_all():
    shares = coverage(2, 0.06, 0.06, studies=16, number=500, resamples=100, candidates=9, repeated=5)
    assert shares[0] < 0.85 and 0.9 < shares[1] <= 0.99


def test_errors_of_other_numbers_hold_the_noise_of_training_too():
    """Two seeds of seven models tell the noise of training within a fifth, so that fewer than 95 % lie within 1.96 errors."""
    rng, within = np.random.default_rng(1), []
    for study in range(40):
        truth, bits = synthetic(rng, 2, training=0.12, under=0.12, number=2000)
        errors = standard_errors(bits, 100, study)
        spread = np.concatenate([getattr(errors, name) for name in BY_HAND])
        within.append(np.abs(by_hand(bits.mean(axis=(0, -1))) - by_hand(truth)) < 1.96 * spread)
    assert 0.89 < np.mean(within) <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize(("training", "under"), [(0, 0), (0.04, 0.04), (0.1, 0.1)])
def test_nominal_95_percent_intervals_hold_92_to_98_percent_of_the_overlaps(seeds, training, under):
    alone, held = coverage(seeds, training, under, studies=60, number=1000, resamples=200)
    assert 0.92 <= held <= 0.98
    assert not training or alone < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("repeated", [5, 13])
# One training of noise .07 is about the mean of two of noise .1. At .1 gains come near 0, the deviations over resamples
# grow, and the intervals of one training hold 98.5 %.
@pytest.mark.parametrize(("training", "under"), [(0, 0), (0.04, 0.04), (0.07, 0.07)])
def test_intervals_from_second_trainings_of_some_models_hold_92_to_98_percent(repeated, training, under):
    sizes = {"studies": 60, "number": 1000, "resamples": 200, "candidates": 26}
    alone, held = coverage(2, training, under, repeated=repeated, **sizes)
    assert 0.92 <= held <= 0.98
    assert not training or alone < 0.9


@pytest.mark.parametrize("seeds", [(0,), SEEDS])
def test_the_table_the_picture_and_the_report_show_the_same_errors(tmp_path, monkeypatch, seeds):
    workdir = tmp_path / "work"
    bits = report_studies.write(workdir, NAMES, seeds, number=300)
    drawn = {}
    monkeypatch.setattr(overlap_study.figures, "save", lambda figure, stem, formats: None)
    monkeypatch.setattr(overlap_study.figures, "heatmap", lambda *_, se, **options: drawn.update(se=se))
    overlap_study.write_results(
        workdir, NAMES, seeds, dataset="shapes", num_classes=10, threshold=0.1, origin="a study"
    )
    table = read_overlap(workdir / "overlap.csv").se
    off = ~np.eye(len(NAMES), dtype=bool)
    assert np.all(table[off] > 0)
    np.testing.assert_array_equal(drawn["se"][off], table[off])
    found = overlap_study.Study.of(NAMES, bits, seeds).errors
    np.testing.assert_array_equal(found.overlap[off], table[off])
    assert set(pd.read_csv(workdir / "overlap_long.csv")["se_holds"]) == {found.held}


def test_what_is_undefined_stays_undefined():
    accuracy = np.full((1, 4, 4), 0.6)
    accuracy[0, :, 0] = 0.9
    accuracy[0, [1, 3], [1, 3]] = 0.8
    accuracy[0, 2, 2] = 0.4  # training on the second corruption harms it
    found = standard_errors(np.random.default_rng(0).uniform(size=(1, 4, 4, 5000)) < accuracy[..., None], resamples=100)
    undefined = np.zeros((3, 3), bool)
    undefined[:, 1] = True
    np.testing.assert_array_equal(np.isnan(found.transfer), undefined)
    np.testing.assert_array_equal(np.isnan(found.overlap), undefined | undefined.T)
    np.testing.assert_array_equal(np.isnan(found.unclipped_samples).all(axis=0), undefined | undefined.T)
    np.testing.assert_array_equal(np.isnan(found.mean_overlap), [False, True, False])
    assert np.isfinite(found.gain).all() and np.isfinite(found.outgoing).all()


def test_an_undefined_overlap_has_no_error():
    """Also where some resamples define it: a resample may have a gain that the study has not."""
    bits = np.random.default_rng(0).random((1, 3, 3, 200)) < 0.12
    bits[:, 2, 2] = np.roll(bits[:, 0, 2], 1, axis=-1)  # trained or not: as many right
    found = overlap_study.Study.of(("noc/border", "noc/hue"), bits, (0,))
    assert np.isnan(found.overlap.unclipped[0, 1]) and np.isnan(found.errors.overlap[0, 1])
    assert np.isfinite(found.errors.unclipped_samples[:, 0, 1]).any()


def simulated_bits(rng, full, number, shared=True):
    """Correctness with the given accuracies; shared difficulty correlates the answers of all models."""
    noise = rng.uniform(size=(*full.shape, number))
    if shared:
        noise = 0.5 * noise + 0.5 * rng.uniform(size=number)
        noise = noise.argsort(axis=-1).argsort(axis=-1) / number
    return noise < full[..., None]


def resampled_errors(bits, resamples, seed=0):
    """Errors of one training, from its bits [1 + n, 1 + n, N]."""
    return standard_errors(bits[None], resamples, seed)


def test_resampled_accuracies_are_the_posterior_of_jeffreys_and_keep_pairs():
    bits = np.zeros((3, 3, 20), bool)
    bits[0, 1, :7], bits[1, 1, 1:8], bits[2, 2] = True, True, True  # two models with six images in common; all right
    drawn = resample_accuracies(bits, 4000, seed=7).astype(float)
    for place, right in (((0, 0), 0), ((0, 1), 7), ((2, 2), 20)):
        posterior = scipy.stats.beta(right + 0.5, 20.5 - right)
        assert scipy.stats.kstest(drawn[:, place[0], place[1]], posterior.cdf).pvalue > 1e-3
    apart = drawn[:, 0, 1] - drawn[:, 1, 1]
    assert apart.std() < 0.6 * np.hypot(drawn[:, 0, 1].std(), drawn[:, 1, 1].std())
    several = resample_accuracies(np.stack([bits, ~bits]), 4000, seed=7)
    np.testing.assert_allclose(several.mean(axis=0), 0.5, atol=0.01)


def test_bootstrap_agrees_with_the_delta_method_on_independent_answers():
    full = published.accuracies(published.TABLE8, published.ALEXNET_NOC, NOC)
    bits = simulated_bits(np.random.default_rng(6), full, 3000, shared=False)
    errors = resampled_errors(bits, 600)
    delta = overlap_matrix(bits.mean(axis=-1), names=NOC, number=3000)
    off = ~np.eye(8, dtype=bool)
    ratio = errors.overlap[off] / delta.se[off]
    assert np.median(ratio) == pytest.approx(1, abs=0.05) and ratio.min() > 0.8 and ratio.max() < 1.25
    lower, upper = np.percentile(errors.unclipped_samples, (2.5, 97.5), axis=0)
    assert (lower <= delta.unclipped + 1e-12).all() and (delta.unclipped <= upper + 1e-12).all()
