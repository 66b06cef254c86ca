"""errors.csv and errors_summary.csv against errors computed one answer at a time; differences between models."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

import corruptions
from analysis import answers
from analysis.errors import reference, summary
from analysis.errors.reference import Choice, Conditions, choose, of_corruption
from analysis.errors.scores import ImageErrors, complete_benchmarks
from analysis.errors.summary import errors_frame, score, summary_frame, summary_text
from analysis.references import IMAGENET_C
from corruptions.scoring import intervals
from corruptions.scoring.values import Value
from tests.analysis.made_up import cell_of, counted

NUMBER, SHAPE = 400, (224, 224, 3)
C = [f"imagenet_c/{name}" for name in IMAGENET_C]
BAR = corruptions.names("imagenet_c_bar")
CELLS = [(name, s) for name in C for s in range(1, 6)]
CELLS += [(name, s) for name in BAR for s in corruptions.severities(name, "imagenet_c_bar")]


def conditions(frost="original_photographs", **changed):
    of_each = {name: of_corruption(name, SHAPE) for name, _ in CELLS}
    of_each["imagenet_c/frost"]["frost"] = frost
    given = {"dataset": "imagenet", "classes": 1000, "image_shape": SHAPE, "preprocessing": reference.PREPROCESSING}
    return Conditions(**given | changed, corruptions=of_each)


@pytest.fixture(scope="module")
def wrong():
    """{(seed, corruption, severity): which of 400 images are answered wrongly}; hard images are hard everywhere."""
    rng = np.random.default_rng(3)
    hard = rng.normal(size=NUMBER)
    return {
        (seed, *cell): hard + rng.normal(size=NUMBER) > 1.2 - 0.1 * k % 1
        for seed in (0, 1)
        for k, cell in enumerate([("clean", 0), *CELLS])
    }


@pytest.fixture
def folder(wrong, tmp_path):
    for corruption, severity in [("clean", 0), *CELLS]:
        of_seeds = {("m", seed): ~wrong[seed, corruption, severity] for seed in (0, 1)}
        answers.write(tmp_path / "answers", of_seeds, answers.Record(corruption, severity, None, NUMBER, {}))
    return tmp_path / "answers"


def counts(wrong):
    return [counted("m", seed, c, s, int((~bits).sum()), NUMBER) for (seed, c, s), bits in wrong.items()]


def scored(errors, choice, found):
    rows, summaries = score(errors, choice, found)
    by_row = {(row.seed, row.benchmark, row.corruption): row for row in rows}
    return by_row, {(entry.benchmark, entry.measure): entry for entry in summaries}


def test_every_number_is_that_of_its_definition(wrong, folder):
    errors = ImageErrors.of(answers.read(folder.parent), counts(wrong))
    rows, summaries = scored(errors, choose("alexnet", "refuse", conditions()), conditions())
    alexnet, _ = reference.alexnet()
    ce, relative, plain = [], [], []
    for name in IMAGENET_C:
        total = np.sum([wrong[1, f"imagenet_c/{name}", s] for s in range(1, 6)], axis=0)
        divisor = np.array(list(alexnet.errors[f"imagenet_c/{name}"].values()))
        plain.append(100 * total / 5)
        ce.append(100 * total / divisor.sum())
        relative.append(100 * (total - 5 * wrong[1, "clean", 0]) / (divisor - alexnet.clean).sum())
    for k, name in ((3, C[3]), (slice(None), "mean")):
        row = rows[1, "imagenet_c", name]
        divisors = [np.array(list(alexnet.errors[f"imagenet_c/{member}"].values())) for member in IMAGENET_C]
        most = np.array([[100, 500 / d.sum(), 500 / (d - alexnet.clean).sum()] for d in divisors])
        most = most[k] if name != "mean" else most.mean(axis=0)
        for j, (value, images) in enumerate(((row.error, plain), (row.ce, ce), (row.relative, relative))):
            expected = images[k] if name != "mean" else np.mean(images, axis=0)
            assert value.value == pytest.approx(expected.mean())
            assert value.se == pytest.approx(intervals.of_mean(expected, most[j], paired=j == 2))
    assert rows[1, "imagenet_c", "mean"].mismatch == "none"
    by_seed = [np.mean([rows[seed, "imagenet_c", name].ce.value for name in C]) for seed in (0, 1)]
    mce = summaries["imagenet_c", "mCE"]
    assert (mce.mean, mce.std, mce.seeds) == (
        pytest.approx(np.mean(by_seed)), pytest.approx(np.std(by_seed, ddof=1)), 2,
    )  # fmt: skip
    bar = [np.mean([wrong[seed, c, s] for c, s in CELLS if c in BAR], axis=0) for seed in (0, 1)]
    both = [np.mean([wrong[seed, c, s] for c, s in CELLS if c in C], axis=0) for seed in (0, 1)]
    gap, images = summaries["imagenet_c_bar", "gap"], 100 * (np.mean(bar, axis=0) - np.mean(both, axis=0))
    assert gap.mean == pytest.approx(images.mean()) and gap.se == pytest.approx(
        intervals.of_mean(images, 100, paired=True)
    )
    assert summaries["clean", "mean_error"].se == pytest.approx(
        intervals.of_mean(50 * (wrong[0, "clean", 0] + wrong[1, "clean", 0].astype(float)), 100)
    )


def test_stored_images_of_another_number_have_no_relative_error(wrong):
    """A written dataset may hold more images than the study was tested on."""
    fewer = {("m", *cell): bits[: 100 if cell[1] == "clean" else NUMBER] for cell, bits in wrong.items()}
    found = [counted(*cell, int((~bits).sum()), len(bits)) for cell, bits in fewer.items()]
    errors = ImageErrors(found, {cell: ~bits for cell, bits in fewer.items()})
    rows, _ = scored(errors, choose("alexnet", "refuse", conditions()), conditions())
    row = rows[1, "imagenet_c", C[3]]
    total = np.sum([wrong[1, C[3], s] for s in range(1, 6)], axis=0)
    assert row.error.value == pytest.approx(20 * total.mean()) and np.isnan(row.relative.value)


def test_a_published_c_bar_is_divided_by_a_reference_at_the_same_levels(wrong, tmp_path):
    """It calls the selected levels 1 to 5, a reference of generated images calls them by their own numbers, and has others."""
    found = [counted("m", 0, "clean", 0, int((~wrong[0, "clean", 0]).sum()), NUMBER)]
    correct = {cell_of(found[0]): ~wrong[0, "clean", 0]}
    for name in BAR:
        for k, level in enumerate(corruptions.severities(name, "imagenet_c_bar")):
            bits = wrong[0, name, level]
            found.append(counted("m", 0, name, k + 1, int((~bits).sum()), NUMBER))
            correct[cell_of(found[-1])] = ~bits
    errors = {name: {level: 0.3 + 0.05 * level for level in range(1, 11)} for name in BAR}
    generated = reference.Reference("generated:m", 0.2, errors, conditions())
    at = {name: corruptions.severities(name, "imagenet_c_bar") for name in BAR}
    of_set = {name: {k + 1: errors[name][level] for k, level in enumerate(levels)} for name, levels in at.items()}
    published = reference.Reference("published:m", 0.2, of_set, conditions(), stored=True)
    reference.write(tmp_path / "reference.json", published)
    (read,) = reference.read(tmp_path / "reference.json")
    assert read == published
    for given in (generated, read):
        rows, _ = score(ImageErrors(found, correct), Choice((given,)), conditions(), stored=True)
        of_each = {row.corruption: row for row in rows if row.benchmark == "imagenet_c_bar"}
        assert len(of_each) == 11
        for name, levels in at.items():
            total = np.sum([wrong[0, name, level] for level in levels], axis=0).mean()
            divisor = sum(errors[name][level] for level in levels)
            assert of_each[name].ce.value == pytest.approx(100 * total / divisor)


def test_procedural_frost_is_named_where_an_mce_is(wrong, folder, tmp_path):
    errors, found = ImageErrors.of(answers.read(folder.parent), counts(wrong)), conditions("procedural")
    _, unnamed = scored(errors, choice := choose("", "refuse", found), found)
    assert np.isnan(unnamed["imagenet_c", "mCE"].mean)
    assert "frost: original_photographs, here procedural" in summary_text(list(unnamed.values()), choice)
    rows, summaries = score(errors, choice := choose("alexnet", "label", found), found)
    text = summary_text(summaries, choice)
    (line,) = [line for line in text.splitlines() if line.startswith("  imagenet_c (levels)")]
    assert "frost procedural" in line.partition("mCE")[2] and "imagenet_c/frost:frost" in line
    table = summary_frame(summaries).set_index(["benchmark", "measure"])
    assert table.frost["imagenet_c", "mCE"] == "procedural"
    by_seed = errors_frame(rows).query("benchmark == 'imagenet_c' and corruption == 'mean'")
    assert table["mean"]["imagenet_c", "mCE"] == pytest.approx(by_seed.CE.mean())


def test_imagenet_of_tfds_has_means_and_no_reference():
    """The classifier answers it as the images of ImageNet-C, under the very conditions of AlexNet's errors."""
    names = [name.replace("imagenet_c/", "imagenet2012_corrupted/") for name in C]
    cells = [("clean", 0), *((name, s) for name in names for s in range(1, 6))]
    correct = {("m", 0, *cell): np.arange(NUMBER) % 3 == 0 for cell in cells}
    errors = ImageErrors([counted(*cell, 134, NUMBER) for cell in correct], correct)
    found = dataclasses.replace(conditions(), corruptions={})
    by_row, by_measure = scored(errors, choose("", "refuse", found), found)
    row = by_row[0, "imagenet2012_corrupted", "mean"]
    assert row.error.value == pytest.approx(66.5) and np.isnan(row.ce.value) and row.reference == "none"
    assert {name for name, _ in by_measure} == {"clean", "imagenet2012_corrupted"}
    one = complete_benchmarks(cells[:-1])
    assert [benchmark.name for benchmark in one] == ["others"]


def test_only_complete_benchmarks_have_means_and_the_rest_is_listed():
    found = complete_benchmarks([("clean", 0), (C[0], 1), (C[0], 2), ("noc/hue", "random"), ("natural/imagenet_r", 0)])
    assert [(entry.name, entry.severities, dict(entry.members)) for entry in found] == [
        ("others", "levels", {C[0]: (1, 2)}),
        ("others", "random", {"noc/hue": ("random",)}),
    ]
    study = complete_benchmarks([(C[0], "random"), ("noc/hue", "random")], {"study": (C[0], "noc/hue")})
    assert [(entry.name, entry.severities) for entry in study] == [("study", "random")]
    at_random = [(name, "random") for name in BAR]
    selected = {name: {corruptions.selected_levels(name, "imagenet_c_bar")} for name in BAR}
    of_all = {name: {None} for name in BAR}
    of_both = {name: {*drawn, None} for name, drawn in selected.items()}
    for drawn, name in (
        (selected, "imagenet_c_bar"),
        (None, "imagenet_c_bar"),
        (of_all, "others"),
        (of_both, "others"),
    ):
        assert [entry.name for entry in complete_benchmarks(at_random, drawn=drawn)] == [name]
    stored = [(name, s) for name in BAR for s in range(1, 6)]  # as a published C-bar counts them
    assert [entry.name for entry in complete_benchmarks(stored, stored=True)] == ["imagenet_c_bar"]


@pytest.mark.parametrize(
    "changed, part",
    [
        ({"dataset": "shapes"}, "dataset: imagenet, here shapes"),
        ({"classes": 100}, "classes: 1000, here 100"),
        ({"image_shape": (32, 32, 3)}, "image size: 224x224, here 32x32"),
        ({"preprocessing": "squashed"}, "here squashed"),
        ({"preprocessing": ""}, "here not known"),
    ],
)
def test_each_condition_that_differs_is_named(changed, part):
    with pytest.raises(ValueError, match=part):
        choose("alexnet", "refuse", conditions(**changed))
    assert part in "".join(choose("", "refuse", conditions(**changed)).sentences())
    assert choose("alexnet", "refuse", conditions()).sentences() == Choice().sentences() == []


def values(*images):
    return [Value.from_images(np.asarray(one, float), 100.0) for one in images]


def test_a_difference_of_single_seeds_is_tested_by_its_signs():
    rng = np.random.default_rng(0)
    first = rng.normal(size=50)
    second = first + rng.normal(0.1, 0.3, 50)
    found = summary.paired(values(first), values(second))
    known = stats.ttest_rel(first, second)  # near, for normal differences
    assert found.p == pytest.approx(known.pvalue, rel=0.1) and found.value / found.se == pytest.approx(known.statistic)
    by_scipy = stats.permutation_test((first - second,), np.mean, permutation_type="samples", n_resamples=99_999, rng=1)
    assert found.p == pytest.approx(by_scipy.pvalue, abs=0.004)
    assert found.test == summary.DRAWN_SIGNS


@pytest.mark.parametrize("plus, minus", [(0, 0), (1, 0), (3, 9), (40, 17), (1100, 1000), (25_400, 24_600), (0, 50_000)])
def test_signs_of_single_answers_are_tested_exactly_at_any_number(plus, minus):
    differences = np.concatenate([np.full(plus, 100 / 1.7), np.full(minus, -100 / 1.7), np.zeros(30)])
    p, test = summary.sign_flips(np.random.default_rng(0).permutation(differences))
    exact = stats.binomtest(plus, plus + minus).pvalue if plus + minus else 1.0
    assert test == summary.BINOMIAL and p == pytest.approx(exact, rel=1e-9)


def test_signs_of_differences_of_many_sizes_are_drawn_at_any_number():
    """In the middle the normal limit is near; in its tail, and with few large differences, only draws tell."""
    rng = np.random.default_rng(0)
    size = rng.uniform(0.5, 1, 30_000)
    differences = size * np.where(rng.random(30_000) < 0.505, 1, -1)
    p, test = summary.sign_flips(differences)
    assert test == summary.DRAWN_SIGNS
    assert p == pytest.approx(2 * stats.norm.sf(abs(differences.sum()) / np.sqrt((size**2).sum())), abs=0.006)
    heavy = np.concatenate([[2000.0, 1900.0], -0.01 * rng.uniform(0.5, 1, 1500)])  # two images decide: p is 1/2
    assert summary.sign_flips(heavy)[0] == pytest.approx(0.5, abs=0.006)
    assert summary.sign_flips(np.abs(heavy[:16])) == (2 / 2**16, summary.ALL_SIGNS)


@pytest.mark.parametrize(
    "number, apart, exact", [(2, 2, 0.5), (5, 5, 0.0625), (10_000, 4, 0.125), (10_000, 0, 1), (100, 17, 2 / 2**17)]
)
def test_few_images_that_differ_are_not_clear(number, apart, exact):
    better, worse = np.zeros(number), 100.0 * (np.arange(number) < apart)
    found = summary.paired(values(better), values(worse))
    assert found.p == pytest.approx(exact, abs=2e-5)
    clear = summary.clearly_best({"better": values(better), "worse": values(worse)})
    assert clear == ("better" if exact < 0.05 else None)
    seeds = [values(*[of] * 2) for of in (better, worse)]
    assert summary.paired(*seeds).p >= found.p
    assert summary.paired([Value(1, 0.1)], values(worse)) is None


def test_seeds_add_their_spread():
    rng = np.random.default_rng(1)
    images = rng.normal(size=(2, 3, 200)) + np.array([0, 0.5, 1.0])[:, None]
    found = summary.paired(values(*images[0]), values(*images[1]))
    between = sum(np.var(images[k].mean(1), ddof=1) / 3 for k in (0, 1))
    within = np.var(images[0].mean(0) - images[1].mean(0), ddof=1) / 200
    assert found.se == pytest.approx((between + within) ** 0.5)
    fixed = summary.paired(values(images[0].mean(0)), values(images[1].mean(0)))
    assert found.p > fixed.p


def test_holm_is_the_published_procedure():
    assert summary.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert summary.holm([0.5, 0.9]) == [1.0, 1.0] and summary.holm([]) == []


def test_the_best_is_clear_only_against_every_other():
    rng = np.random.default_rng(2)
    base = rng.normal(size=300)
    a, b, c = base, base + 0.5 + rng.normal(0, 0.1, 300), base + 1 + rng.normal(0, 0.1, 300)
    assert summary.clearly_best({"b": values(b), "a": values(a), "c": values(c)}) == "a"
    near = base + rng.normal(0, 0.1, 300)
    assert summary.clearly_best({"a": values(a), "near": values(near), "c": values(c)}) is None
    assert summary.clearly_best({"a": values(a)}) is None
    assert summary.clearly_best({"a": values(a), "b": [Value(2, 0.1)]}) is None
