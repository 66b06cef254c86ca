"""Means of counts: of one classifier, on one test set, of whole rows; what `evaluate` returns is always taken."""

import warnings

import numpy as np
import pytest

import corruptions
from corruptions import Count
from corruptions.core import registry
from corruptions.scoring import Classifier
from corruptions.scoring.conditions import list_conditions
from corruptions.scoring.counts import below_chance
from tests.refusing import refuses

NAMES = corruptions.names("imagenet_c")


def counted(names, severity="levels", total=100, right=50):
    """Counts as `evaluate` returns them, with error .5 everywhere."""
    return [Count(c.corruption, c.label, right, total) for c in list_conditions(names, severity)]


WHOLE = counted(["imagenet_c"])
SEVERAL = (
    (["imagenet_c"], "levels"),
    (["imagenet_c"], "random"),
    (["imagenet_c"], (1, 3)),
    (["imagenet_c", "imagenet_c_bar"], "levels"),
    (["imagenet_c", "cifar10_c_bar"], (1, 3)),
    (["imagenet_c/fog", "cbar/lines"], "levels"),
    (["imagenet_c/fog", "noc/hue"], "levels"),
    (["imagenet_noc"], 0.3),
)


@pytest.mark.parametrize(("names", "severity"), SEVERAL)
def test_whatever_evaluate_returns_has_a_mean(names, severity):
    assert corruptions.mean_error(counted(names, severity)) == pytest.approx(0.5)
    assert corruptions.ce_table(counted(names, severity)).rows[0].name == "clean"


MIXED = {
    "a level missing": [count for count in WHOLE if count[:2] != ("imagenet_c/fog", 3)],
    "random beside levels": [*counted(["imagenet_c/fog"]), *counted(["noc/hue"], "random")[1:]],
}
OF_TWO = {
    "twice": [*WHOLE, WHOLE[-1]._replace(correct=40)],
    "clean twice": [WHOLE[0], *WHOLE],
    "other totals": [*WHOLE[:-1], WHOLE[-1]._replace(total=99)],
    "both of one": [*WHOLE, Count("imagenet_c/fog", "random", 50, 100)],
}


@pytest.mark.parametrize("what", [*MIXED, *OF_TWO])
def test_a_mixture_is_refused_by_its_name(what):
    with pytest.raises(ValueError, match=r"fog|noc/hue|clean|imagenet_c/|99"):
        corruptions.mean_error((MIXED | OF_TWO)[what])


@pytest.mark.parametrize("what", OF_TWO)
def test_tables_take_counts_of_one_evaluation(what):
    for given in ((OF_TWO[what],), (WHOLE, OF_TWO[what])):
        with pytest.raises(ValueError, match=r"one call|both"):
            corruptions.ce_table(*given)


@pytest.mark.parametrize(
    "wrong", [("imagenet_c/fog", 1, 5, 10), WHOLE[1]._replace(correct=0, total=0), WHOLE[1]._replace(correct=-1)]
)
def test_what_is_no_count_is_refused(wrong):
    for call in (corruptions.mean_error, corruptions.ce_table):
        with pytest.raises(ValueError, match=r"expected counts.*fog|expected counts.*gaussian"):
            call([WHOLE[0], wrong])


def test_a_benchmark_without_a_mean_says_why():
    def found(counts):
        table = corruptions.ce_table(counts)
        return [row.name for row in table.rows if row.name.startswith("imagenet_c,")], str(table)

    assert found(WHOLE)[0] == ["imagenet_c, mean of 15"]
    for counts in (MIXED["a level missing"], [count for count in WHOLE if count.corruption != "imagenet_c/fog"]):
        rows, text = found(counts)
        assert not rows and "imagenet_c has no mean" in text and "imagenet_c/fog" in text.partition("has no mean")[2]
    assert "no mean" not in found(counted(["imagenet_c/fog"]))[1]


def test_members_with_unequal_numbers_of_levels_have_a_mean(own_registry):
    corruptions.register_benchmark("of_three", {"cbar/lines": (2, 4, 6), "cbar/sparkles": (1, 10)})
    assert registry.severities("cbar/lines", "of_three") == (2, 4, 6)
    counts = counted(["of_three"])
    errors = {row.name: row.error for row in corruptions.ce_table(counts, counts).rows}
    assert errors["of_three, mean of 2"] == corruptions.mean_error(counts) == pytest.approx(0.5)


def test_a_clean_accuracy_far_below_chance_is_a_warning():
    images = np.zeros((200, 16, 16, 3), np.uint8)
    labels = np.arange(200) % 10
    images[:, 0, 0, 0] = labels
    logits = Classifier(lambda x: np.eye(10)[np.asarray(x[:, 0, 0, 0])], dtype="uint8")
    with pytest.warns(UserWarning, match="labels shifted"):
        corruptions.evaluate(logits, images, (labels + 1) % 10, corruptions=[])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        corruptions.evaluate(logits, images, labels, corruptions=[])
        # One of 20 right is no less than chance, and none of 5 may be chance.
        assert not below_chance(1, 20, 10) and not below_chance(0, 5, 10)
    assert below_chance(30, 50_000, 1000) == "" != below_chance(10, 50_000, 1000)


def test_an_empty_path_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refuses(
        lambda: corruptions.evaluate(lambda x: np.zeros((2, 2)), np.zeros((2, 16, 16, 3), np.uint8), [0, 1], path=""),
        "path",
    )
    assert not list(tmp_path.iterdir())
