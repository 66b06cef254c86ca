"""corruptions.evaluate: counts against a loop written apart, and what a folder keeps of them."""

import csv
import dataclasses
import json
import pathlib

import numpy as np
import pytest

import corruptions
from corruptions import Count, files
from corruptions.core import registry
from corruptions.scoring import TestSet, classifier, intervals
from corruptions.scoring.conditions import list_conditions
from corruptions.scoring.folder import read_wrong
from corruptions.write import WriteError
from tests.corruptions.comparing import refused
from tests.corruptions.write.datasets import IMAGES, LABELS, expected_at_once
from tests.pages import example_of
from tests.refusing import refuses

NAMES = ("noc/contrast", "noc/hue")
OF = {"corruptions": NAMES, "severity": "0,0.5", "batch_size": 5, "progress": False}  # 12 images: the last batch has 2


def predict(images):
    """Three classes by the share of red in the colours."""
    red, green, blue = np.moveaxis(np.asarray(images, np.float64).mean((1, 2)), -1, 0)
    return -np.abs((3 * red / (red + green + blue))[:, None] - [0.99, 1.0, 1.01])


def rows(path):
    with open(path) as file:
        return list(csv.DictReader(file))


@pytest.fixture
def stub(monkeypatch):
    """Corruptions that need no compiling: levels of grey for the severity, a colour for the name."""

    def corrupt(key, images, name, severity, *, index, **options):
        out = np.array(images)
        out[..., NAMES.index(name)] //= 2 + int(2 * severity)
        return out

    monkeypatch.setattr(classifier, "corrupt", corrupt)


def test_counts_are_those_of_a_loop_over_conditions():
    found = corruptions.evaluate(predict, IMAGES, LABELS, seed=7, **OF | {"batch_size": 12})
    conditions = [("clean", 0, IMAGES)]
    conditions += [
        (name, level, expected_at_once(IMAGES, name, level, seed=7)) for name in NAMES for level in (0.0, 0.5)
    ]
    assert found == [
        (name, level, (predict(images / 255).argmax(1) == LABELS).sum(), 12) for name, level, images in conditions
    ]
    assert len({count.correct for count in found}) > 1
    assert found[0].error == 1 - found[0].correct / 12


def test_batches_of_many_sizes_have_one_table(tmp_path):
    """By their sides these greys would have a deviation of 26, 46 and 83 levels."""
    sides, seen = (44, 48, 120), {}
    batches = [(np.full((2, side, side, 3), 128, np.uint8), np.zeros(2, int)) for side in sides]

    def deviation(images):
        seen[images.shape[1]] = float(images.std())
        return np.zeros((len(images), 2), np.float32)

    of = {"corruptions": "imagenet_c/gaussian_noise", "severity": 5, "progress": False}
    corruptions.evaluate(deviation, batches, **of, path=tmp_path / "mine")
    assert max(seen.values()) < 1.1 * min(seen.values())
    corruptions.evaluate(deviation, batches, **of)
    found = dict(seen)
    corruptions.evaluate(deviation, batches[:1], **of)
    assert seen[44] < 0.4 * found[44], "images of one size keep the table of their size"
    by_size = {"imagenet_c/gaussian_noise": {"table": "by_size"}}
    corruptions.evaluate(deviation, batches, **of, options=by_size)
    assert seen[44] < 0.6 * seen[48] < 0.4 * seen[120]
    refuses(lambda: corruptions.evaluate(deviation, batches, **of, options=by_size, path=tmp_path / "mine"), "table")


def test_a_stopped_evaluation_continues_and_keeps_answers(stub, tmp_path):
    asked = []

    def failing(images):
        asked.append(len(images))
        if len(asked) > 7:  # in the third condition
            raise KeyboardInterrupt
        return predict(images)

    with pytest.raises(KeyboardInterrupt):
        corruptions.evaluate(failing, IMAGES, LABELS, path=tmp_path / "mine", **OF)
    calls = []
    found = corruptions.evaluate(lambda x: calls.append(1) or predict(x), IMAGES, LABELS, path=tmp_path / "mine", **OF)
    assert len(calls) == 3 * (
        3 + 1
    )  # clean and the first condition were kept; predict was asked again about clean images
    assert found == corruptions.evaluate(predict, IMAGES, LABELS, **OF)
    again = corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path / "mine", **OF)
    assert again == found
    assert {cell: wrong.sum() for cell, wrong in read_wrong(tmp_path / "mine").items()} == {
        (count.corruption, str(count.severity)): count.total - count.correct for count in found
    }
    counted = rows(tmp_path / "mine/counts.csv")
    table = [(row["corruption"], row["severity"], int(row["correct"]), int(row["total"])) for row in counted]
    assert table == [(c.corruption, str(c.severity), c.correct, c.total) for c in found]


@pytest.mark.parametrize(
    ("given", "text"), [(0.5, "0.5"), ((0, 0.5), "0,0.5"), (np.float64(1), "1"), ([np.int64(1)], "1")]
)
def test_severities_are_numbers_too(stub, given, text):
    expected = corruptions.evaluate(predict, IMAGES, LABELS, **OF | {"severity": text})
    assert corruptions.evaluate(predict, IMAGES, LABELS, **OF | {"severity": given}) == expected


def test_a_single_corruption_is_its_name(stub):
    given = OF | {"corruptions": corruptions.get("noc/hue")}
    assert corruptions.evaluate(predict, IMAGES, LABELS, **given) == corruptions.evaluate(
        predict, IMAGES, LABELS, **OF | {"corruptions": "noc/hue"}
    )


@pytest.mark.parametrize("given", [None, True, (), ("3",), [None]])
def test_other_severities_name_those_that_work(given):
    with refused("severity", repr(given)):
        corruptions.evaluate(predict, IMAGES, LABELS, **OF | {"severity": given})


def test_batches_are_the_test_set_in_pieces(stub, tmp_path):
    batches = [(IMAGES[start : start + 5], list(LABELS[start : start + 5])) for start in (0, 5, 10)]
    seen = []
    found = corruptions.evaluate(lambda x: seen.append(len(x)) or predict(x), batches, **OF, path=tmp_path)
    assert found == corruptions.evaluate(predict, IMAGES, LABELS, **OF) and set(seen) == {5}
    again = corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF)
    assert again == found  # the folder has answers to the same images


@pytest.mark.parametrize(
    ("batches", "name", "actual"),
    [
        (lambda: iter([]), "images", "list_iterator without labels"),
        (lambda: IMAGES, "images", "ndarray without labels"),
        (lambda: [], "images", "none"),
        (lambda: TestSet([(IMAGES, LABELS)], index=LABELS), "index", "an index"),
        (lambda: [IMAGES], "images", "ndarray"),
        (lambda: [(IMAGES / 255, LABELS)], "images", f"float64{list(IMAGES.shape)}"),
        (lambda: [(IMAGES, LABELS), (IMAGES, LABELS[:7])], "labels", "int64[7]"),
    ],
)
def test_batches_of_another_kind_are_refused(stub, batches, name, actual):
    with refused(name, actual):
        corruptions.evaluate(predict, batches(), **OF)


def test_mean_errors_are_over_severities_then_corruptions(stub, tmp_path, monkeypatch):
    monkeypatch.setitem(registry._BENCHMARKS, "both", dict.fromkeys(NAMES))
    given = OF | {"corruptions": ["both", "noc/hue"]}
    found = corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **given)
    wrong = {" ".join(cell): of_images for cell, of_images in read_wrong(tmp_path).items()}
    means = {name: (wrong[f"{name} 0.0"] + wrong[f"{name} 0.5"]) / 2 for name in NAMES}
    means = {"clean": wrong["clean 0"]} | means | {"both": (means[NAMES[0]] + means[NAMES[1]]) / 2}
    table = {row["name"]: (float(row["error"]), float(row["error_se"])) for row in rows(tmp_path / "errors.csv")}
    assert list(table) == list(means)
    for name, of_images in means.items():
        assert table[name] == pytest.approx((of_images.mean(), intervals.of_mean(of_images)))
    assert corruptions.mean_error(found) == pytest.approx(means["both"].mean())
    refuses(lambda: corruptions.mean_error(found[:1]), "none")


def made_up(names, severities, seed, total=50_000):
    correct = np.random.default_rng(seed).integers(10_000, 30_000, (len(names), len(severities)))
    conditions = [(name, severity) for name in names for severity in severities]
    rows = [Count(*condition, int(right), total) for condition, right in zip(conditions, correct.ravel(), strict=True)]
    return [Count("clean", 0, 38_065, total), *rows], 1 - correct / total


ALEXNET = json.loads((pathlib.Path(corruptions.__file__).parent / "scoring" / "alexnet.json").read_text())


@pytest.mark.parametrize("of", [{}, {"reference": "counts"}])
def test_corruption_errors_are_those_of_their_definition(of):
    names = corruptions.names("imagenet_c")
    counts, errors = made_up(names, (1, 2, 3, 4, 5), 0)
    clean, reference = 1 - 38_065 / 50_000, 0.4348
    divisors = np.array([ALEXNET["imagenet_c"]["errors"][name.partition("/")[2]] for name in names])
    if of:
        of["reference"], divisors = made_up(names, (1, 2, 3, 4, 5), 1)
        reference = clean
    table = corruptions.ce_table(counts, **of)
    ce = errors.sum(1) / divisors.sum(1)
    relative = (errors - clean).sum(1) / (divisors - reference).sum(1)
    expected = np.stack([errors.mean(1), ce, relative], 1)
    found = {row.name: (row.error, row.ce, row.relative_ce) for row in table.rows}
    np.testing.assert_allclose([found[name] for name in names], expected)
    np.testing.assert_allclose(found["imagenet_c, mean of 15"], expected.mean(0))
    assert list(found) == ["clean", *names, "imagenet_c, mean of 15"] and found["clean"][0] == clean
    shown = str(table).splitlines()
    assert f"{100 * ce.mean():.1f}" in shown[17] and "imagenet_c/fog" in str(table)
    assert len(shown) == (20 if of else 22) and "+- upper bound" in shown[18]
    assert ("hold for ImageNet's 1,000 classes at 224x224" in str(table)) == (not of)
    error = intervals.of_accuracy(errors, 50_000).mean(1)
    np.testing.assert_allclose(error, np.sqrt(errors * (1 - errors) / 50_000).mean(1), rtol=0.01)
    np.testing.assert_allclose([row.error_se for row in table.rows[1:-1]], error)
    np.testing.assert_allclose([row.ce_se for row in table.rows[1:-1]], error / divisors.mean(1))


def test_a_benchmark_has_the_levels_that_it_selects():
    """Errors are 5 % times the level, of the ten of each candidate."""
    names = corruptions.names("cbar_candidates")
    counts = [Count("clean", 0, 100, 100)]
    counts += [Count(name, level, 100 - 5 * level, 100) for name in names for level in range(1, 11)]
    found = {row.name: row.error for row in corruptions.ce_table(counts, counts).rows}
    for benchmark in ("imagenet_c_bar", "cifar10_c_bar"):
        levels = [corruptions.severities(name, benchmark) for name in corruptions.names(benchmark)]
        assert found[f"{benchmark}, mean of 10"] == pytest.approx(0.05 * np.mean(levels))
    third = [
        Count(name, corruptions.severities(name, "cifar10_c_bar")[2], 50, 100)
        for name in corruptions.names("cifar10_c_bar")
    ]
    found = [row.name for row in corruptions.ce_table([counts[0], *third], [counts[0], *third]).rows]
    assert "cifar10_c_bar, mean of 10" in found and "imagenet_c_bar, mean of 10" not in found


def test_numbers_are_the_severities_of_a_benchmark_that_selects_levels():
    asked = {c.corruption: c.value for c in list_conditions(["imagenet_c_bar"], (1, 5))}
    selected = {
        name: corruptions.severities(name, "imagenet_c_bar")[-1] for name in corruptions.names("imagenet_c_bar")
    }
    assert {**asked, "clean": 0} == {"clean": 0, **selected} and len(set(selected.values())) > 1
    assert [c.value for c in list_conditions(["cbar/sparkles"], 5)] == [0, 5]
    for number in (6, 1.5):
        with refused("severity", number):
            list_conditions(["cifar10_c_bar"], number)


def test_standard_errors_are_those_of_the_images_where_the_answers_are_at_hand(stub, tmp_path):
    counts = corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF)
    others = [count._replace(correct=count.correct // (1 if count.corruption == "clean" else 2)) for count in counts]
    table, bound = (corruptions.ce_table(counts, others, path) for path in (tmp_path, None))
    wrong = {" ".join(cell): of_images for cell, of_images in read_wrong(tmp_path).items()}
    error = {count.corruption: [] for count in others}
    for count in others:
        error[count.corruption].append(count.error)
    for row in table.rows[1:3]:
        of_image = np.mean([wrong[f"{row.name} {severity}"] for severity in ("0.0", "0.5")], 0)
        scale = np.mean(error[row.name])
        numbers = of_image, of_image / scale, (of_image - wrong["clean 0"]) / (scale - error["clean"][0])
        np.testing.assert_allclose(row[1::2], [number.mean() for number in numbers])
        most = 1, 1 / scale, 1 / (scale - error["clean"][0])
        ses = [intervals.of_mean(*of, paired=k == 2) for k, of in enumerate(zip(numbers, most, strict=True))]
        np.testing.assert_allclose(row[2::2], ses)
    assert "standard error over the images" in str(table) and "upper bound" not in str(table)
    for one, most in zip(table.rows, bound.rows, strict=True):
        assert one[1::2] == pytest.approx(most[1::2], nan_ok=True)
        assert all(a <= b + 1e-12 for a, b in zip(one[2::2], most[2::2], strict=True) if b == b)
    refuses(
        lambda: corruptions.ce_table([counts[0], counts[1]._replace(correct=counts[1].correct - 1)], others, tmp_path),
        "in",
        "others, or none, for",
    )


def test_relative_ce_is_undefined_where_the_reference_loses_too_little():
    counts = [Count("clean", 0, 700, 1000), Count("noc/hue", 1, 500, 1000), Count("noc/border", 1, 500, 1000)]
    reference = [Count("clean", 0, 800, 1000), Count("noc/hue", 1, 791, 1000), Count("noc/border", 1, 790, 1000)]
    table = corruptions.ce_table(counts, reference)
    _, hue, border = table.rows
    assert np.isnan(hue.relative_ce) and hue.ce == pytest.approx(0.5 / 0.209)
    assert border.relative_ce == pytest.approx(0.2 / 0.01)
    assert str(table).splitlines()[2].endswith("undefined") and "rises by less than 1 point on average" in str(table)
    assert "undefined" not in str(corruptions.ce_table([counts[0], counts[2]], reference))
    latex = table.latex().splitlines()
    assert latex[6:9] == [
        r"clean & 30.0 $\pm$ 1.5 & - & - \\",
        r"noc/hue & 50.0 $\pm$ 1.6 & 239.2 $\pm$ 7.6 & undefined \\",
        r"noc/border & 50.0 $\pm$ 1.6 & 238.1 $\pm$ 7.5 & 2000.0 $\pm$ 303.1 \\",
    ]
    assert latex[0] == r"\begin{table}" and latex[-1] == r"\end{table}" and "undefined: the reference" in latex[-2]
    assert r"$\pm$ upper bound of the standard error, the mean of" in table.latex()
    assert "+-" not in table.latex() and "+-" in str(table)
    assert r"CE relative to R\_1 \& 50\%." in dataclasses.replace(table, reference="R_1 & 50%").latex()
    assert r"imagenet\_c/fog" in corruptions.ce_table([counts[0], Count("imagenet_c/fog", 1, 500, 1000)]).latex()


def test_alexnet_has_errors_of_levels_and_of_candidates_and_of_no_others():
    counts = [Count("clean", 0, 5, 10), Count("noc/hue", "random", 3, 10), Count("noc/hue", 0.5, 3, 10)]
    (_, hue) = corruptions.ce_table(counts[:2]).rows
    assert hue.ce == pytest.approx(0.7 / 0.684) and hue.relative_ce == pytest.approx(0.2 / (0.684 - 0.435))
    assert np.isnan(corruptions.ce_table([counts[0], counts[2]]).rows[1].ce)
    for wrong, message in (
        ((counts[1:2],), "expected counts with clean images"),
        ((counts[:2], "resnet"), 'expected reference="alexnet" or counts'),
        ((counts[:2], counts[1:2]), "expected a reference with clean images"),
    ):
        with pytest.raises(ValueError, match=message):
            corruptions.ce_table(*wrong)


def test_a_folder_is_of_one_test_set_and_one_process(stub, tmp_path):
    corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF)
    with refused("images", "list[12, 32, 32, 3]", TypeError):
        corruptions.evaluate(predict, list(IMAGES), LABELS, **OF)
    with files.lock(tmp_path), pytest.raises(WriteError, match="another process is writing"):
        corruptions.evaluate(predict, IMAGES, LABELS, path=tmp_path, **OF)


def test_severities_between_levels_go_with_their_option(monkeypatch):
    shown = []
    monkeypatch.setattr(classifier, "corrupt", lambda *given, index, **options: shown.append(given[3]) or given[1])
    of = {"corruptions": "imagenet_c/fog", "severity": (2, 2.5), "batch_size": 12}
    found = corruptions.evaluate(predict, IMAGES, LABELS, **of, options={"fog": {"interpolate": True}})
    assert shown == [2, 2.5] and [count.severity for count in found] == [0, 2, 2.5]
    with refused("severity", 2.5):
        corruptions.evaluate(predict, IMAGES, LABELS, **of)


def test_random_severities_keep_to_the_levels_of_the_benchmark(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(classifier, "corrupt", lambda *given, index, **options: seen.append(options) or given[1])
    options = {"cbar/lines": {"table": "cifar"}}
    given = {"corruptions": "cifar10_c_bar", "severity": "random", "batch_size": 12, "path": tmp_path}
    corruptions.evaluate(predict, IMAGES, LABELS, options=options, **given)
    levels = [corruptions.selected_levels(name, "cifar10_c_bar") for name in corruptions.names("cifar10_c_bar")]
    assert [given["levels"] for given in seen] == levels
    assert [given.get("table") for given in seen].count("cifar") == 1


def test_the_recipe_of_the_howto_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(classifier, "corrupt", lambda key, images, name, severity, *, index, **options: images // 2)
    monkeypatch.chdir(tmp_path)
    found = {"corruptions": corruptions, "predict": predict, "images": IMAGES, "labels": LABELS}
    exec(example_of("docs/howto/train_evaluate.md", "Evaluate any classifier"), found)
    printed = capsys.readouterr().out
    assert printed.count("imagenet_c/fog") == 6 and "imagenet_c, mean of 15" in printed and "upper bound" not in printed
    assert (tmp_path / "mine/errors.csv").exists()
