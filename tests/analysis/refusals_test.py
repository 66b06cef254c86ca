"""One table of refusals: the calls that each function of the room refuses, with what it says of them."""

import dataclasses
import math

import numpy as np
import pytest

from analysis import exits, figures, frames
from analysis.calibration import calibrate
from analysis.cbar import scans, selection
from analysis.cbar.scans import Scan
from analysis.confidence import temperature
from analysis.confidence.metrics import binned
from analysis.distances import experiments, msd_mmd, results
from analysis.distances.figures import scatter_panels
from analysis.distances.msd_mmd import Stream, measure_distances
from analysis.errors.scores import resilience
from analysis.errors.sets import set_means
from analysis.figures import Panel
from analysis.overlap import overlap_matrix
from analysis.overlap.agreement import agreement
from analysis.overlap.measured import MeasuredOverlap
from analysis.overlap.score import split_by_overlap
from analysis.overlap.uncertainty import resample_accuracies
from analysis.selection import nk_benchmarks, select
from analysis.selection.benchmark import measure_coverage
from analysis.selection.nk_benchmarks import balanced, k_means, representation
from tests.analysis import made_up as answered
from tests.analysis.cbar.selection_test import TARGET, halves_of, table
from tests.analysis.distances.results_test import ROWS, made_up
from tests.analysis.errors.sets_test import values
from tests.analysis.published import FIGURE3, IMAGENET_C, NOC
from tests.analysis.selection.nk_benchmarks_test import SMALL

NAN = math.nan
ONES, EYE = np.ones((4, 4)), np.eye(3)


def measured(**change):
    given = {"accuracy": np.full((3, 3), 0.5), "names": "ab"} | change
    return overlap_matrix(**given)


def agreeing(second):
    return agreement(*(MeasuredOverlap(tuple("abc"), np.maximum(m, 0), m) for m in (EYE, np.asarray(second, float))))


def covered(**change):
    return measure_coverage(**{"unclipped": np.eye(4), "names": "abcd", "benchmark": ["a"]} | change)


def categories(**change):
    return nk_benchmarks.categories(**{"overlap": EYE, "names": "abc"} | change)


def counted(model="a", seed=0, corruption="c", severity=1, correct=1, total=2):
    return frames.check_count(*answered.counted(model, seed, corruption, severity, correct, total))


def scan(**change):
    errors, features = np.ones((2, 10)), np.ones((2, 10, 4))
    whole = Scan(("cbar/ripple", "cbar/lines"), errors, features, ("imagenet_c/fog",), errors[:1, :5], features[:1, :5])
    return dataclasses.replace(whole, **change)


def chosen(number):
    whole = table(0, 11)
    run = selection.Run(whole, halves_of([range(5), range(6, 11)]), dict.fromkeys(whole.names, 0.0), None)
    return selection.choose([run], whole.names[:number], TARGET)


def half_sets(shape, target, precision):
    return scans.half_sets(np.ones(shape), np.ones(shape), target, None, precision)


def mixed(more=2, fraction=1):
    return experiments.mixture_distances(np.ones((2, 1)), np.ones((more, 1)), np.ones((1, 1)), [fraction])


def rates(**errors):
    return resilience(errors, 0.1, {"a": 0.3, "b": 0.4}, 0.1)


FIRST, SECOND = made_up(2, 0.5), made_up(3, 0.5)
SYMMETRIC = np.array([[1, NAN, 0.1], [NAN, 1, 0.2], [0.1, 0.2, 1]])
ZERO_AT_5 = np.arange(20).reshape(2, 10) != 14.0
ONE_PAIR = EYE + np.array([[0, NAN, 0], [NAN, 0, 0], [0, 0, 0]])
REFUSALS = {
    "overlap_matrix": [
        (lambda: measured(accuracy=ONES[:3, :2]), r"shape \[3, 3\] with the clean column, found \(1, 3, 2\)"),
        (lambda: measured(accuracy=np.full((3, 3), 50.0)), r"accuracies in \[0, 1\], found 50"),
        (lambda: measured(accuracy=np.full((3, 3), NAN)), r"accuracies in \[0, 1\]"),
        (lambda: measured(clean_accuracy=np.full(2, 0.5)), "clean accuracy per model"),
        (lambda: measured(names="aa"), "each once"),
        (lambda: measured(number=0), "at least 1 test image"),
    ],
    "resample_accuracies": [
        (lambda: resample_accuracies(np.full((2, 2, 5), 0.5), 10), "expected correctness of 0 and 1"),
        (lambda: resample_accuracies(np.zeros((2, 3, 5), bool), 10), r"found shape \(2, 3, 5\)"),
        (lambda: resample_accuracies(np.zeros((2, 2, 5), bool), 1), "at least 2 resamples"),
    ],
    "agreement of overlaps": [
        (lambda: agreeing(np.diag([1, 1, NAN])), "three or more corruptions defined in both"),
        (lambda: agreeing(ONE_PAIR), "for every pair"),
    ],
    "split_by_overlap": [(lambda: split_by_overlap(FIGURE3, IMAGENET_C, 15), r"size in 1\.\.14")],
    "set_means": [
        (lambda: set_means(values(x={"a": 1}), {"s": ["a"]}), "values of the model 'standard'"),
        (lambda: set_means(values(standard={"a": 1}), {"s": "ab"}), r"'s' for every model, missing \['b'\]"),
    ],
    "resilience": [
        (lambda: rates(a=0.2), r"the same corruptions for the model and the baseline, found \['b'\] in one alone"),
        (lambda: rates(a=0.2, b=1.5), r"errors in \[0, 1\], found 1.5"),
        (lambda: rates(a=0.2, b=NAN), r"errors in \[0, 1\], found nan"),
    ],
    "check_count": [
        (lambda: counted(model="a,b"), "a model name without commas"),
        (lambda: counted(model=""), "a model name"),
        (lambda: counted(seed=-1), "a seed >= 0"),
        (lambda: counted(correct=3), "correct 3, total 2"),
        (lambda: counted(correct=0, total=0), "total >= 1"),
        (lambda: counted(severity=NAN), "found nan"),
        (lambda: counted(severity="severe"), "or 'random', found 'severe'"),
        (lambda: counted(severity=-1), "found -1"),
        (lambda: counted(corruption="clean", severity=3), "severity 0 for clean images"),
    ],
    "accuracies": [
        (lambda: frames.robustness(0.1, 0.0), "clean accuracy above 0"),
        (lambda: frames.robustness(45.0, 0.9), "not percent"),
        (lambda: frames.accuracy(5, 4), "0 <= correct <= total"),
        (lambda: frames.robustness_standard_error(0.4, 0.8, 0), "at least 1 test image"),
    ],
    "figures": [
        (lambda: figures.heatmap(EYE, "ab"), "matrix of 2 names"),
        (lambda: figures.heatmap(np.eye(2), "ab", flags=("", "odd")), "2 flags"),
        (lambda: figures.bars("ab", [Panel("mCE", [1])]), "one value for each of 2 names"),
        (lambda: figures.threshold_sweep([]), "at least one selection"),
        (lambda: scatter_panels({}, {}, {}), "at least one corruption"),
    ],
    "calibrate": [
        (lambda: calibrate(lambda v: 1 - v, (0.0, 1.0), targets=(0.5, 0.95)), "two targets"),
        (lambda: calibrate(lambda v: 1 - v, (0.0, 1.0), targets=(1.0, 0.5)), "two targets"),
        (lambda: calibrate(lambda v: 1 - v, (1, 1)), "domain"),
    ],
    "shares of exits": [(lambda: exits.shares(0, 3), "expected q above 0, found 0")],
    "measure_coverage": [
        (lambda: covered(benchmark=["x"]), r"found \['x'\]"),
        (lambda: covered(benchmark=[]), r"found \(\)"),
        (lambda: covered(names="abc"), "overlap matrix of 3 names"),
        (lambda: covered(level=0.5), "level in"),
        (lambda: covered(se=np.ones(4)), "standard errors of shape"),
        (lambda: covered(samples=np.zeros((18, 4, 4))), "at least 19 resamples"),
        (lambda: covered(samples=np.zeros((50, 3, 3))), "at least 19 resamples of shape"),
        (lambda: covered(se=ONES, samples=np.zeros((50, 4, 4))), "found both"),
    ],
    "random benchmarks": [
        (lambda: balanced((("a",), ("a",)), 1, 1, 1), "each name in one of them"),
        (lambda: balanced((), 1, 1, 1), "categories with members"),
        (lambda: balanced(SMALL, 0, 1, 1), "at least 1, found 0 and 1"),
        (lambda: balanced(SMALL, 1, 1, 0), "found 0"),
        (lambda: representation([("a1", "z")], SMALL), r"found \['z'\]"),
        (lambda: representation([("a1", "a1")], SMALL), "each once"),
    ],
    "categories": [
        (lambda: categories(names="aab"), "3 distinct names"),
        (lambda: categories(names="ab"), r"found shape \(3, 3\)"),
        (lambda: categories(overlap=np.arange(9.0).reshape(3, 3)), "symmetric"),
        (lambda: categories(correlation=1.0), r"in \[-1, 1\)"),
        (lambda: categories(restarts=0), "at least 1 restart"),
        (lambda: categories(overlap=ONES[:3, :3]), "only equal ones for a"),
        (lambda: categories(overlap=SYMMETRIC), "2 entries of NaN"),
        (lambda: categories(overlap=NAN * EYE), "found 0 valid ones"),
        (lambda: k_means(EYE, 4), "between 1 and 3 clusters"),
    ],
    "select": [
        (lambda: select(FIGURE3, IMAGENET_C, -0.1), r"threshold in \[0, 1\], found -0.1"),
        (lambda: select(FIGURE3, IMAGENET_C, 10), "found 10"),
        (lambda: select(FIGURE3, IMAGENET_C, NAN), "found nan"),
        (lambda: select(FIGURE3, IMAGENET_C, "0.1"), "found '0.1'"),
        (lambda: select(FIGURE3[:3], IMAGENET_C, 0.1), "square overlap of 15 distinct names"),
        (lambda: select(FIGURE3, NOC, 0.1), "square overlap of 8 distinct names"),
        (lambda: select(np.eye(2), "aa", 0.1), "distinct names"),
        (lambda: select(np.array([[1, 0.2], [0.3, 1]]), "ab", 0.1), "symmetric overlap"),
        (lambda: select(np.full((2, 2), NAN), "ab", 0.1), "found none in"),
        (lambda: select(ONE_PAIR, "yxz", 0.2), r"NaN for \(x, y\)"),
    ],
    "the order of subsets": [
        (lambda: experiments.closest_first(np.zeros((0, 3))), "expected finite distances"),
        (lambda: experiments.closest_first([[1.0, NAN]]), "expected finite distances"),
        (lambda: experiments.choose(np.arange(3), 4, "closest", None), r"a size in 1\.\.3, found 4"),
        (lambda: experiments.choose(np.arange(3), 1, "nearest", None), "a kind among closest, farthest, random"),
        (lambda: experiments.spreads(np.ones((3, 1, 2, 3)), (2, 5), (1, 3, 4)), "at least 2 resamplings, found 1"),
        (
            lambda: experiments.spreads(np.ones((3, 6, 3, 2)), (2, 5), (1, 3, 4)),
            r"\[pairs, resamplings, 2, 3\], found shape \(3, 6, 3, 2\)",
        ),
        (lambda: mixed(fraction=1.2), "fractions"),
        (lambda: mixed(more=3), "as many"),
    ],
    "distances": [
        (lambda: measure_distances(np.zeros((3, 2)), np.zeros((2, 3))), "expected features"),
        (lambda: measure_distances(np.full((3, 2), NAN), np.zeros((2, 2))), "finite features"),
        (lambda: measure_distances(np.zeros((0, 2)), np.zeros((2, 2))), "none of them empty"),
        (lambda: Stream(np.zeros((1, 1, 1))).msd, "expected transforms in every weighting"),
        (lambda: Stream(np.zeros((1, 1, 1))).add(np.zeros((2, 1, 1)), np.ones((1, 3), bool)), "members"),
        (lambda: msd_mmd.spearman([1, 2], [1, 2, 3]), "two rows"),
        (lambda: msd_mmd.spearman([1, NAN], [1, 2]), "without NaN"),
        (lambda: msd_mmd.halves(0, 3, None), "something to halve"),
    ],
    "results of distances": [
        (lambda: results.agreement(FIRST, SECOND[:-1]), "the same measurements in both, found only in one: .*contrast"),
        (lambda: results.agreement(FIRST, SECOND[:12] + SECOND[36:]), "found 6 and 2"),
        (lambda: results.agreement(FIRST, SECOND, "mdd"), "the measure msd or mmd, found 'mdd'"),
        (
            lambda: results.mean_distances([*ROWS, ROWS[0]._replace(scheme="augmix")]),
            r"\['1', '2'\] for standard and \['1'\] for augmix",
        ),
        (
            lambda: results.correlations({("s", "imagenet_c/fog"): (1.0, 2.0)}, {("x", "imagenet_c/fog"): 3.0}),
            r"errors of at least 3 of the schemes .* found errors of \['x'\]",
        ),
    ],
    "confidence": [
        (lambda: binned([], []), r"at least one, found \[0\] and \[0\]"),
        (lambda: binned([0.5], [1, 0]), r"as many scores \[N\] as answers, at least one, found \[1\] and \[2\]"),
        (lambda: binned([1.5], [1]), r"confidences in \[0, 1\], found 1\.5"),
        (lambda: binned([NAN], [1]), "expected scores, found NaN"),
        (lambda: binned([0.5], [1], 0), "at least one bin, found 0"),
        (lambda: temperature.fit(np.zeros((2, 3)), np.array([0, 3])), r"labels in 0\.\.2, found 0\.\.3"),
        (lambda: temperature.fit(np.full((1, 3), NAN), np.array([0])), "finite logits, found NaN"),
        (lambda: temperature.fit(np.zeros((0, 3)), np.array([], int)), "at least one image, found"),
    ],
    "scans": [
        (lambda: scan(candidates=("a", "a")), "each once"),
        (lambda: scan(candidate_errors=np.full((2, 10), NAN)), r"in percent, 0\.\.100"),
        (lambda: scan(reference_errors=np.ones((1, 4))), r"expected errors \(1, 5\)"),
        (lambda: scan(reference_features=np.ones((1, 5, 3))), "features of one width"),
        (lambda: scan(reference_features=np.full((1, 5, 4), np.inf)), "finite features of the references"),
        (lambda: scans.severity_spread([[1, 1, 0, 1, 1]]), "above 0 at severity 3"),
        (
            lambda: scans.group_table(scan(candidate_errors=ZERO_AT_5)),
            r"lines: expected 10 errors, above 0 at levels 3\.\.8",
        ),
    ],
    "the search for C-bar": [
        (lambda: half_sets((4, 6), 30, 0.01), r"5\.\.63 candidates"),
        (lambda: half_sets((5, 6), 0, 0.01), "target above 0"),
        (lambda: half_sets((5, 6), 30, 1), "precision in"),
        (lambda: selection.contributions(np.ones((50, 4), bool), np.ones(50)), "all equal"),
        (lambda: chosen(10), "two half-sets of some run that together are"),
        (lambda: chosen(9), "10 different candidates"),
        (
            lambda: selection.random_benchmarks(halves_of([range(5), range(1, 6)]), np.random.default_rng(0), 100),
            "two disjoint half-sets that meet the target error, found 0 in",
        ),
        (
            lambda: selection.random_benchmarks(halves_of(np.zeros((0, 5))), np.random.default_rng(0), 100),
            "from 0 half-sets",
        ),
    ],
}


@pytest.mark.parametrize(
    ("call", "message"),
    [pytest.param(*row, id=f"{name}-{k}") for name, rows in REFUSALS.items() for k, row in enumerate(rows)],
)
def test_impossible_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
