"""Frames: from counts to scores and accuracies, tables as CSV, Markdown and LaTeX, intervals, numbers as text."""

import json
import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from analysis import frames
from analysis.frames import compact, decimals, fixed, percent, with_error
from tests.analysis.made_up import counted
from tests.refusing import refuses
from tests.tools.report_pages import plain

COUNTS = [
    counted("standard", 0, "clean", 0, 900, 1000),
    counted("standard", 0, "noc/blur", "random", 450, 1000),
    counted("standard", 0, "imagenet_c/fog", 3, 0, 1000),
    counted("noc/blur", 1, "noc/blur", 0.25, 1000, 1000),
]


def test_a_table_is_plain_csv_and_its_folder_says_where_it_comes_from(tmp_path):
    path = tmp_path / "new" / "counts.csv"
    frames.write(path, frames.of_counts(COUNTS), "revision abc\nsecond line")
    assert path.read_text() == (
        "model,seed,corruption,severity,correct,total\nstandard,0,clean,0,900,1000\nstandard,0,noc/blur,random,450,1000\n"
        "standard,0,imagenet_c/fog,3,0,1000\nnoc/blur,1,noc/blur,0.25,1000,1000\n"
    )
    record = json.loads((tmp_path / "new" / "provenance.json").read_text())
    assert record["files"]["counts.csv"]["origin"] == "revision abc second line"


def test_floats_are_read_back_exactly_and_nan_is_nan(tmp_path):
    values = [0.1, 1 / 3, 1e-300, 5e-324, 1e22, -0.0, float("nan"), 100.0]
    frames.write(tmp_path / "a.csv", frames.of_rows([("x", v) for v in values], ("name", "value")))
    lines = (tmp_path / "a.csv").read_text().splitlines()[1:]
    assert lines == [f"x,{value!r}" for value in values]
    np.testing.assert_allclose(pd.read_csv(tmp_path / "a.csv").value, values, rtol=1e-15)


def test_counts_normalise_absent_severities_and_numpy_scalars():
    found = [
        frames.check_count(*counted("a", np.int64(2), "clean", None, np.int32(1), 2)),
        frames.check_count(*counted("a", 2, "b", None, 1, 2)),
    ]
    assert found == [counted("a", 2, "clean", 0, 1, 2), counted("a", 2, "b", "random", 1, 2)]


def test_scores_by_hand():
    found = frames.scores(COUNTS[:2])
    columns = ["accuracy", "accuracy_se", "error", "error_se", "R", "R_se"]
    assert list(found.columns) == [*frames.COUNTS, *columns]
    clean, blur = found[columns].to_numpy()

    def error(accuracy):  # of 1.7552 more images that are right, and as many that are wrong
        return (scipy.stats.binom.var(1000, (1000 * accuracy + 1.7552) / 1003.5104)) ** 0.5 / 1000

    np.testing.assert_allclose(clean, [0.9, error(0.9), 0.1, error(0.9), 1, 0], rtol=1e-6)
    ratio_se = (error(0.45) ** 2 + (0.5 * error(0.9)) ** 2) ** 0.5 / 0.9
    np.testing.assert_allclose(blur, [0.45, error(0.45), 0.55, error(0.45), 0.5, ratio_se], rtol=1e-6)
    refuses(lambda: frames.scores(COUNTS), "model 'noc/blur', seed 1")


def test_a_model_without_a_right_clean_answer_has_no_robustness_and_stops_no_table():
    none = [counted("diverged", 0, "clean", 0, 0, 10), counted("diverged", 0, "a", 1, 2, 10)]
    found = frames.scores([*COUNTS[:2], *none])
    assert found[["R", "R_se"]].isna().to_numpy().tolist() == [[False] * 2] * 2 + [[True] * 2] * 2
    pd.testing.assert_frame_equal(found[:2], frames.scores(COUNTS[:2]), check_dtype=False)
    assert found.accuracy.tolist()[2:] == [0, 0.2]


@pytest.mark.parametrize(("correct", "number"), [(0, 13), (13, 13), (5, 20), (1, 1)])
def test_the_ends_of_the_interval_are_shares_that_are_just_not_excluded(correct, number):
    """At both ends s, |p - s| is 1.96 standard errors sqrt(s (1 - s) / n) of s itself."""
    found = frames.classes(np.arange(number) < correct, np.zeros(number, int), ["cat"])
    for end in (found.low[0], found.high[0]):
        assert 0 <= round(end, 12) <= 1
        assert abs(correct / number - end) == pytest.approx(
            1.959964 * max(0, end * (1 - end) / number) ** 0.5, abs=1e-6
        )


def test_classes_are_tabulated():
    labels = np.array([2, 0, 2, 2, 0])
    correct = np.array([True, False, False, True, False])
    found = frames.classes(correct, labels, ["tench, Tinca", "none", "cat"])
    assert list(zip(found["class"], found.images)) == [("tench_Tinca", 2), ("cat", 3)]
    assert found.accuracy.tolist() == pytest.approx([0, 2 / 3])
    assert ((found.low <= found.accuracy) & (found.accuracy <= found.high)).all()


def test_markdown_text_and_latex_hold_the_same_cells():
    frame = pd.DataFrame({"model": ["a_b", "c"], "error": ["1.0", "10.5"]})
    assert frames.markdown(frame) == "| model | error |\n|---|---:|\n| a_b | 1.0 |\n| c | 10.5 |"
    assert frames.text(frame).splitlines() == ["model  error", "a_b      1.0", "c       10.5"]
    written = frames.latex(frame, "5 % ± 1 of a_b")
    assert r"a\_b & 1.0 \\" in written and r"\caption{5 \% $\pm$ 1 of a\_b}" in written
    assert written.count("{") == written.count("}")


def test_names_of_others_are_text_in_markdown_and_latex():
    """A name of a model or folder adds no column, row, HTML, link or command to a table."""
    name = "a|b<img src=x onerror=alert(1)>&amp;`c`*d*[e](javascript:f)\n| g | _h_ ~~i~~ \\input{j} 5 % ^ {k} p < 1"
    frame = pd.DataFrame({"model": [name], f"x{name}": ["1.0 ± .2†"]})
    head, _, row = frames.markdown(frame, np.array([[False, True]])).splitlines()
    written = (
        r"a\|b&lt;img src=x onerror=alert(1)>&amp;amp;\`c\`\*d\*[e]\(javascript:f) \| g \| \_h\_ \~~i\~~ "
        r"\\input{j} 5 % ^ {k} p < 1"
    )
    assert head == f"| model | x{written} |" and row == f"| {written} | **1.0 ± .2†** |"
    latex = frames.latex(frame, name, np.array([[False, True]]))
    written = (
        r"a$|$b$<$img src=x onerror=alert(1)$>$\&amp;`c`*d*[e](javascript:f) $|$ g $|$ \_h\_ \textasciitilde{}"
        r"\textasciitilde{}i\textasciitilde{}\textasciitilde{} \textbackslash{}input\{j\} 5 \% \textasciicircum{} \{k\} p $<$ 1"
    )
    assert latex.count(written) == 3 and rf"\caption{{{written}}}" in latex
    assert f"{written} & \\textbf{{1.0 $\\pm$ .2$^\\dagger$}} \\\\" in latex


def test_robustness_and_its_standard_error_match_simulation():
    rng = np.random.default_rng(1)
    corrupted, clean = rng.binomial(500, 0.4, 20000) / 500, rng.binomial(500, 0.8, 20000) / 500
    ratios = frames.robustness(corrupted, clean)
    assert ratios.mean() == pytest.approx(0.5, abs=0.002)
    assert frames.robustness_standard_error(0.4, 0.8, 500) == pytest.approx(ratios.std(), rel=0.03)
    assert frames.robustness_standard_error(0.0, 0.8, 500) == pytest.approx(1.33 / 500 / 0.8, rel=0.02)  # not 0
    fewer = frames.robustness_standard_error(0.4, 0.8, 500, clean_number=100)
    assert fewer == pytest.approx(0.5 * (0.6 / (500 * 0.4) + 0.2 / (100 * 0.8)) ** 0.5, rel=0.08)  # and larger
    assert fewer > frames.robustness_standard_error(0.4, 0.8, 500)


@pytest.mark.parametrize(
    ("function", "given", "expected"),
    [
        (with_error, (0.8482563, 0.18081995), "0.85 ± 0.18"),  # values are rounded as their errors
        (with_error, (0.8482563, 0.0581), "0.85 ± 0.06"),
        (with_error, (0.7346, 0.0044154), "0.735 ± 0.004"),
        (with_error, (1.2130488, 6.78), "1 ± 7"),
        (with_error, (-0.0151, 0.0196), "-0.02 ± 0.02"),
        (with_error, (-0.004, 0.03), "0.00 ± 0.03"),
        (with_error, (12.34, 19.4), "12 ± 19"),
        (with_error, (0.5, 0.00001), "0.5000 ± 0.0000"),
        (with_error, (0.1234567, math.nan), "0.123"),
        (with_error, (math.nan, 0.1), "undefined"),
        (with_error, (0.25, 0.0), "0.250 ± 0.000"),
        (partial(with_error, sign=True), (0.0308, 0.012), "+0.031 ± 0.012"),
        (partial(fixed, sign=True), (-0.0001, 2), "0.00"),  # no sign before zero
        (partial(fixed, sign=True), (-0.5, 1), "-0.5"),
        (compact, (0.8482, 0.0581), (".85", "±.06")),
        (compact, (0.0, 0.05), ("0", "±.05")),
        (compact, (1.0, None), ("1", "")),
        (compact, (-0.47, 0.2), ("-.5", "±.2")),
        (compact, (1.2130, 6.78), ("1", "±7")),
        (compact, (-1.0, 1.5), ("-1.0", "±1.5")),
        (compact, (0.126, 0.002), (".13", "±.00")),
        (compact, (0.5, 0.0), (".50", "")),
        (compact, (math.nan, 0.1), ("\N{EN DASH}", "")),
        *((percent, given[:1], given[1]) for given in ((0.979, "98 %"), (0.004, "0.4 %"), (0.998, "99.8 %"))),
        *((percent, given[:1], given[1]) for given in ((0, "0 %"), (1, "100 %"))),
    ],
)
def test_numbers_as_text(function, given, expected):
    found = function(*given)
    assert (plain(found) if isinstance(found, str) else tuple(map(plain, found))) == expected


def test_rounding_errs_by_less_than_the_standard_error():
    for se in (0.9, 0.21, 0.19, 0.1, 0.049, 0.0123, 0.002):
        assert 10.0 ** -decimals(se) / 2 <= 0.51 * se
