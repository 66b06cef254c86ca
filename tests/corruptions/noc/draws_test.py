"""The random half of the NOC candidates: distributions, places, and the published fractions of changed pixels."""

import jax
import numpy as np
import pytest
import scipy.stats

from corruptions import noc
from tests.corruptions.comparing import assert_uniform, assert_whole, drawn
from tests.corruptions.noc.exact_test import SQUARE, compiled


def test_whole_severities_are_uniform_with_both_ends():
    assert_whole(drawn("noc/quantization", 6000)["steps"], 3, 8)
    assert_whole(drawn("noc/border", 6000)["thickness"], 9, 46)
    angles = drawn("noc/shear", 6000)["degrees"]
    assert_whole(np.abs(angles).astype(int), 12, 39)
    assert scipy.stats.binomtest(int((angles > 0).sum()), 6000).pvalue > 1e-4


def test_real_severities_are_uniform():
    assert_uniform(drawn("noc/contrast", 4000)["weight"], 0.33, 0.74)
    turns = drawn("noc/hue", 4000)["turns"]
    assert_uniform(np.abs(turns), 0.05, 0.5)
    assert scipy.stats.binomtest(int((turns > 0).sum()), 4000).pvalue > 1e-4


def test_a_severity_is_a_fraction_of_the_range():
    for fraction, steps, weight in ((0.0, 8, 0.33), (0.17, 7, 0.3997), (0.999, 3, 0.73959), (1.0, 3, 0.74)):
        assert np.all(drawn("noc/quantization", 3, fraction)["steps"] == steps)
        assert np.allclose(drawn("noc/contrast", 3, fraction)["weight"], weight, atol=1e-6)


def test_an_explicit_severity_leaves_the_other_draws():
    without, given = drawn("noc/border", 50), drawn("noc/border", 50, 0.0)
    assert np.array_equal(without["grey"], given["grey"])


def test_translation_axes_are_independent_and_severity_is_their_sum():
    shifts = drawn("noc/translation", 20000)
    dx, dy = np.abs(shifts["dx"]), np.abs(shifts["dy"])
    assert_whole(dx, 15, 62)
    assert_whole(dy, 15, 62)
    table = np.histogram2d(dx, dy, bins=6)[0]
    assert scipy.stats.chi2_contingency(table).pvalue > 1e-4
    assert abs(np.corrcoef(np.sign(shifts["dx"]), np.sign(shifts["dy"]))[0, 1]) < 0.03
    ends = {f: drawn("noc/translation", 300, f) for f in (0.0, 0.3, 1.0)}
    assert np.all(np.abs(ends[0.0]["dx"]) == 15) and np.all(np.abs(ends[0.0]["dy"]) == 15)
    assert np.all(np.abs(ends[1.0]["dx"]) == 62) and np.all(np.abs(ends[1.0]["dy"]) == 62)
    assert np.ptp(np.abs(ends[0.3]["dx"]) + np.abs(ends[0.3]["dy"])) <= 2  # each is rounded down on its own


def test_places():
    shapes = drawn("noc/circle", 200)
    assert_whole(shapes["rows"], 7, 217)
    assert_whole(shapes["columns"], 7, 217)
    assert_uniform(shapes["greys"], 0, 1)
    marks = drawn("noc/artifacts", 200)
    assert_whole(marks["lines"], 1, 222)
    assert_whole(marks["centres"], 2, 221)
    assert scipy.stats.binomtest(int(marks["tailed"].sum()), marks["tailed"].size, 6 / 7).pvalue > 1e-4
    squares = drawn("noc/obstruction", 20000, 0.0)
    assert np.all(squares["side"] == 47)
    assert_whole(squares["top"], 0, 177)
    assert_whole(squares["left"], 0, 177)
    splits = drawn("noc/backlight", 20000)
    assert_whole(splits["split"], 112 - 45, 112 + 44)
    assert abs(splits["upright"].mean() - 0.5) < 0.02
    tall = drawn("noc/backlight", 3000, shape=(300, 100, 3))
    assert {tall["split"][tall["upright"]].min(), tall["split"][tall["upright"]].max()} == {90, 210}
    assert {tall["split"][~tall["upright"]].min(), tall["split"][~tall["upright"]].max()} == {30, 70}
    assert_whole(drawn("noc/color_distortion", 3000)["channel"], 0, 2)


def test_noise():
    severity = 0.5
    for half, distribution in ((True, scipy.stats.halfnorm), (False, scipy.stats.norm)):
        noise = drawn("noc/gaussian", 2, severity, (64, 64, 3), half_normal=half)["noise"]
        assert scipy.stats.kstest(noise.ravel(), distribution(0, 0.115).cdf).pvalue > 1e-4
    _, image = compiled("salt_pepper", SQUARE)(jax.random.key(1), np.full(SQUARE, 0.5, np.float32), severity)
    size = image.size
    for value in (0.0, 1.0):
        assert scipy.stats.binomtest(int((image == value).sum()), size, 0.0175 / 2).pvalue > 1e-4


# Percent of pixels changed at the two ends of the range, overlaps counted once.
CHANGED = {
    "rhombus": (1.7, 13.8),
    "circle": (1.7, 11.3),
    "rain": (2.8, 25.0),
    "artifacts": (1.0, 11.8),
    "vertical_artifacts": (1.0, 12.4),
    "obstruction": (4.4, 31.1),
    "border": (15.4, 65.3),
    "translation": (13.0, 47.7),
    "shear": (5.0, 20.0),
}


@pytest.mark.parametrize("name", CHANGED)
def test_fraction_of_changed_pixels(name):
    image = np.full(SQUARE, 1 / 3, np.float32)
    for severity, percent in zip((0.0, 1.0), CHANGED[name]):
        found = [compiled(name, SQUARE)(jax.random.key(s), image, severity)[1] for s in range(12)]
        changed = 100 * np.mean([np.any(x != image, axis=-1) for x in found])
        assert changed == pytest.approx(percent, rel=0.07), f"at severity {severity}"


def test_shapes_keep_their_share_of_small_images():
    for name in ("rhombus", "artifacts"):
        at_full, at_small = (noc.ranges((side, side))[name] for side in (224, 32))
        assert at_small[1] < at_full[1]
        image = np.full((32, 32, 3), 1 / 3, np.float32)
        found = [compiled(name, image.shape)(jax.random.key(s), image, 1.0)[1] for s in range(40)]
        changed = 100 * np.mean([np.any(x != image, axis=-1) for x in found])
        assert changed == pytest.approx(CHANGED[name][1], rel=0.12)
