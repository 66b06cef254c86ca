"""projects.coverage: the order of the models, a study that continues from answers alone, tables from known answers."""

import itertools
import json
import re
import shutil
import types

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import corruptions
from analysis import answers
from analysis.answers import Answered, Record
from analysis.overlap import study as overlap_study
from analysis.overlap.measured import MeasuredOverlap
from analysis.selection.nk_benchmarks import categories
from configs import coverage
from corruptions.scoring.conditions import expand
from corruptions.scoring.confidence import STORED
from projects.coverage import __main__ as driver
from projects.coverage import benchmarks as of_benchmarks
from projects.coverage import page, results, tables
from tests.analysis import published
from tests.processes import ROOT
from tests.refusing import refuses
from tests.training import tiny

RESULTS = ROOT / "docs/results/coverage"
NAMES = ("imagenet_c/fog", "imagenet_c/contrast", "noc/border", "noc/hue", "laion_c/mosaic")


def test_the_study_has_each_candidate_once():
    names = expand(coverage.get_config().study.corruptions)
    large = expand(coverage.get_config("imagenet100").study.corruptions)
    assert len(names) == len(set(names)) == 48 and len(large) == 49 and {*large} - {*names} == {"noc/rhombus"}
    sizes = {benchmark: len(of_benchmarks.members(benchmark, names)) for benchmark in of_benchmarks.BENCHMARKS}
    assert sizes == {
        "imagenet_c": 15, "imagenet_noc": 8, "noc_candidates": 22, "laion_c": 6, "optics": 4, "camera": 3,
    }  # fmt: skip
    assert of_benchmarks.members("imagenet_noc", names) == expand(["imagenet_noc"])
    for variant in ("cifar10", "cpu", "imagenet100"):
        assert coverage.get_config(variant).imports == ("projects.coverage.bank",)  # the tiles of two of LAION-C's


def test_standard_models_and_mixtures_of_a_seed_come_before_its_candidates():
    keys = driver.plan(("a", "b"), ("mixture=m",), (0, 1))
    first = [("standard", 0), ("mixture=m", 0), ("a", 0), ("b", 0)]
    assert keys == [*first, *((name, 1) for name, _ in first), ("standard", 2)]
    names = [name for name, seed in driver.plan("abcdefg", (), (0, 1)) if seed == 1]
    assert names == ["standard", *"adgbecf"]  # of all benchmarks early


def test_a_study_continues_from_its_answers_alone(tmp_path, monkeypatch):
    config = tiny.config(epochs=1)
    config.study.corruptions, config.study.seeds = ("imagenet_c/contrast", "noc/border"), (0,)
    workdir = tmp_path / "first"
    config.study.seeds = (1, 2)
    refuses(lambda: driver.run(config, workdir), "0 among config.study.seeds", "(1, 2)")
    config.study.seeds = (0,)
    monkeypatch.setattr(driver, "STANDARD_SEEDS", 1)
    images, corrupted = driver.Shown.images, []
    monkeypatch.setattr(
        driver.Shown, "images", lambda shown: corrupted.append(shown.condition.corruption) or images(shown)
    )
    driver.run(config, workdir)
    assert corrupted == ["clean", "imagenet_c/contrast", "noc/border"]  # once for all three models
    study = tables.read(workdir)
    assert study.models == tuple(driver.plan(study.candidates, (), (0,))) and study.seeds == (0,)
    by_model, _ = answers.read_answered(workdir / "answers" / "noc.border-random.npz")
    assert {name: bool(one.confidence) for (name, _), one in by_model.items()} == {
        "standard": True, "imagenet_c/contrast": False, "noc/border": False,
    }  # fmt: skip
    second = tmp_path / "second"
    second.mkdir()
    shutil.copytree(workdir / "answers", second / "answers")
    shutil.copy(workdir / "config.json", second)
    trained = []
    monkeypatch.setattr(driver.study, "Trainings", lambda *given: trained.append(given[1:3]))
    driver.run(config, second)
    assert not trained
    config.study.corruptions = (*config.study.corruptions, "noc/hue")
    with pytest.raises(AttributeError):  # the stand-in cannot train
        driver.run(config, second)
    # all models lack answers under the new condition
    assert trained == [(["standard", "imagenet_c/contrast", "noc/border", "noc/hue"], (0,))]


@pytest.fixture
def workdir(tmp_path):
    """A study of five candidates with 4,000 images, whose accuracies are given."""
    rng = np.random.default_rng(0)
    signs = rng.permuted(np.tile([-1, 1], (1 + len(NAMES), 2000)), axis=1)  # of the loss, whose mean is 1 nat
    hard = rng.random(4000)  # an image is answered rightly by a model whose accuracy is above its hardness

    def answered(accuracy, model, sign):
        correct = hard < accuracy
        if model != "standard":
            return Answered(correct)
        confidence = np.zeros(4000, STORED)
        confidence["rest"], confidence["loss"] = 0.25, 1024 + 512 * sign
        return Answered(correct, {"plain": confidence})

    models = ("standard", "mixture=imagenet_c", *NAMES)
    for number, condition in enumerate(("clean", *NAMES)):
        accuracy = {model: 0.8 if number == 0 else 0.5 for model in models}
        if number:
            accuracy[condition] = 0.7
            accuracy["mixture=imagenet_c"] = {3: 0.6, 4: 0.4, 5: 0.5}.get(number, 0.7)
        severity = 0 if number == 0 else "random"
        record = Record(condition, severity, None, 4000, {"images": {}}, {"classes": 10, "dataset": "made up"})
        by_model = {(model, 0): answered(accuracy[model], model, signs[number]) for model in models}
        (tmp_path / "answers").mkdir(exist_ok=True)
        answers.write(tmp_path / "answers", by_model, record)
    (tmp_path / "config.json").write_text(json.dumps({"study": {"corruptions": NAMES}}))
    return tmp_path


def test_corruptions_that_train_the_same_network_are_refused(workdir):
    """At 32 pixels noc/rhombus and noc/circle paint the same plus; at equal ranges they train the same network."""
    path = workdir / "answers" / "clean-0.npz"
    by_model, record = answers.read_answered(path)
    digests = {key: key[0] for key in by_model} | {("noc/hue", 0): "noc/border"}
    answers.write(path.parent, by_model, record._replace(models=digests))
    refuses(lambda: tables.read(workdir), "and noc/hue, seed 0", "one of them out")


def test_tables_of_known_answers(workdir):
    study = tables.read(workdir)
    assert study.candidates == NAMES and study.trained == NAMES
    texts, numbers = results.write(study, workdir / "results")
    table = pd.read_csv(workdir / "results" / "mixtures.csv").set_index("corruption")
    expected = {"imagenet_c/fog": 0.25, "noc/border": 0.125, "noc/hue": -0.125, "laion_c/mosaic": 0.0}
    for name, gain in expected.items():
        assert table.gain[name] == pytest.approx(gain, abs=0.02)
    assert table.verdict[["noc/border", "noc/hue", "laion_c/mosaic"]].tolist() == ["gains", "loses", "not shown"]
    assert table.verdict[list(NAMES[:2])].isna().all() and "noc/hue" in texts["readings"]
    candidates = pd.read_csv(workdir / "results" / "candidates.csv")
    np.testing.assert_allclose(candidates.robustness, 0.5 / 0.8, atol=0.02)
    # All answers with confidence .75 where half are right: the calibration error is .25, the loss 1 nat.
    np.testing.assert_allclose(candidates.ece, 0.25, atol=0.02)
    assert candidates.nll.tolist() == [1] * 5
    np.testing.assert_allclose(candidates.own_gain, 0.25, atol=0.02)
    np.testing.assert_allclose(candidates.best_gain, 0, atol=0.02)  # no model gains on another's corruption
    overlap = pd.read_csv(workdir / "results" / "overlap.csv", index_col=0)
    np.testing.assert_allclose(overlap, np.eye(5), atol=0.02)
    benchmarks = pd.read_csv(workdir / "results" / "benchmarks.csv")
    published_ones = {"imagenet_c", "imagenet_noc", "noc_candidates", "laion_c"}
    assert set(benchmarks.benchmark) == published_ones | {"any other candidate"}
    assert set(benchmarks.verdict) == {"not covered"}  # every overlap is 0, and shown to be below .1
    assert json.loads((workdir / "results" / "benchmark.json").read_text())["members"] == list(NAMES)
    np.testing.assert_allclose(numbers["transfers"].best, 0, atol=0.05)
    covered = numbers["coverage"].set_index(["benchmark", "margin"])
    assert covered.loc["imagenet_c", 0.1].tolist() == [3, 0, 0, 0]  # all overlaps are 0, shown to be below .1
    uncovered = numbers["uncovered"].set_index("benchmark")
    assert uncovered.names["imagenet_c"] == "border and hue and mosaic"
    agreement = numbers["agreement"].set_index("benchmark")
    assert agreement.loc["imagenet_c"].tolist() == [3, 0, 0, 0, 0, 1, 1]  # the mixture gains on border, loses on hue
    assert (workdir / "results" / "overlap.svg").read_text().startswith("<?xml")


def test_a_study_of_few_trained_candidates_compares_no_benchmarks_yet(workdir):
    results.write(tables.read(workdir), workdir / "results")
    for path in (workdir / "answers").glob("*.npz"):
        by_model, record = answers.read_answered(path)
        kept = {key: answered for key, answered in by_model.items() if key[0] not in NAMES[2:]}
        answers.write(path.parent, kept, record)
    texts, numbers = results.write(tables.read(workdir), workdir / "results")
    assert "| imagenet_c | 3 |" in texts["mixtures"] and not {"benchmarks", "balance", "published"} & numbers.keys()
    assert not [name for name in results.OF_OVERLAPS if (workdir / "results" / f"{name}.csv").exists()]
    assert pd.read_csv(workdir / "results" / "overlap.csv", index_col=0).shape == (2, 2)


def test_members_of_benchmarks_are_those_that_are_registered():
    candidates = ("imagenet_c/fog", "imagenet_c/speckle_noise", "noc/border", "camera/dark", "imagenet_c/pixelate")
    assert of_benchmarks.members("imagenet_c", candidates) == ("imagenet_c/fog", "imagenet_c/pixelate")
    assert of_benchmarks.members("imagenet_c_extra", candidates) == ("imagenet_c/speckle_noise",)
    assert of_benchmarks.members("noc_candidates", candidates) == ("noc/border", "imagenet_c/pixelate")
    assert of_benchmarks.members("camera", candidates) == ("camera/dark",)


def test_confidence_is_compared_with_overlap(workdir):
    study = tables.read(workdir)
    conditions = (("clean", 0), *((name, "random") for name in NAMES))
    shown = [study.found.confidence(*condition, [("standard", 0)]) for condition in conditions]
    losses = [one["standard", 0, "plain"].loss for one in shown]
    overlap = np.corrcoef([loss - losses[0] for loss in losses[1:]])
    measured = MeasuredOverlap(NAMES, overlap, overlap)
    table = tables.confidence_frame(study, measured).set_index("likeness")
    assert table.spearman["loss"] == pytest.approx(1) and table.pairs["loss"] == 10
    opposite = tables.confidence_frame(study, measured._replace(unclipped=-overlap)).set_index("likeness")
    assert opposite.spearman["loss"] == pytest.approx(-1)
    nothing = np.full((5, 5), np.nan)
    assert tables.confidence_frame(study, MeasuredOverlap(NAMES, nothing, nothing)).empty


def test_published_overlaps_are_those_of_the_paper():
    """Tables 7 and 8 of Laugros et al.; Fig. 3 was recovered from them by hand, rounded to .01."""
    theirs = tables.published_overlap("imagenet_c")
    assert theirs.names == tuple(f"imagenet_c/{name}" for name in published.IMAGENET_C)
    np.testing.assert_allclose(theirs.overlap, published.FIGURE3, atol=0.006)
    noc = tables.published_overlap("imagenet_noc")
    for (a, b), overlap in published.NOC_PAIRS.items():
        at = noc.names.index(f"noc/{a}"), noc.names.index(f"noc/{b}")
        assert noc.overlap[at] == pytest.approx(overlap, abs=0.006)
    assert (noc.overlap > 0).sum() == len(noc.names) + 2 * len(published.NOC_PAIRS)
    rounded = theirs._replace(overlap=published.FIGURE3, unclipped=published.FIGURE3)
    [row] = tables.published_frame(rounded).itertuples()
    pairs = np.triu_indices(15, 1)
    expected = stats.pearsonr(published.FIGURE3[pairs], theirs.unclipped[pairs]).statistic
    assert (row.benchmark, row.pairs) == ("imagenet_c", 105) and row.pearson == pytest.approx(expected)


def test_balance_of_known_overlaps():
    """Answers with the accuracies of Table 7: of image k right where k / N is below the accuracy."""
    full = published.accuracies(published.TABLE7, published.ALEXNET_S4, published.IMAGENET_C)
    names = tuple(f"imagenet_c/{name}" for name in published.IMAGENET_C)
    robustness = full[1:, 1:] / full[1:, :1]
    chosen = {"all": names, "two": names[8:10], "one": names[:1]}
    bits = np.arange(4000) / 4000 < full[None, ..., None]
    table = of_benchmarks.balance_frame(overlap_study.Study.of(names, bits, (0,)), chosen).set_index("benchmark")
    assert list(table.index) == ["all", "two"] and table.members.tolist() == [15, 2]
    assert table.loc["all", "r_std"] == pytest.approx(robustness.mean(axis=1).std(), abs=2e-4)
    assert table.loc["two", "r_std"] == pytest.approx(robustness[8:10, 8:10].mean(axis=1).std(), abs=2e-4)
    ce = 100 * (full[1:, :1] - full[1:, 1:]) / (full[0, :1] - full[0, 1:])  # relative to the standard model
    for of, block in (("all", ce), ("two", ce[8:10, 8:10])):
        assert table.loc[of, "ce_std"] == pytest.approx(block.mean(axis=1).std(), abs=0.1)
        assert table.loc[of, "ce_range"] == pytest.approx(np.ptp(block.mean(axis=1)), abs=0.3)
        assert table.loc[of, "ce_std_low"] < table.loc[of, "ce_std"] < table.loc[of, "ce_std_high"]
    assert table.loc["two", "mean_overlap"] == pytest.approx(0.29, abs=0.006)  # frost and fog
    off = ~np.eye(15, dtype=bool)
    assert table.loc["all", "mean_overlap"] == pytest.approx(published.FIGURE3[off].mean(), abs=0.003)
    assert table.loc["all", "categories"] == table.loc["all", "of"] and table.loc["two", "imbalance"] == 0
    sizes = [len(cluster) for cluster in categories(published.FIGURE3, names).clusters]
    assert table.loc["all", "imbalance"] == pytest.approx(np.std(sizes))
    # The deviation of two values is half their difference. Its error is that of a ratio of means, to first order.
    first, second = (bits[0, 1 + k][:, :] for k in (8, 9))
    ratio = [np.mean([m[9], m[10]]) / m[0].mean() for m in (first, second)]
    of_image = [(m[9:11].mean(axis=0) - r * m[0]) / m[0].mean() for m, r in zip((first, second), ratio, strict=True)]
    expected = (of_image[0] - of_image[1]).std() / 2 / 4000**0.5
    assert table.loc["two", "r_std_se"] == pytest.approx(expected, rel=0.1)


def test_verdicts_are_corrected_for_all_rows(workdir):
    """All overlaps are 0 but one, whose p in 28 rows is corrected by the factor of Benjamini and Yekutieli."""
    study = tables.read(workdir)
    bits, seeds = study.found.study(NAMES)
    bits = bits.copy()
    bits[:, 1, 2], bits[:, 2, 1] = bits[:, 2, 2], bits[:, 1, 1]  # fog and contrast train for each other
    found = overlap_study.Study.of(NAMES, bits, seeds)
    table = of_benchmarks.benchmarks_frame(found, {"a": NAMES[:1], "b": NAMES[2:3]})
    covered = table[table.verdict == "covered"]
    assert [(row.benchmark, row.corruption) for row in covered.itertuples()] == [
        ("a", NAMES[1]), ("any other candidate", NAMES[0]), ("any other candidate", NAMES[1]),
    ]  # fmt: skip
    p, number = np.sort(table.p), len(table)
    harmonic = sum(1 / k for k in range(1, number + 1))
    expected = np.minimum.accumulate((p * number * harmonic / np.arange(1, number + 1))[::-1])[::-1]
    np.testing.assert_allclose(np.sort(table.p_of_all), np.minimum(expected, 1))
    assert covered.transfer.to_numpy() == pytest.approx([1, 1, 1], abs=0.03)


def made_up(rng, models, noise, number=1000):
    """Answers of models with two seeds: accuracy .8 on clean images, on a corruption .5 with normal noise of training."""
    correct = {}
    for model, seed in itertools.product(models, (0, 1)):
        correct[model, seed, "clean", 0] = rng.random(number) < 0.8
        correct[model, seed, "a", "random"] = rng.random(number) < 0.5 + noise * rng.normal()
    keys = tuple(dict.fromkeys(key[:2] for key in correct))
    return tables.Study(types.SimpleNamespace(correct=correct.__getitem__), ("a",), keys, (), (0,))


@pytest.mark.parametrize("noise", [0, 0.03])
def test_errors_of_gains_hold_the_noise_of_trainings(noise):
    rng, true = np.random.default_rng(0), (noise / 0.8) ** 2
    studies = [made_up(rng, ("standard", *"bcdefghijklmnopqrstuvwx"), noise) for _ in range(200)]
    variances = [tables.training_variance(study, "a") for study in studies]
    # Images alone change R by a variance of 6e-4 from training to training. Negative estimates count as 0.
    assert np.mean(variances) == pytest.approx(true, abs=1e-4)
    gains, errors = np.transpose([tables.gain(study, "b", "a", true) for study in studies])
    assert gains.std() == pytest.approx(errors.mean(), rel=0.15) and abs(gains.mean()) < 0.01
    few = made_up(rng, ("standard", *"bcd"), noise)
    assert few.several == () and tables.training_variance(few, "a") == 0


def test_a_part_of_the_second_seed_tells_the_noise_of_trainings(workdir):
    rng = np.random.default_rng(1)
    for path in (workdir / "answers").glob("*.npz"):
        by_model, record = answers.read_answered(path)
        for name, _ in [key for key in by_model if key[0] != NAMES[-1]]:
            by_model[name, 1] = Answered(rng.random(4000) < by_model[name, 0].correct.mean() + 0.05 * rng.normal())
        answers.write(path.parent, by_model, record)
    study = tables.read(workdir)
    assert study.seeds == (0,) and study.trained == NAMES
    assert study.several == ("standard", "mixture=imagenet_c", *NAMES[:-1])
    repeats = tables.repeats(study)
    assert repeats.rows == (0, 1, 2, 3, 4) and repeats.bits.shape == (2, 5, 6, 4000)
    expected = study.found.correct((NAMES[1], 1, NAMES[2], "random"))
    np.testing.assert_array_equal(repeats.bits[1, 2, 3], expected)
    results.write(study, workdir / "results")
    pairs = pd.read_csv(workdir / "results" / "overlap_long.csv")
    assert set(pairs.se_holds) == {"test images and trainings (of 5 models)"}
    assert tables.repeats(study._replace(seeds=(0, 1))) is None  # the overlaps are means of two trainings each


def test_a_page_gets_its_numbers():
    frame = pd.DataFrame(
        [("a", 0.3, 7, -0.126, "x and y"), ("a", 0.5, 3, 0.25, "z")], columns=["of", "at", "n", "r", "s"]
    )
    text = "<!-- value t:a,0.3:n:d -->9<!-- end --> <!-- value t:a,0.3:r:+.2 --><!-- end --> <!-- value t:a,0.5:r:% --><!-- end -->"
    filled = page.fill(text, {}, {"t": frame})
    assert re.sub("<!--.*?-->", "", filled) == "7 \N{MINUS SIGN}.13 25\N{NO-BREAK SPACE}%"
    assert page.fill(filled, {}, {"t": frame}) == filled and page.value("t:a,0.3:s:s", {"t": frame}) == "x and y"
    for address in ("t:a:n:d", "t:b,0.3:n:d", "t:a,0.3:m:d", "u:a,0.3:n:d", "t:a,0.3:n:e", "t:a,0.3:n"):
        with pytest.raises(ValueError, match=rf"one of the frames t, found '{address}'"):
            page.value(address, {"t": frame})


def test_a_page_gets_its_tables():
    text = "a\n<!-- table models -->old<!-- end -->\nb"
    filled = page.fill(text, {"models": "| x |"})
    assert filled == "a\n<!-- table models -->\n\n| x |\n\n<!-- end -->\nb" == page.fill(filled, {"models": "| x |"})
    refuses(lambda: page.fill(text, {"x": ""}), "'models'")


def test_a_study_without_answers_of_the_first_standard_model_is_refused(workdir):
    for path in (workdir / "answers").glob("*.npz"):
        by_model, record = answers.read_answered(path)
        by_model["standard", 1] = by_model.pop(("standard", 0))
        answers.write(path.parent, by_model, record)
    asked = "expected answers of the standard model of seed 0 to all corruptions"
    with pytest.raises(ValueError, match=rf"{asked}, found seeds \[1\] in"):
        tables.read(workdir)
    (workdir / "answers" / "noc.hue-random.npz").unlink()
    with pytest.raises(ValueError, match=f"{asked}, found none in"):
        tables.read(workdir)


def test_a_standard_model_near_chance_is_warned_of(workdir, caplog):
    path = workdir / "answers" / "clean-0.npz"
    by_model, record = answers.read_answered(path)
    correct = np.arange(4000) % 10 == 0
    by_model["standard", 0] = by_model["standard", 0]._replace(correct=correct)
    answers.write(path.parent, by_model, record)
    results.write(tables.read(workdir), workdir / "results")
    assert "standard: clean accuracy 0.1000 is near chance (expected at least" in caplog.text


def drawing(path):
    """The text of a figure without ids, made of its data, and without its numbers; and these numbers."""
    text = re.sub(r'(id|href|clip-path)="[^"]*"', "", path.read_text())
    return re.sub(r"-?\d+(\.\d+)?", "#", text), np.array(re.findall(r"-?\d+(?:\.\d+)?", text), float)


def test_the_page_follows_from_the_committed_answers(tmp_path):
    written = results.write(tables.read(ROOT / "projects/coverage/cpu"), tmp_path)
    text = (ROOT / "docs/coverage.md").read_text()
    assert page.fill(text, *written) == text
    selected = json.loads((tmp_path / "benchmark.json").read_text())["members"]
    assert corruptions.names("coverage_2026") == tuple(selected)
    assert (
        written.numbers["crossed"].members.tolist()[1].split(", ") == selected
    )  # the page: the second seed selects them
    made, kept = ({path.name: path for path in folder.glob("*.csv")} for folder in (tmp_path, RESULTS))
    assert made.keys() == kept.keys() and made
    for name, path in made.items():
        pd.testing.assert_frame_equal(pd.read_csv(path), pd.read_csv(kept[name]))
    assert {path.name for path in tmp_path.glob("*.svg")} == {path.name for path in RESULTS.glob("*.svg")}
    for path in tmp_path.glob("*.svg"):
        (made, at), (kept, place) = drawing(path), drawing(RESULTS / path.name)
        assert made == kept, path.name
        np.testing.assert_allclose(at, place, atol=0.02, err_msg=path.name)
