"""Cells, their means as published, and resampling of base images against loops."""

import math

import numpy as np
import pytest

from analysis import answers
from analysis.answers import PLAIN, SCALED, Answered, Record
from analysis.confidence import cells, metrics, resampling
from analysis.confidence.cells import ALL, Cells
from analysis.confidence.metrics import binned, ranked
from analysis.errors.scores import Benchmark
from corruptions.scoring.confidence import Confidence, decode, encode_probabilities, pack
from tests.analysis.confidence.fixtures_test import brier, losses
from tests.refusing import refuses

NUMBER, CLASSES = 120, 4
CONDITIONS = [("clean", 0), *((f"imagenet_c/{name}", k) for name in ("fog", "snow") for k in (1, 2, 3))]
TWO = Benchmark("two", "levels", {"imagenet_c/fog": (1, 2, 3), "imagenet_c/snow": (1, 2, 3)})


def answered(seed):
    """(`Answered`, probabilities, labels) of made-up answers, with ties."""
    generator = np.random.default_rng(seed)
    shares = generator.dirichlet(np.full(CLASSES, 0.6), NUMBER)
    drawn = 1 + np.stack([generator.multinomial(60, row) for row in shares])
    p, right = drawn.astype(np.float32) / 64, generator.random(NUMBER) < 0.6  # exact, so ties stay
    labels = np.where(right, p.argmax(1), generator.integers(0, CLASSES, NUMBER)).astype(np.int32)
    predicted = p.argmax(1).astype(np.int32)
    stored = pack(encode_probabilities(p, labels, predicted))
    return Answered(predicted == labels, {PLAIN: stored}), p, labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A workdir of two seeds under seven conditions; the second has a scaled set too."""
    folder = tmp_path_factory.mktemp("cells") / "work"
    for place, (corruption, severity) in enumerate(CONDITIONS):
        of = {("standard", seed): answered(10 * place + seed)[0] for seed in (0, 1)}
        one = of["standard", 1]
        of["standard", 1] = one._replace(confidence=one.confidence | {SCALED: one.confidence[PLAIN]})
        record = Record(corruption, severity, None, NUMBER, {}, {}, {}, {("standard", 1): 1.5})
        answers.write(folder / answers.FOLDER, of, record)
    return folder


@pytest.fixture(scope="module")
def read(folder):
    found = answers.read(folder)
    return Cells(found.confidence, list(dict.fromkeys(cell[2:] for cell in found)), [TWO])


def only(frame):
    """The only row of a frame."""
    (row,) = frame.itertuples()
    return row


def test_a_cell_has_the_measures_of_its_probabilities(read):
    table = read.table()
    assert len(table) == 7 * 3 and table.columns[5] == "images"
    _, p, labels = answered(10 * 2 + 1)  # fog 2
    of = table.seed.eq(1) & table.set.eq(PLAIN) & table.corruption.eq("imagenet_c/fog") & table.severity.eq(2)
    row = only(table[of])
    p = p.astype(float)
    k, hit = p.max(1), p.argmax(1) == labels
    assert row.accuracy == hit.mean() and row.over == pytest.approx(k.mean() - hit.mean(), abs=1e-6)
    assert row.nll == pytest.approx(losses(p, labels).mean(), abs=5e-4)
    assert row.brier == pytest.approx(brier(p, labels).mean(), abs=1e-3)
    assert row.ece == pytest.approx(metrics.ece(binned(k, hit)), abs=1e-5)
    assert row.debiased == pytest.approx(metrics.debiased_square(binned(k, hit, mass=True)), abs=1e-5)
    assert row.aurc == pytest.approx(metrics.aurc(ranked(k, hit)), abs=1e-4)
    assert row.auroc == pytest.approx(metrics.auroc(ranked(k, hit)), abs=1e-4) and row.clipped == 0


def test_means_are_over_corruptions_then_severities_and_leave_clean_out(read):
    table = read.table()
    found = {(one.seed, one.set, one.benchmark, one.severity): one for one in cells.means(table, [TWO])}
    assert found[0, PLAIN, "clean", ALL].corruptions == 0
    for seed in (0, 1):
        part = table[(table.seed == seed) & (table.set == PLAIN) & (table.corruption != "clean")]
        for name in ("nll", "ece", "aurc", "debiased"):
            of = found[seed, PLAIN, "two", ALL]
            assert of.values[name] == pytest.approx(part[name].mean()) and of.corruptions == 2
            third = part[part.severity == 3][name].mean()
            assert found[seed, PLAIN, "two", "3"].values[name] == pytest.approx(third)
    frame = cells.summary(list(found.values()), {("standard", PLAIN, "two", "levels", "nll"): (1.0, 2.0)})
    of = frame.benchmark.eq("two") & frame.severity.eq(ALL) & frame.set.eq(PLAIN) & frame.measure.eq("nll")
    row = only(frame[of])
    values = [found[seed, PLAIN, "two", ALL].values["nll"] for seed in (0, 1)]
    assert (row.mean, row.seeds, row.low, row.high) == (pytest.approx(np.mean(values)), 2, 1.0, 2.0)
    assert row.std == pytest.approx(np.std(values, ddof=1))


def test_undefined_cells_are_left_out_and_counted(read):
    table = read.table()
    table = table[(table.seed == 0) & (table.corruption != "clean")].reset_index(drop=True)
    table.loc[0, "auroc"] = math.nan
    one = Benchmark("one", "levels", {"imagenet_c/fog": (1, 2, 3)})
    (*_, mean) = cells.means(table[table.corruption == "imagenet_c/fog"], [one])
    assert mean.undefined == 1
    assert mean.values["auroc"] == pytest.approx(table.auroc[1:3].mean())


def of_labels(p, labels):
    predicted = p.argmax(1).astype(np.int32)
    return decode(pack(encode_probabilities(p, labels, predicted)), predicted == labels)


def rows(found: Confidence, index):
    return Confidence(*(values[index] for values in found))


def test_resamples_are_those_of_a_loop_over_drawn_images():
    found = of_labels(*answered(3)[1:])
    drawn = resampling.Resamples(NUMBER, 4, seed=7).of(found)
    generator = np.random.default_rng([7, NUMBER])
    whole = metrics.edges(found.top, 15, True)
    for k, index in enumerate([np.arange(NUMBER), *(generator.integers(0, NUMBER, NUMBER) for _ in range(4))]):
        part = rows(found, index)
        places = np.searchsorted(whole, part.top)
        fixed = metrics._of_places(places, part.top, part.correct.astype(float), len(whole) + 1)
        order, ece = ranked(-part.rest, part.correct), metrics.ece(binned(part.top, part.correct))
        expected = [*(values.mean() for values in (part.correct, part.loss, part.brier)), ece]
        expected += [metrics.debiased_square(fixed), metrics.aurc(order), metrics.auroc(order)]
        np.testing.assert_allclose(drawn[:, k], expected, rtol=1e-10)
    np.testing.assert_array_equal(drawn, resampling.Resamples(NUMBER, 4, seed=7).of(found))
    refuses(lambda: resampling.Resamples(NUMBER, 4).of(rows(found, np.arange(5))), "answers to the same 120")


@pytest.mark.parametrize("over", [0, 0.05])
def test_the_intervals_of_the_debiased_square_hold_it(over):
    """Models that are calibrated, or too sure by 5 points: the square of the gap is 0 or .0025."""
    rng, resamples, held = np.random.default_rng(0), resampling.Resamples(1000, 100), []
    for _ in range(30):
        k = rng.uniform(0.55, 0.99, 1000)
        p = np.stack([k, 1 - k], 1).astype(np.float32)
        labels = (rng.random(1000) >= k - over).astype(np.int32)
        low, high = resampling.intervals(resampling.mean([[resamples.of(of_labels(p, labels))]]))["debiased"]
        held.append(low <= over**2 <= high)
    assert np.mean(held) >= 0.9


def test_intervals_are_percentiles_and_pivots_and_differences_are_paired():
    found, other = (of_labels(*answered(seed)[1:]) for seed in (3, 4))
    resamples = resampling.Resamples(NUMBER, 300)
    one, two = (resampling.mean([[resamples.of(of)]]) for of in (found, other))
    ends = resampling.intervals(one)
    assert "ece" not in ends
    loss = one["nll"]
    assert ends["nll"] == pytest.approx(tuple(np.percentile(loss[1:], [2.5, 97.5])))
    width = ends["nll"][1] - ends["nll"][0]
    assert width == pytest.approx(2 * 1.96 * found.loss.std() / NUMBER**0.5, rel=0.15)
    low, high = np.percentile(one["debiased"][1:], [2.5, 97.5])
    centre = one["debiased"][0] + np.mean(one["debiased"][1:])  # twice the value, and the bias of the resamples
    assert ends["debiased"] == pytest.approx((centre - high, centre - low))
    apart = resampling.differences(one, two)
    assert apart["nll"][0] == pytest.approx(other.loss.mean() - found.loss.mean())
    paired = np.std(other.loss - found.loss) / NUMBER**0.5
    assert apart["nll"][2] - apart["nll"][1] == pytest.approx(2 * 1.96 * paired, rel=0.15)
    same = resampling.differences(one, one)
    assert all(value == (0, 0, 0) for value in same.values())  # the same images in both


def test_means_over_cells_leave_undefined_measures_out():
    found = of_labels(*answered(3)[1:])
    right = rows(found, np.flatnonzero(found.correct))
    number = len(right.loss)
    resamples = resampling.Resamples(number, 3)
    mixed = right._replace(correct=np.arange(number) % 2 == 0)
    mean = resampling.mean([[resamples.of(right)], [resamples.of(mixed)]])
    np.testing.assert_array_equal(mean["auroc"], resamples.of(mixed)[-1])
    assert np.isnan(resampling.mean([[resamples.of(right)]])["auroc"]).all()


def test_resamples_of_a_workdir_are_means_over_cells_and_seeds(read):
    gathered, agreed = resampling.Resampled(read.averaged, 5), cells.Disagreement()
    table = read.table(visit=[gathered, agreed])
    grid = [[(name, at) for at in row] for name, row in TWO.members.items()]
    means = gathered.means(grid)
    assert set(means) == {("standard", PLAIN), ("standard", SCALED)}
    plain = table[table.set.eq(PLAIN) & table.corruption.ne("clean")]
    for name in ("accuracy", "nll", "ece", "aurc", "auroc"):
        assert means["standard", PLAIN][name][0] == pytest.approx(plain[name].mean()), name
    assert means["standard", PLAIN]["nll"].shape == (6,)
    assert gathered.means([[("noc/hue", 1)]]) == {}
    row = agreed.table().iloc[3]
    a, b = (read.read(CONDITIONS[3])["standard", seed, PLAIN].predicted for seed in (0, 1))
    assert (row.corruption, row.severity, row.seeds) == (*CONDITIONS[3], 2)
    assert row.disagreement == pytest.approx((a != b).mean())


def test_accuracies_are_not_certain_where_all_answers_are_alike():
    """Also in differences of two models that are right everywhere, and in means over conditions."""
    conditions, p = [("clean", 0), ("imagenet_c/fog", 1)], np.full((20, CLASSES), 0.01)
    p[:, 1] = 0.97
    found = of_labels(p, np.ones(20, np.int32))
    drawn = resampling.Resampled(conditions, 1000)
    for condition in conditions:
        drawn(condition, {("a", 0, PLAIN): found, ("b", 0, PLAIN): found})
    means = drawn.means([conditions[1:]])
    low, high = resampling.intervals(means["a", PLAIN])["accuracy"]
    assert 0.75 < low < 0.9 and high <= 1 and means["a", PLAIN]["accuracy"][0] == 1
    difference, low, high = resampling.differences(means["a", PLAIN], means["b", PLAIN])["accuracy"]
    assert difference == 0 and low < -0.05 and high > 0.05
