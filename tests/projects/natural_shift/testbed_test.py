"""The public table of the ImageNet testbed: numbers computed from it elsewhere."""

import numpy as np
import pytest

from analysis.frames import CLEAN
from analysis.references import qualified_members
from projects.natural_shift import prediction
from projects.natural_shift.benchmarks import categories_of
from projects.natural_shift.prediction import effective_robustness
from projects.natural_shift.sources import read_testbed
from projects.natural_shift.study import study

SHIFTS = ("imagenet_v2", "imagenet_a", "imagenet_r", "imagenet_sketch", "objectnet")


def read(shared, kind="on-disk"):
    folder = shared / "data" / "natural_shift"
    return read_testbed(folder / "robustness_top1s.csv", folder / "model_types.csv", kind)


@pytest.fixture
def table(shared):
    return read(shared)


def predict(table, benchmarks, shifts=SHIFTS):
    complete, weights = table.complete(SHIFTS, table.members()), np.ones((1, len(table.accuracy)))
    rows = prediction.predict(table, benchmarks, shifts, complete, weights, weights[:, complete])
    return rows.pivot(index=["benchmark", "shift"], columns="measure", values=["value", "models"]).loc[
        [(benchmark, shift) for benchmark in benchmarks for shift in shifts]
    ]


def test_accuracies_are_those_printed(table):
    at = table.accuracy.index.get_loc("resnet50_augmix")
    found = [table[CLEAN][at], table.mean(table.members())[at], *(table.shift(s)[0][at] for s in SHIFTS)]
    assert found == pytest.approx([77.538, 46.961, 65.110, 3.773, 41.040, 28.480, 36.367], abs=5e-4)
    of_classes = table.accuracy.loc["resnet50", [f"clean/{s}" for s in ("imagenet_a", "imagenet_r", "objectnet")]]
    assert of_classes.tolist() == pytest.approx([91.860, 92.120, 78.864], abs=5e-4)
    assert (table.standard.sum(), table.shown.sum(), len(table.accuracy)) == (85, 243, 338)


def test_drops_accuracies_and_residuals_of_194_models(table):
    rows = predict(table, {"mean": table.mean(table.members())})
    found = rows["value"][["drop", "drop_matched", "accuracy", "spearman", "published_units"]]
    expected = [
        [0.6486, 0.6486, 0.8720, 0.9233, 0.870],
        [0.5982, 0.5965, 0.7359, 0.8757, 0.734],
        [0.6755, 0.6987, 0.8415, 0.9085, 0.840],
        [0.6923, 0.6923, 0.8774, 0.9278, 0.876],
        [0.7080, 0.6077, 0.9194, 0.9297, 0.918],
    ]
    assert (np.abs(found.to_numpy() - expected) < [5e-4] * 4 + [6e-4]).all()  # the last is known to 3 digits
    assert (rows["models"]["drop"] == 194).all() and rows["models"]["residual"]["mean", "imagenet_a"] == 193
    np.testing.assert_allclose(rows["value"]["residual"], [0.3910, 0.4487, 0.5688, 0.5766, 0.1585], rtol=0, atol=5e-4)
    complete = table.complete(SHIFTS, table.members())[None].astype(float)
    args = *table.shift("imagenet_a"), table.mean(table.members()), table[CLEAN], complete
    clipped, models = prediction.residual_correlation(*args, floor=0.01)
    assert (clipped[0], models) == (pytest.approx(0.3988, abs=5e-4), 194)


def test_partial_correlations_given_clean_accuracy_are_those_of_a_regression(table):
    chosen = {name: table[f"imagenet_c/{name}"] for name in ("frost", "glass_blur", "motion_blur")}
    rows = predict(table, chosen)["value"].swaplevel().loc["objectnet"]
    np.testing.assert_allclose(rows["partial"], [0.38, 0.41, 0.48], rtol=0, atol=0.00501)
    np.testing.assert_allclose(rows["residual"], [0.15, 0.17, 0.23], rtol=0, atol=0.00501)


def test_drops_of_every_corruption(table):
    text = """
    gaussian_noise .52 .53 .63 .62 .56; shot_noise .51 .54 .64 .63 .56; impulse_noise .54 .55 .59 .59 .57
    defocus_blur .62 .52 .55 .58 .72; glass_blur .10 .30 .53 .57 .33; motion_blur .52 .50 .52 .54 .62
    zoom_blur .37 .48 .52 .54 .54; snow .68 .68 .72 .74 .70; frost .66 .61 .70 .71 .65; fog .65 .28 .06 .10 .47
    brightness .65 .24 .34 .31 .54; contrast .64 .33 .22 .26 .49; elastic_transform .22 .40 .57 .59 .44
    pixelate .51 .47 .65 .63 .59; jpeg_compression .38 .43 .60 .59 .49
    """
    parts = [part.split() for line in text.strip().splitlines() for part in line.split(";")]
    expected = {f"imagenet_c/{name}": [float(n) for n in numbers] for name, *numbers in parts}
    assert tuple(expected) == table.members()
    drops = predict(table, {name: table[name] for name in expected})["value"]["drop"]
    np.testing.assert_allclose(drops.to_numpy().reshape(15, 5), list(expected.values()), rtol=0, atol=0.00501)


def test_effective_robustness_by_the_testbeds_protocol(shared, table):
    in_memory = read(shared, "in-memory")
    assert len(in_memory.synthetic) == len(table.synthetic) - 1  # without glass_blur
    others = ("stylized_imagenet", "greyscale", "pgd")
    both = [t[name] for t in (table, in_memory) for name in t.synthetic if name not in others]
    columns = {
        "imagenet_c": table.mean(table.members()),
        "avg_corruptions": np.mean([*both, table["stylized_imagenet"], table["greyscale"]], axis=0),
        **{name: table[f"imagenet_c/{name}"] for name in (
            "brightness", "snow", "defocus_blur", "gaussian_noise", "contrast"
        )},
        "pgd": table["pgd"],
    }  # fmt: skip
    expected = [  # V2, ObjectNet, A, R, Sketch, Vid-Robust, YTBB-Robust
        [0.32, 0.22, 0.10, 0.43, 0.34, 0.62, 0.49],
        [0.25, 0.08, 0.05, 0.40, 0.29, 0.61, 0.52],
        [0.57, 0.49, 0.17, 0.37, 0.34, 0.56, 0.40],
        [0.34, 0.15, 0.07, 0.51, 0.44, 0.51, 0.44],
        [0.40, 0.40, 0.14, 0.22, 0.16, 0.65, 0.50],
        [0.08, 0.03, 0.10, 0.38, 0.27, 0.40, 0.35],
        [0.26, 0.26, 0.12, -0.01, 0.12, 0.16, 0.04],
        [-0.03, -0.17, -0.09, 0.32, 0.17, 0.31, 0.36],
    ]
    order = ("imagenet_v2", "objectnet", "imagenet_a", "imagenet_r", "imagenet_sketch", "vid_robust", "ytbb_robust")
    rows = predict(table, columns, order)
    np.testing.assert_allclose(rows["value"]["effective"].to_numpy().reshape(8, 7), expected, rtol=0, atol=0.01)
    shown = rows["models"]["effective"]
    assert shown["imagenet_c", "imagenet_v2"] == 115 and shown["imagenet_c", "imagenet_r"] == 114
    assert shown["pgd", "imagenet_v2"] == 105
    _, (line,) = effective_robustness(columns["imagenet_c"], table[CLEAN], table.standard, np.ones((1, 338)))
    assert line["models"] == 78


def test_lines_and_examples_by_the_testbeds_protocol(table):
    expected = {
        "imagenet_v2": [(0.9232, -0.4977, 0.996, 85)],
        "objectnet": [(0.9809, -1.9283, 0.953, 85)],
        "imagenet_r": [(0.6368, -2.1077, 0.889, 80)],
        "imagenet_sketch": [(1.0709, -2.3701, 0.869, 85)],
        "vid_robust": [(0.5336, -1.4617, 0.949, 85)],
        "ytbb_robust": [(0.3388, -1.1119, 0.830, 84)],
        "imagenet_a": [(0.6894, -5.1400, 0.410, 33), (2.9560, -10.2774, 0.905, 51)],
    }
    for shift, lines in expected.items():
        found = prediction.lines(table, [shift])[["slope", "intercept", "r2", "models"]]
        np.testing.assert_allclose(found, lines, rtol=0, atol=6e-4)
    weights, complete = np.ones((1, len(table.accuracy))), table.complete(SHIFTS, table.members())
    of_194_models = {
        "imagenet_v2": (0.9223, -0.4900, 0.9959),
        "imagenet_r": (0.6488, -1.9917, 0.6104),
        "imagenet_sketch": (1.1164, -2.3195, 0.7694),
        "objectnet": (0.9638, -1.8984, 0.9540),
    }
    for shift, numbers in of_194_models.items():
        _, (line,) = effective_robustness(*table.shift(shift), complete, weights)
        assert (line["slope"], line["intercept"], line["r2"]) == pytest.approx(numbers, abs=5e-4)
    of = {s: prediction.natural_robustness(table, s, weights)[0][0] for s in SHIFTS}
    examples = {
        "resnet50_augmix": [-0.50, -1.87, 2.67, 2.43, 0.14],
        "resnet50_deepaugment": [0.76, -1.13, 4.64, 4.46, 0.67],
        "resnet50_linf_eps4_robust": [0.59, 0.28, 15.53, 7.75, -0.05],
        "vit_b_32_clip_zeroshot": [5.63, 29.21, 38.95, 28.02, 18.10],
    }
    for name, numbers in examples.items():
        at = table.accuracy.index.get_loc(name)
        np.testing.assert_allclose([of[shift][at] for shift in SHIFTS], numbers, rtol=0, atol=0.01)


def test_a_study_of_the_table_finds_the_best_predictors(table):
    members = qualified_members("imagenet_c")
    found = study(table, clusters=categories_of(members), resamples=10)
    assert found.shifts == SHIFTS and found.complete == 194
    assert found.leaders.corruption[0] == "imagenet_c/snow" and found.leaders["first"][0] > 0.9
    of_pairs = found.together.set_index(["first", "second"]).value
    assert of_pairs.idxmax() == ("imagenet_r", "imagenet_sketch")  # nearly one shift
    effects = found.effects.set_index("effect")
    assert effects.low["categories"] > 0 > effects.high["spread"]
